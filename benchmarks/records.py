"""A journal, new, with open questions in it, made through the bridge's own parts."""

from functools import partial
from pathlib import Path
from typing import Final

from mindbridge.bridge.replies import outcome_of
from mindbridge.bridge.roster import Roster
from mindbridge.config.schema import Config
from mindbridge.ids import AgentName, EventId, RoomId, UserId, question_id, turn_id
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.records import Acknowledged, Decisions, Interest, NewTurn, Opened, Sighting, Snapshot
from mindbridge.journal.turns import TurnStore

AGENT: Final = AgentName("assistant")
USER: Final = UserId("@assistant:example.org")
ROOM: Final = RoomId("!room:example.org")
ASKING: Final = """Before I start:

```interactive
{"question": "What approach would you prefer?",
 "options": [{"emoji": "🚀", "label": "Fast"}, {"emoji": "🔍", "label": "Careful"}, {"emoji": "🛑", "label": "Stop"}]}
```
"""
NOTHING: Final = Interest(rooms=(), events=(), transactions=(), targets=(), threads=())


def roster() -> Roster:
    """One agent that answers only when it is mentioned, and anyone may talk to it."""
    return Roster(
        Config.model_validate(
            {
                "homeserver": "https://matrix.example.org",
                "folder": Path("/"),
                "access": {"users": ("*",)},
                "agents": {
                    AGENT: {
                        "account": {"user_id": USER, "password": "unused"},
                        "backend": {"type": "demo"},
                        "respond": "mention",
                    }
                },
            }
        )
    )


async def ask_questions(database: Database, number: int, room: RoomId = ROOM) -> list[str]:
    """Asks so many open questions in a room, each in a thread of its own; gives their events."""
    store, turns, events = AdmissionStore(database), TurnStore(database), []
    for count in range(number):
        root = EventId(f"$root{count}")
        turn = NewTurn(
            turn_id=turn_id(AGENT, root),
            agent=AGENT,
            kind="message",
            room_id=room,
            thread_id=root,
            source_event_id=root,
            sender=UserId("@alice:example.org"),
            sender_name="Alice",
            text="ask me",
        )
        await store.admit(AGENT, NOTHING, None, partial(_decided, Decisions(turns=[turn])), 0)
        ((queued, _),) = await turns.runnable(AGENT)
        outcome = outcome_of(queued, ASKING, 5)
        await turns.end(queued, USER, outcome, 0)
        event = EventId(f"$question{count}")
        events.append(event)
        acknowledged = [
            Acknowledged(delivery_id=each.delivery_id, event_id=EventId(f"{event} {place}") if place else event)
            for place, each in enumerate(outcome.deliveries)
        ]
        asked = question_id(turn.turn_id)
        seen = Decisions(
            sightings=[Sighting(seq=count + 1, event_id=event, server_ts=0, judged=True)],
            opened=[Opened(question_id=asked, event_id=event, asked_ts=0, seq=count + 1)],
            acknowledged=acknowledged,
        )
        await store.admit(AGENT, NOTHING, None, partial(_decided, seen), 0)
    return [str(event) for event in events]


def _decided(decisions: Decisions, _: Snapshot) -> Decisions:
    return decisions
