"""Rows as the bridge writes them, and the journal as it is looked at from outside."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from mindbridge import ids
from mindbridge.ids import AgentName, DeliveryId, EventId, QuestionId, RoomId, TurnId, UserId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.outbox import Outbox, record_deliveries
from mindbridge.journal.records import (
    Decisions,
    Delivery,
    Interest,
    NewDelivery,
    NewQuestion,
    NewTurn,
    Opened,
    QueuedTurn,
    Said,
    Selected,
    Sighting,
    Unanswered,
)
from mindbridge.journal.turns import Outcome, ReplyPart, TurnStore
from mindbridge.questions.model import Problem
from mindbridge.steps import Step

HELPER, CRITIC = AgentName("helper"), AgentName("critic")
HELPER_USER, ALICE = UserId("@helper:example.org"), UserId("@alice:example.org")
ROOM, THREAD = RoomId("!room"), EventId("$root")
NOW = 1_796_040_000_000
NOTHING = Interest(rooms=(), events=(), transactions=(), targets=(), claims=(), threads=())


def turn(name: str = "one", **changes: Any) -> NewTurn:
    """A turn of the helper's because of a message of Alice's in the thread, with what the test changes."""
    fields: dict[str, Any] = {
        "turn_id": TurnId(f"turn_{name}"),
        "agent": HELPER,
        "kind": "message",
        "room_id": ROOM,
        "thread_id": THREAD,
        "source_event_id": EventId(f"${name}"),
        "sender": ALICE,
        "sender_name": "Alice",
        "text": f"message {name}",
    }
    return NewTurn(**(fields | changes))


def delivery(name: str, kind: str = "message", **changes: Any) -> NewDelivery:
    """A delivery of the helper's, with what the test changes."""
    fields: dict[str, Any] = {
        "delivery_id": DeliveryId(name),
        "agent": HELPER,
        "room_id": ROOM,
        "kind": kind,
        "content": f'{{"body":"{name}"}}',
    }
    return NewDelivery(**(fields | changes))


def outcome(
    *deliveries: NewDelivery,
    question: NewQuestion | None = None,
    problems: Sequence[Problem] = (),
    parts: Sequence[tuple[str, str]] = (),
) -> Outcome:
    """What a reply led to; `parts` are delivery ids with what they say."""
    return Outcome(
        reply="the reply",
        parts=[ReplyPart(delivery_id=DeliveryId(delivery_id), text=text) for delivery_id, text in parts],
        question=question,
        deliveries=deliveries,
        problems=problems,
        supersede=superseding,
    )


def superseding(before: Unanswered) -> NewDelivery:
    """The edit that closes a question which was asked again."""
    return delivery(
        f"closing of {before.question_id}", "edit", question_id=before.question_id, target_id=before.delivery_id
    )


def asking(name: str = "q", text: str = "Tea?", buttons: int = 2) -> Outcome:
    """A reply that asks a question: its message `q`, its buttons `q button 1` and so on."""
    question_id = QuestionId(f"question_{name}")
    question = NewQuestion(
        question_id=question_id, delivery_id=DeliveryId(name), requester=ALICE, text=text, part=f"part of {name}"
    )
    about: dict[str, Any] = {"question_id": question_id, "target_id": DeliveryId(name)}
    shown = [delivery(f"{name} button {number}", "button", **about) for number in range(1, buttons + 1)]
    return outcome(delivery(name, question_id=question_id), *shown, question=question, parts=[(name, text)])


async def admit(database: Database, agent: AgentName = HELPER, position: str = "s1", **decided: Any) -> None:
    """Admits a sync response that means what the test says."""
    await AdmissionStore(database).admit(agent, NOTHING, position, lambda _: Decisions(**decided), NOW)


async def queue(database: Database, *turns: NewTurn) -> None:
    """Admits the messages that cause these turns."""
    said = [
        Said(
            room_id=each.room_id,
            thread_id=each.thread_id,
            event_id=each.source_event_id,
            sender=each.sender,
            text=each.text,
        )
        for each in turns
    ]
    await admit(database, said=said, turns=list(turns))


async def queued(database: Database, name: str = "one", agent: AgentName = HELPER) -> QueuedTurn:
    """The queued turn of that name."""
    runnable = await TurnStore(database).runnable(agent)
    return next(each for each, _ in runnable if each.turn_id == f"turn_{name}")


async def end(database: Database, name: str, ended: Outcome) -> None:
    """Ends the helper's turn of that name."""
    assert await TurnStore(database).end(await queued(database, name), HELPER_USER, ended, NOW)


async def record(database: Database, *deliveries: NewDelivery) -> None:
    """Records deliveries by themselves."""
    async with database.transaction(Step.ADMIT) as transaction:
        await record_deliveries(transaction, deliveries, NOW)


def seen(name: str = "q", seq: int = 1) -> Opened:
    """The question of that name was seen in its room."""
    question_id, event_id = QuestionId(f"question_{name}"), EventId(f"$event of {name}")
    return Opened(question_id=question_id, event_id=event_id, asked_ts=NOW, seq=seq)


def sighting(event_id: str, seq: int, *, judged: bool = True) -> Sighting:
    """An event was shown to the account."""
    return Sighting(seq=seq, event_id=EventId(event_id), server_ts=NOW, judged=judged)


def answer(question: str = "question_q", event_id: str = "$click", **changes: Any) -> tuple[NewTurn, Selected]:
    """Alice's click on the first option: the turn and the selection."""
    turn_id = ids.turn_id(HELPER, EventId(event_id))
    selected: dict[str, Any] = {
        "question_id": QuestionId(question),
        "source_event_id": EventId(event_id),
        "turn_id": turn_id,
        "answered_by": ALICE,
        "answered_by_name": "Alice",
        "number": 1,
        "key": "1",
        "answered_ts": NOW,
        "seq": 7,
    }
    caused = turn(turn_id=turn_id, kind="selection", source_event_id=EventId(event_id), text="chose", selection="{}")
    return caused, Selected(**(selected | changes))


async def take(database: Database, question: str = "question_q", event_id: str = "$click") -> TurnId:
    """Admits an answer; gives the id of its turn."""
    caused, selected = answer(question, event_id)
    await admit(database, turns=[caused], selections=[selected])
    return caused.turn_id


async def send_all(database: Database, agent: AgentName = HELPER) -> list[Delivery]:
    """Sends all that is due, as a server that takes everything; gives what was sent, in order."""
    outbox, sent = Outbox(database), list[Delivery]()
    while (due := await outbox.claim_next(agent, NOW)) is not None:
        sent.append(due)
        await outbox.acknowledge(due.delivery_id, EventId(f"$event of {due.delivery_id}"), NOW)
    return sent


def rows(database: Database, statement: str) -> list[tuple[Any, ...]]:
    """What a query gives through a connection of its own: what is committed."""
    with closing(sqlite3.connect(f"{database.path.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(statement).fetchall()


def value(database: Database, statement: str) -> Any:
    """The one value that a query gives."""
    ((found,),) = rows(database, statement)
    return found


def everything(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables."""
    tables = [name for (name,) in rows(database, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
    return {name: sorted(rows(database, f"SELECT * FROM {name}"), key=repr) for name in tables}  # noqa: S608 -- own names
