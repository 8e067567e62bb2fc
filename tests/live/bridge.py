"""A real `mindbridge run` in a process of its own, with agents that note each turn they get."""

import asyncio
import json
import secrets
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mindbridge.demo.homeserver import Homeserver
from mindbridge.journal.reports import Reports
from tests.live.person import Event, Person
from tests.live.waiting import wait_until

STARTED = "ready agents="
MINDBRIDGE = ("-m", "mindbridge")

AGENT = (Path(__file__).parent / "scripted_agent.py").read_text("utf-8")

Reply = str | Mapping[str, object]


@dataclass
class Bridge:
    """A bridge with its folder; `start` and `stop` as often as a test likes."""

    folder: Path
    config: dict[str, Any]
    log: list[str] = field(default_factory=list)
    _process: asyncio.subprocess.Process | None = None
    _reading: asyncio.Task[None] | None = None

    def prepare(self, agent_source: str = AGENT) -> None:
        (self.folder / "config.yaml").write_text(json.dumps(self.config), "utf-8")
        (self.folder / "agent.py").write_text(agent_source, "utf-8")

    def script(self, replies: Mapping[str, Reply], agent: str = "assistant") -> None:
        """What the agent replies to which text; `scripted_agent.py` says what a reply can be."""
        (self.folder / f"{agent}.json").write_text(json.dumps(replies), "utf-8")

    async def start(self, program: Sequence[str] = MINDBRIDGE) -> None:
        """Starts the bridge and waits until it is ready; `program` is what Python is to run."""
        seen = len(self.log)
        await self.launch(program)

        def is_ready() -> bool:
            return any(STARTED in line for line in self.log[seen:])

        with suppress(TimeoutError):
            await wait_until(lambda: self._reading_is_over() or is_ready())
        assert is_ready(), "\n".join(("the bridge did not start:", *self.log[-30:]))

    async def launch(self, program: Sequence[str] = MINDBRIDGE) -> None:
        """Starts the bridge's process."""
        self._process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                *program,
                *(() if "run" in program else ("run",)),
                "-c",
                str(self.folder / "config.yaml"),
            ),
            stderr=asyncio.subprocess.PIPE,
            cwd=self.folder,
        )
        self._reading = asyncio.create_task(self._read_log(self._process))

    def _reading_is_over(self) -> bool:
        return self._reading is None or self._reading.done()

    async def _read_log(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            self.log.append(line.decode().rstrip())

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ends the bridge; gives its exit status."""
        self.send_signal(how)
        return await self.ended()

    def send_signal(self, how: signal.Signals) -> None:
        """Sends its process a signal."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(how)

    async def ended(self) -> int:
        """Waits until it has ended; gives its exit status."""
        process, reading = self._process, self._reading
        assert process is not None
        assert reading is not None
        async with asyncio.timeout(15):
            status = await process.wait()
            await reading
        self._process = None
        return status

    def user_id(self, agent: str = "assistant") -> str:
        """The account of an agent."""
        return str(self.config["agents"][agent]["account"]["user_id"])

    def device_id(self, agent: str = "assistant") -> str:
        """The device that an agent keeps in the data home."""
        kept = json.loads((self.folder / "journal" / "devices" / f"{agent}.json").read_text("utf-8"))
        return str(kept["device_id"])

    def allow(self, name: str) -> None:
        """Makes the file that a scripted reply needs or waits for."""
        (self.folder / name).touch()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    def turns(self, agent: str | None = None) -> list[Event]:
        """All turns that the agents got so far, as JSON."""
        path = self.folder / "turns.jsonl"
        whole_lines = path.read_text("utf-8").split("\n")[:-1] if path.exists() else []
        turns = [json.loads(line) for line in whole_lines]
        return [turn for turn in turns if agent in {None, turn["agent"]}]

    async def command(self, *arguments: str) -> tuple[int, str, str]:
        """Runs another mindbridge command with this bridge's configuration: status, output, errors."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *MINDBRIDGE, *arguments, "-c", str(self.folder / "config.yaml")),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.folder,
        )
        output, errors = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode(), errors.decode()

    @property
    def journal(self) -> Reports:
        """What the `journal` commands tell as JSON, without a process for each."""
        return Reports(self.folder / "journal")

    def unread(self) -> list[str]:
        """The encrypted events whose keys have not come, the newest first."""
        return [each["event_id"] for each in self.journal.status()["unread"]]

    def verdict(self, event_id: str) -> str | None:
        """What `journal why` says of an event."""
        verdict: str | None = self.journal.why(event_id)["verdict"]
        return verdict

    async def log_in(self, agent: str = "assistant") -> Person:
        """The agent's account with another client, which is to be closed."""
        account = self.config["agents"][agent]["account"]
        return await Person.log_in(self.config["homeserver"], account["user_id"], account["password"])


@dataclass
class Bridges:
    """Makes bridges whose agents have fresh accounts, and ends those that still run."""

    homeserver: Homeserver
    folder: Path
    made: list[Bridge] = field(default_factory=list)

    async def __call__(
        self,
        *agents: str,
        agent_source: str = AGENT,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        **top: Any,
    ) -> Bridge:
        """A bridge with these agents (`assistant` if none is named), not started yet.

        Args:
            agents: their names.
            agent_source: the Python module that is the program of all of them.
            settings: what is configured differently for an agent.
            top: what is configured differently at the top.
        """
        configured: dict[str, Any] = {}
        for name in agents or ("assistant",):
            password = secrets.token_hex(8)
            account = await self.homeserver.register(f"{name}-{secrets.token_hex(4)}", password)
            configured[name] = {
                "account": {"user_id": account.user_id, "password": password},
                "backend": {"type": "python", "python": "agent:reply"},
                **(settings or {}).get(name, {}),
            }
        folder = self.folder / f"bridge-{len(self.made)}"
        folder.mkdir()
        config = {"homeserver": self.homeserver.url, "access": {"users": ["*"]}, "agents": configured, **top}
        bridge = Bridge(folder, config)
        bridge.prepare(agent_source)
        self.made.append(bridge)
        return bridge

    async def end(self) -> None:
        await self.end_quietly()
        for bridge in self.made:
            print(*bridge.log, sep="\n")  # noqa: T201 - shown where the test failed

    async def end_quietly(self) -> None:
        for bridge in self.made:
            if bridge.is_running:
                await bridge.stop(signal.SIGKILL)
