"""What an agent's backend is, and which one a configuration asks for."""

import os
from pathlib import Path
from typing import Protocol

from mindbridge.agents.command import CommandAgent
from mindbridge.agents.demo import DemoAgent
from mindbridge.agents.failure import AgentFailed, BackendUnusable
from mindbridge.agents.python import PythonAgent, load_function
from mindbridge.agents.turn import Turn
from mindbridge.config.schema import AgentConfig, CommandBackend, DemoBackend, PythonBackend

__all__ = ["AgentFailed", "Backend", "BackendUnusable", "make_backend"]

_SPARE_THREADS = 16


class Backend(Protocol):
    """Who is asked to reply. May be asked for several turns at once."""

    async def reply(self, turn: Turn) -> str:
        """Gives the reply's Markdown; an empty one posts nothing.

        Raises:
            AgentFailed: There is no reply, the timeout included. A cancelled call leaves no process behind.
        """
        ...


def make_backend(agent: AgentConfig, folder: Path) -> Backend:
    """Makes the backend of `agent`, with its timeout. `folder` is that of the configuration file.

    A `python` backend is imported here, and a `command` gets the bridge's whole environment.

    Raises:
        BackendUnusable: The function of a `python` backend can't be imported or called.
    """
    match agent.backend:
        case CommandBackend() as backend:
            seconds = backend.timeout.total_seconds()
            return CommandAgent(backend.command, folder, timeout_seconds=seconds, environ=os.environ)
        case PythonBackend() as backend:
            seconds = backend.timeout.total_seconds()
            threads = agent.turns_at_once + _SPARE_THREADS
            return PythonAgent(load_function(backend.python, folder), timeout_seconds=seconds, threads=threads)
        case DemoBackend():
            return DemoAgent()
