"""A journal, new, with open questions in it, made through the bridge's own parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from mindbridge.bridge.pace import now_ms
from mindbridge.bridge.replies import outcome_of
from mindbridge.bridge.roster import Roster
from mindbridge.config.schema import Config
from mindbridge.ids import AgentName, EventId, RoomId, UserId, question_id, turn_id
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.records import (
    Acknowledged,
    Decisions,
    Interest,
    NewDelivery,
    NewTurn,
    Opened,
    Sighting,
    Snapshot,
)
from mindbridge.journal.turns import TurnStore

AGENT: Final = AgentName("assistant")
USER: Final = UserId("@assistant:example.org")
PERSON: Final = UserId("@alice:example.org")
ROOM: Final = RoomId("!room:example.org")
ASKING: Final = """Before I start:

```interactive
{"question": "What approach would you prefer?",
 "options": [{"emoji": "🚀", "label": "Fast"}, {"emoji": "🔍", "label": "Careful"}, {"emoji": "🛑", "label": "Stop"}]}
```
"""
NOTHING: Final = Interest(rooms=(), events=(), transactions=(), targets=(), claims=(), threads=())


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


@dataclass(frozen=True, slots=True)
class Asked:
    """An open question: its thread and its own event."""

    thread: EventId
    event_id: EventId


async def ask_questions(database: Database, name: str, number: int, *, thread: EventId | None = None) -> list[Asked]:
    """Asks so many questions in the room; all are seen there and their buttons sent.

    Args:
        database: the journal.
        name: makes the ids differ from those of other calls.
        number: how many.
        thread: where all of them are asked, so that each closes the one before; None: each in a thread of its own.
    """
    store, turns, questions = AdmissionStore(database), TurnStore(database), []
    for count in range(number):
        said = EventId(f"$root-{name}-{count}")
        asked = Asked(thread or said, EventId(f"$question-{name}-{count}"))
        turn = NewTurn(
            turn_id=turn_id(AGENT, said),
            agent=AGENT,
            kind="message",
            room_id=ROOM,
            thread_id=asked.thread,
            source_event_id=said,
            sender=PERSON,
            sender_name="Alice",
            text="ask me",
        )
        await store.admit(AGENT, NOTHING, None, partial(_queued, turn), now_ms())
        queued = next(each for each, _ in await turns.runnable(AGENT) if each.turn_id == turn.turn_id)
        outcome = outcome_of(queued, ASKING, 5)
        await turns.end(queued, USER, outcome, now_ms())
        await store.admit(AGENT, NOTHING, None, partial(_seen, asked, turn, outcome.deliveries), now_ms())
        questions.append(asked)
    return questions


def _queued(turn: NewTurn, _: Snapshot) -> Decisions:
    return Decisions(turns=[turn])


def _seen(asked: Asked, turn: NewTurn, deliveries: Sequence[NewDelivery], snapshot: Snapshot) -> Decisions:
    """What a sync response means that shows a question and its buttons."""
    events = [asked.event_id, *(EventId(f"{asked.event_id}-{place}") for place in range(1, len(deliveries)))]
    return Decisions(
        sightings=[
            Sighting(seq=seq, event_id=event, server_ts=0, judged=True)
            for seq, event in enumerate(events, start=snapshot.next_seq)
        ],
        opened=[
            Opened(question_id=question_id(turn.turn_id), event_id=asked.event_id, asked_ts=0, seq=snapshot.next_seq)
        ],
        acknowledged=[
            Acknowledged(delivery_id=each.delivery_id, event_id=event)
            for each, event in zip(deliveries, events, strict=True)
        ],
    )
