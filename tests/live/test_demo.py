"""`mindbridge demo`, run as a newcomer runs it; and that nothing of it stays, however it ends."""

import asyncio
import os
import pty
import re
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.live.conftest import ROOT
from tests.live.waiting import wait_until

CTRL_C, CTRL_D = "\x03", "\x04"
MENU_BUTTONS = "[🚀] [👯] [📦️] [🩹] [🔀]"
APPROACH_BUTTONS = "[🚀] [🔍️]"
PROMPT, PROMPT_IN_THREAD = (f"\x1b[1mYou       \x1b[0m{mark} " for mark in " ↳")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(eq=False)
class Demo:
    """A running demo: what it wrote so far, and the folder that is the only place for what it may leave behind."""

    process: asyncio.subprocess.Process
    output: asyncio.StreamReader
    send: Callable[[str], None]
    hang_up: Callable[[], None]
    folder: Path
    _bytes: bytes = field(default=b"", repr=False)
    _looked_at: int = 0

    @property
    def written(self) -> str:
        return self._bytes.decode("utf-8", "ignore")

    async def wait_for(self, *wanted: str) -> None:
        """Until it has written all of these, in this order, behind what was waited for before."""
        for each in wanted:
            async with asyncio.timeout(60):
                while (place := self.written.find(each, self._looked_at)) < 0:
                    assert await self._read(), f"{each!r} never came:\n{self.written}"
            self._looked_at = place + len(each)

    async def end(self) -> int:
        """Until it has ended by itself; gives its exit status."""
        async with asyncio.timeout(90):
            while await self._read():
                pass
            return await self.process.wait()

    async def _read(self) -> bool:
        try:
            read = await self.output.read(65_536)
        except OSError:  # how a terminal ends
            read = b""
        self._bytes += read
        return bool(read)


