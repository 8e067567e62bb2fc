"""A room with people and agents: the configuration, and events as an account is shown them."""

from pathlib import Path
from typing import Any

from mindbridge.bridge.roster import Roster
from mindbridge.config.schema import Access, AgentConfig, Config
from mindbridge.events import JoinedRoom, Message, RoomEvent
from mindbridge.ids import AgentName, EventId, RoomId, UserId

ROOM = RoomId("!room")
HELPER, CRITIC = AgentName("helper"), AgentName("critic")
HELPER_USER, CRITIC_USER = UserId("@helper:example.org"), UserId("@critic:example.org")
ALICE, BOB, STRANGER = UserId("@alice:example.org"), UserId("@bob:example.org"), UserId("@mallory:evil.example")
BOT = UserId("@weatherbot:example.org")
NOON = 1_796_040_000_000
"""2026-11-30 12:00 UTC, in milliseconds."""


def agent(user_id: str, **changes: Any) -> AgentConfig:
    """An agent's configuration, with what the test changes."""
    fields = {"account": {"user_id": user_id, "password": "secret"}, "backend": {"type": "demo"}}
    return AgentConfig.model_validate(fields | changes)


def roster(*, helper: dict[str, Any] | None = None, critic: dict[str, Any] | None = None) -> Roster:
    """Two agents, people of one server, and bots by their name; with what the test changes of the agents."""
    return Roster(
        Config(
            homeserver="https://example.org",
            journal=Path("/nowhere/journal"),
            access=Access(users=("@*:example.org",), bots=("@*bot:example.org",)),
            agents={
                "helper": agent(HELPER_USER, **(helper or {})),
                "critic": agent(CRITIC_USER, **(critic or {})),
            },
            folder=Path("/nowhere"),
        )
    )


def message(text: str, event_id: str = "$message", sender: UserId = ALICE, **changes: Any) -> Message:
    """A message of Alice's at noon, with what the test changes."""
    fields: dict[str, Any] = {
        "event_id": EventId(event_id),
        "sender": sender,
        "server_ts": NOON,
        "sender_name": sender[1:].split(":")[0].title(),
        "text": text,
    }
    return Message(**(fields | changes))


def room(*events: RoomEvent, members: frozenset[UserId] | None = None, limited: bool = False) -> JoinedRoom:
    """A room's part of a sync response; the two agents, Alice and Bob are in it unless the test says otherwise."""
    everyone = frozenset({HELPER_USER, CRITIC_USER, ALICE, BOB})
    return JoinedRoom(ROOM, everyone if members is None else members, limited, events)
