"""What a check found, and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from mindbridge.ids import AgentName

Check: TypeAlias = Literal[
    "homeserver",
    "clock",
    "journal",
    "disk",
    "login",
    "device",
    "encryption",
    "display_name",
    "rooms",
    "permissions",
    "rate_limit",
    "turns",
    "deliveries",
    "backend",
]
"""The names of all checks, in the order in which they are told."""


class Status(StrEnum):
    """How good it is; a `warn` leaves the bridge able to work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check.

    Args:
        name: the check's name.
        agent: the agent that it is about; None where it is about all of them.
        status: how good it is.
        found: what there is, in words.
        advice: what to do; None where nothing is to be done.
    """

    name: Check
    agent: AgentName | None
    status: Status
    found: str
    advice: str | None = None


def told(name: Check, agent: AgentName | None, error: Exception) -> Finding:
    """A failed check, of an error whose message says what is wrong and, after its last semicolon, what to do."""
    found, _, advice = str(error).rpartition("; ")
    return Finding(name, agent, Status.FAIL, found or advice, advice if found else None)
