"""What the benchmarks play on: a throwaway Synapse, a person, and configurations of the bridge."""

import asyncio
import json
import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mindbridge.demo.homeserver import Homeserver
from mindbridge.demo.person import Person
from mindbridge.demo.synapse import find_synapse_python, throwaway_synapse
from mindbridge.ids import UserId

ROOT = Path(__file__).parents[1]

ASKING_AGENT = '''
"""Answers a message with a question of five buttons and a selection with a sentence; notes when it did."""
import time

# As any agent it takes a while, in which what its turn caused at the homeserver comes to an end.
WORK_SECONDS = 0.1

calls = []

QUESTION = """Before I start:

```interactive
{"question": "What approach would you prefer?",
 "options": [{"emoji": "🚀", "label": "Fast and automated", "value": 1},
             {"emoji": "🔍", "label": "Careful and manual", "value": 2},
             {"emoji": "🛑", "label": "Stop here", "value": 3},
             {"emoji": "💤", "label": "Not now", "value": 4},
             {"emoji": "🎲", "label": "Any of them", "value": 5}]}
```
"""

def reply(turn):
    called = time.monotonic()
    time.sleep(WORK_SECONDS)
    text = QUESTION if turn.kind == "message" else f"You chose {turn.selection.selected_option.label}."
    calls.append((turn.event_id, called, time.monotonic()))
    return text
'''
EVENTS_OF_A_QUESTION = 6
EVENTS_OF_AN_ANSWER = 2  # the closing edit and the reply


@dataclass(frozen=True, slots=True)
class Configured:
    """A configuration file, its agents' accounts in their order, and the name of the module with their program."""

    path: Path
    user_ids: tuple[UserId, ...]
    module: str


@dataclass(frozen=True, slots=True)
class Stage:
    """A homeserver, a person on it, and a folder that goes away at the end."""

    homeserver: Homeserver
    person: Person
    folder: Path

    async def configure(self, source: str, *, agents: int = 1) -> Configured:
        """Writes a configuration with fresh accounts.

        Args:
            source: the Python module whose function `reply` is the program of all agents.
            agents: how many there are: agent1, agent2 and so on.
        """
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        module = f"agent_{secrets.token_hex(4)}"
        (folder / f"{module}.py").write_text(source, "utf-8")
        configured: dict[str, object] = {}
        user_ids = []
        for number in range(1, agents + 1):
            password = secrets.token_hex(8)
            account = await self.homeserver.register(f"agent{number}-{secrets.token_hex(4)}", password)
            user_ids.append(UserId(account.user_id))
            configured[f"agent{number}"] = {
                "account": {"user_id": account.user_id, "password": password},
                "backend": {"type": "python", "python": f"{module}:reply"},
            }
        config = {"homeserver": self.homeserver.url, "access": {"users": ["*"]}, "agents": configured}
        path = folder / "config.yaml"
        path.write_text(json.dumps(config), "utf-8")
        return Configured(path, tuple(user_ids), module)


async def until(condition: Callable[[], bool], *, seconds: float = 30, poll_seconds: float = 0.02) -> None:
    """Waits until the condition holds.

    Raises:
        TimeoutError: it did not in time.
    """
    async with asyncio.timeout(seconds):
        while True:
            if condition():
                return
            await asyncio.sleep(poll_seconds)


@asynccontextmanager
async def set_stage(*, rate_limits: bool = False) -> AsyncIterator[Stage]:
    """Starts the homeserver, and ends and removes everything afterwards.

    Args:
        rate_limits: whether Synapse's default limits hold, though not for the person.

    Raises:
        HomeserverError: it did not start.
    """
    with tempfile.TemporaryDirectory(prefix="mindbridge-benchmark-") as name:
        folder = Path(name)
        async with throwaway_synapse(
            find_synapse_python(os.environ, ROOT), folder / "synapse", rate_limits=rate_limits
        ) as homeserver:
            account = await homeserver.register("alice", secrets.token_hex(8), display_name="Alice")
            if rate_limits:
                await homeserver.override_rate_limit(account.user_id, 0, 0)
            async with Person(homeserver.url, account) as person:
                yield Stage(homeserver, person, folder)
