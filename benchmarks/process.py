"""What a bridge costs while nothing happens, and how long `mindbridge --help` takes.

Run `python benchmarks/process.py` (on Linux). `mindbridge run` is started with one agent and with six, each of them in
a room with a person; their memory is read once it does not change any more. Exits 1 if a target is missed.
"""

import asyncio
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from stage import Stage, set_stage, until
from table import Figure, print_table

from mindbridge.demo.timeline import Joined

AGENTS: Final = 6
MOST_MB: Final = 90.0
MOST_MB_PER_AGENT: Final = 2.0
MOST_HELP_SECONDS: Final = 0.3
HELP_ROUNDS: Final = 15
MINDBRIDGE: Final = Path(sys.executable).with_name("mindbridge")

_READY: Final = "ready agents="
_JOIN_SECONDS: Final = 30
_SETTLING_SECONDS: Final = 60
_SAME_MB: Final = 0.1

AGENT = """
def reply(turn):
    return "Hello!"
"""


@asynccontextmanager
async def running_bridge(config: Path) -> AsyncIterator[int]:
    """Runs `mindbridge run` from the time that its agents are there; gives its process id."""
    log_path = config.with_name("bridge.log")
    with log_path.open("wb") as log:
        bridge = await asyncio.create_subprocess_exec(
            MINDBRIDGE, "run", "-c", config, stdin=subprocess.DEVNULL, stderr=log
        )
    try:
        await until(lambda: _READY in log_path.read_text("utf-8"))
        yield bridge.pid
    finally:
        bridge.send_signal(signal.SIGTERM)
        await bridge.wait()


async def idle_mb(stage: Stage, agents: int) -> float:
    """The memory of an idle bridge with so many agents, in MB (RSS)."""
    configured = await stage.configure(AGENT, agents=agents)
    async with running_bridge(configured.path) as pid:
        room = await stage.person.create_room("memory", configured.user_ids)
        joined: set[str] = set()
        async with asyncio.timeout(_JOIN_SECONDS):
            while not joined.issuperset(configured.user_ids):
                seen = await stage.person.sync(room, wait_seconds=_JOIN_SECONDS)
                joined |= {event.user for event in seen if isinstance(event, Joined)}
        return await settled_mb(pid)


async def settled_mb(pid: int) -> float:
    """The memory of a process once it does not change any more, in MB (RSS)."""
    before = _mb(pid)
    async with asyncio.timeout(_SETTLING_SECONDS):
        while True:
            await asyncio.sleep(2)
            if abs((now := _mb(pid)) - before) < _SAME_MB:
                return now
            before = now


def _mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(kilobytes) / 1024


def start_seconds() -> tuple[float, float]:
    """The median times of `mindbridge --help` and of Python doing nothing, run in turn."""
    ours, theirs = [], []
    for _ in range(HELP_ROUNDS):
        ours.append(_seconds(str(MINDBRIDGE), "--help"))
        theirs.append(_seconds(sys.executable, "-c", "pass"))
    return statistics.median(ours), statistics.median(theirs)


def _seconds(*command: str) -> float:
    start = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)  # noqa: S603 - programs of this very environment
    return time.monotonic() - start


async def main() -> int:
    """Prints the table; 1 if a target is missed."""
    async with set_stage() as stage:
        one, several = await idle_mb(stage, 1), await idle_mb(stage, AGENTS)
    help_seconds, bare_seconds = start_seconds()
    return print_table(
        "The process",
        [
            Figure("idle memory with one agent", one, MOST_MB, "MB"),
            Figure(
                f"each further agent, measured with {AGENTS}", (several - one) / (AGENTS - 1), MOST_MB_PER_AGENT, "MB"
            ),
            Figure(f"mindbridge --help, median of {HELP_ROUNDS}", help_seconds, MOST_HELP_SECONDS, "s"),
            Figure("for scale: python -c pass", bare_seconds, None, "s"),
        ],
    )


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