def processes_of(folder: Path) -> dict[int, str]:
    """The processes whose command lines name the folder, by id."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            command = path.read_text().replace("\0", " ")
            if str(folder) in command:
                found[int(path.parent.name)] = command
    return found


def remains_in(folder: Path) -> list[str]:
    """All that a demo with this folder for temporary files has left."""
    return [*processes_of(folder).values(), *(str(path) for path in folder.iterdir())]


StartDemo = Callable[..., Awaitable[Demo]]


@pytest.fixture
async def start_demo(synapse_python: Path, tmp_path: Path) -> AsyncIterator[StartDemo]:
    """Starts a demo: `await start_demo("--once")`; with `terminal` in a terminal of its own, else on pipes."""
    demos: list[Demo] = []
    environ = {**os.environ, "TMPDIR": str(tmp_path), "MINDBRIDGE_SYNAPSE": str(synapse_python.parents[1])}

    async def start(*arguments: str, terminal: bool = False, **variables: str) -> Demo:
        command = (sys.executable, "-m", "mindbridge", "demo", *arguments)
        run = _in_terminal if terminal else _on_pipes
        demos.append(await run(command, environ | variables, tmp_path))
        return demos[-1]

    yield start
    for demo in demos:
        demo.hang_up()
        if demo.process.returncode is None:
            demo.process.kill()
            await demo.process.wait()


async def _on_pipes(command: Sequence[str], environ: Mapping[str, str], folder: Path) -> Demo:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, env=environ, stdin=PIPE, stdout=PIPE, stderr=asyncio.subprocess.STDOUT
    )
    typing, output = process.stdin, process.stdout
    assert typing is not None
    assert output is not None
    return Demo(process, output, lambda text: typing.write(text.encode()), typing.close, folder)


async def _in_terminal(command: Sequence[str], environ: Mapping[str, str], folder: Path) -> Demo:
    person, program = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *("setsid", "--ctty", *command), cwd=ROOT, env=environ, stdin=program, stdout=program, stderr=program
    )
    os.close(program)
    output = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(output), os.fdopen(person, "rb", buffering=0)
    )

    def send(text: str) -> None:
        os.write(person, text.encode())

    return Demo(process, output, send, transport.close, folder)


async def test_once_plays_a_whole_conversation_and_finds_all_of_it_right(start_demo: StartDemo) -> None:
    demo = await start_demo("--once")
    await demo.wait_for(
        "You         hello",
        "Assistant ↳ Hello, You!",
        "What would you like to see?",
        "1. 🚀 A plain choice",
        MENU_BUTTONS,
        "You         clicked 🚀",
        APPROACH_BUTTONS,
        "You         clicked 👯 under an earlier question",
        "already answered",
        "You       ↳ 2",
        "Assistant ↳ You chose **2. Careful and manual**",
        MENU_BUTTONS,
        "You         @helper are you there?",
        "Helper    ↳ ",
    )
    assert await demo.end() == 0
    assert demo.written.count("\nok     ") == 9
    assert "WRONG" not in demo.written
    assert "Assistant ↳ ✔ 1. 🚀 A plain choice · You · " in demo.written
    assert "Assistant ↳ ✔ 2. 🔍 Careful and manual · You · " in demo.written
    assert "\x1b" not in demo.written
    assert remains_in(demo.folder) == []


async def test_lines_from_a_pipe_are_answered_one_after_the_other(start_demo: StartDemo) -> None:
    demo = await start_demo()
    demo.send("hello\n1\n/react 🔍\n/new @helper hello\n/react 2")
    demo.hang_up()
    await demo.wait_for(
        "You         hello",
        MENU_BUTTONS,
        "You       ↳ 1",
        "Assistant ↳ You chose **1. A plain choice**",
        APPROACH_BUTTONS,
        "You         clicked 🔍️",
        "Assistant ↳ You chose **2. Careful and manual**",
        MENU_BUTTONS,
        "You         @helper hello",
        "Helper    ↳ Hello, You!",
        MENU_BUTTONS,
        "You         clicked 2️⃣",
        "Helper    ↳ You chose **2. Options that share an emoji**",
        "[1️⃣] [2️⃣] [3️⃣]",
    )
    assert await demo.end() == 0
    assert demo.written.count("✔") == 3
    assert remains_in(demo.folder) == []


async def test_ctrl_c_in_a_terminal_leaves_nothing_behind(start_demo: StartDemo) -> None:
    demo = await start_demo(terminal=True)
    await demo.wait_for("password", PROMPT)
    assert len(processes_of(demo.folder)) == 2
    demo.send("hello\n")
    await demo.wait_for("Assistant \x1b[0m↳ Hello, You!", MENU_BUTTONS, PROMPT_IN_THREAD)
    demo.send("1\n")
    await demo.wait_for(APPROACH_BUTTONS, PROMPT_IN_THREAD)
    demo.send("/nothing\n")
    await demo.wait_for("There is no command /nothing", PROMPT_IN_THREAD)
    demo.send(CTRL_C)
    assert await demo.end() == 0
    assert remains_in(demo.folder) == []
    assert demo.written.endswith("^C\r\n")


async def test_the_end_of_the_input_ends_the_demo_and_no_color_means_no_colour(start_demo: StartDemo) -> None:
    demo = await start_demo(terminal=True, NO_COLOR="1")
    await demo.wait_for("password", "You         ")
    demo.send("/help\n")
    await demo.wait_for("/react 🚀", "You         ")
    demo.send(CTRL_D)
    assert await demo.end() == 0
    assert COLOUR.search(demo.written) is None
    assert remains_in(demo.folder) == []


async def test_a_closed_terminal_leaves_nothing_behind(start_demo: StartDemo) -> None:
    demo = await start_demo(terminal=True)
    await demo.wait_for("Starting the bridge")
    demo.hang_up()
    await demo.process.wait()
    assert remains_in(demo.folder) == []


@pytest.mark.parametrize("moment", ["throwaway homeserver", "Starting the bridge", "hello"])
async def test_a_demo_ended_half_way_leaves_nothing_behind(start_demo: StartDemo, moment: str) -> None:
    demo = await start_demo("--once")
    await demo.wait_for(moment)
    demo.process.terminate()
    assert await demo.end() == 1
    assert remains_in(demo.folder) == []


async def test_a_killed_demo_takes_bridge_and_homeserver_with_it(start_demo: StartDemo) -> None:
    demo = await start_demo()
    await demo.wait_for("password")
    assert len(processes_of(demo.folder)) == 2
    demo.process.kill()
    await demo.process.wait()
    await wait_until(lambda: not processes_of(demo.folder))


@pytest.mark.parametrize("arguments", [(), ("--once",)], ids=["chat", "once"])
async def test_a_bridge_that_ends_by_itself_fails_the_demo(start_demo: StartDemo, arguments: Sequence[str]) -> None:
    demo = await start_demo(*arguments)
    await demo.wait_for("Assistant joined")
    (bridge,) = (pid for pid, command in processes_of(demo.folder).items() if " run -c " in command)
    os.kill(bridge, signal.SIGKILL)
    assert await demo.end() == 1
    assert "The bridge ended by itself" in demo.written
    assert "ready agents=2" in demo.written
    assert remains_in(demo.folder) == []


async def test_a_missing_synapse_is_told_with_the_command_that_installs_it(start_demo: StartDemo) -> None:
    demo = await start_demo("--once", MINDBRIDGE_SYNAPSE="/nowhere")
    assert await demo.end() == 1
    assert "/nowhere holds no Synapse" in demo.written
    assert "make setup" in demo.written
    assert remains_in(demo.folder) == []


async def test_a_synapse_that_does_not_start_leaves_nothing_behind(start_demo: StartDemo, tmp_path: Path) -> None:
    folder = tmp_path.with_name("no-synapse")
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    demo = await start_demo("--once", MINDBRIDGE_SYNAPSE=str(folder))
    assert await demo.end() == 1
    assert "No module named 'synapse'" in demo.written
    assert remains_in(demo.folder) == []
