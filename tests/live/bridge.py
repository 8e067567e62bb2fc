"""A real `mindbridge run` in a process of its own, with agents that note each turn they get."""

import asyncio
import json
import secrets
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from mindbridge.demo.homeserver import Homeserver
from tests.live.person import Event
from tests.live.waiting import wait_until

STARTED = "ready agents="

AGENT = '''
"""Asks when told to, and notes every turn."""
import json
import pathlib

HERE = pathlib.Path(__file__).parent

ASK = """Before I start:

```interactive
{"question": "What approach would you prefer?",
 "options": [{"emoji": "🚀", "label": "Fast and automated", "value": "fast"},
             {"emoji": "🔍", "label": "Careful and manual", "value": "careful"}]}
```
"""

def reply(turn):
    with open(HERE / "turns.jsonl", "a") as file:
        file.write(turn.model_dump_json() + "\\n")
    script = HERE / f"{turn.agent}.json"
    if script.exists():
        replies = json.loads(script.read_text())
        if turn.text in replies:
            return replies[turn.text]
    if turn.kind == "selection":
        return f"You chose {turn.selection.selected_option.label}."
    return ASK if "ask" in turn.text else f"You said: {turn.text}"
'''


@dataclass
class Bridge:
    """A bridge with its folder; `start` and `stop` as often as a test likes."""

    folder: Path
    config: dict[str, Any]
    log: list[str] = field(default_factory=list)
    _process: asyncio.subprocess.Process | None = None
    _reading: asyncio.Task[None] | None = None

    def prepare(self, agent_source: str = AGENT) -> None:
        (self.folder / "config.yaml").write_text(yaml.safe_dump(self.config, allow_unicode=True), "utf-8")
        (self.folder / "agent.py").write_text(agent_source, "utf-8")

    def script(self, agent: str, replies: Mapping[str, str]) -> None:
        """What the agent replies to which text."""
        (self.folder / f"{agent}.json").write_text(json.dumps(replies), "utf-8")

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mindbridge", "run", "-c", str(self.folder / "config.yaml")),
            stderr=asyncio.subprocess.PIPE,
            cwd=self.folder,
        )
        seen = len(self.log)
        self._reading = asyncio.create_task(self._read_log(self._process))
        try:
            await wait_until(lambda: self._reading_is_over() or any(STARTED in line for line in self.log[seen:]))
            if self._reading_is_over():
                raise TimeoutError
        except TimeoutError:
            raise AssertionError("the bridge did not start:\n" + "\n".join(self.log[-30:])) from None

    def _reading_is_over(self) -> bool:
        return self._reading is None or self._reading.done()

    async def _read_log(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            self.log.append(line.decode().rstrip())

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ends the bridge; gives its exit status."""
        process, reading = self._process, self._reading
        assert process is not None
        assert reading is not None
        if process.returncode is None:
            process.send_signal(how)
        async with asyncio.timeout(15):
            status = await process.wait()
            await reading
        self._process = None
        return status

    def user_id(self, agent: str = "assistant") -> str:
        """The account of an agent."""
        return str(self.config["agents"][agent]["account"]["user_id"])

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    def turns(self, agent: str | None = None) -> list[Event]:
        """All turns that the agents got so far, as JSON."""
        path = self.folder / "turns.jsonl"
        turns = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
        return [turn for turn in turns if agent in {None, turn["agent"]}]

    async def command(self, *arguments: str) -> tuple[int, str, str]:
        """Runs another mindbridge command with this bridge's configuration: status, output, errors."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mindbridge", *arguments, "-c", str(self.folder / "config.yaml")),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.folder,
        )
        output, errors = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode(), errors.decode()

    async def why(self, event_id: str) -> Event:
        """What `journal why` says of an event."""
        status, output, errors = await self.command("journal", "why", event_id, "--json")
        assert status == 0, errors
        verdict: Event = json.loads(output)
        return verdict


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
        for bridge in self.made:
            if bridge.is_running:
                await bridge.stop(signal.SIGKILL)
