"""Any history of a room, cut into responses in any way and seen by two accounts in any order, is judged once."""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mindbridge.bridge.admission import decide, interest_of
from mindbridge.events import RoomEvent, SyncBatch
from mindbridge.ids import AgentName, DeliveryId, EventId, UserId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.records import Decisions, Membership, NewQuestion
from mindbridge.journal.turns import TurnStore
from tests.journal.sample_rows import (
    CRITIC,
    HELPER,
    NOW,
    ROOM,
    admit,
    delivery,
    outcome,
    queue,
    queued,
    rows,
    send_all,
    turn,
)
from tests.unit.sample_questions import THREAD, batch, click, edit, part_of, redaction
from tests.unit.sample_room import ALICE, BOB, BOT, CRITIC_USER, HELPER_USER, STRANGER, message, room, roster

ACCOUNTS: dict[AgentName, UserId] = {HELPER: HELPER_USER, CRITIC: CRITIC_USER}
PEOPLE = st.sampled_from([ALICE, BOB, STRANGER, BOT])
QUESTION_EVENTS = st.sampled_from(["$event of q", "$event of c"])
TEXTS = st.sampled_from(["1", "2", "3", "9", "careful", "fast", "hello", "@helper:example.org hello"])


def to_events(kind: str, number: int, who: UserId, target: str, text: str) -> RoomEvent:
    """One event of the history; the number makes its id."""
    event_id, thread = f"${number}", {"thread_id": THREAD}
    match kind:
        case "click":
            return click({"1": "🚀", "2": "🔍"}.get(text, text), target, event_id, who)
        case "typed":
            return message(text, event_id, who, **thread)
        case "outside":
            return message(text, event_id, who)
        case "reply":
            return message(text, event_id, who, reply_to=EventId(target), **thread)
        case "edit":
            return edit(text, event_id, who)
        case "said":
            return message(text, event_id, HELPER_USER if number % 2 else CRITIC_USER, **thread)
        case _:
            return redaction(f"${max(number - 1, 0)}", event_id)


DRAWN = st.tuples(
    st.sampled_from(["click", "click", "typed", "typed", "outside", "reply", "edit", "said", "redaction"]),
    PEOPLE,
    QUESTION_EVENTS,
    TEXTS,
)


@st.composite
def histories(draw: st.DrawFn) -> tuple[RoomEvent, ...]:
    """What a room's timeline holds: two questions at any place among all else."""
    drawn = draw(st.lists(DRAWN, min_size=2, max_size=12))
    events = [to_events(kind, number, who, target, text) for number, (kind, who, target, text) in enumerate(drawn)]
    for name, sender in (("q", HELPER_USER), ("c", CRITIC_USER)):
        asked = message("?", f"$event of {name}", sender, thread_id=THREAD, question_id=f"question_{name}")
        events.insert(draw(st.integers(0, len(events))), asked)
    return tuple(events)


async def ask(database: Database, name: str, agent: AgentName) -> None:
    """The agent's turn has asked, and the server has its question."""
    source = EventId(f"$source of {name}")
    await queue(database, turn(name, agent=agent, source_event_id=source))
    question = NewQuestion(
        question_id=f"question_{name}",  # type: ignore[arg-type]
        delivery_id=DeliveryId(name),
        requester=ALICE,
        text=f"{name}?",
        part=part_of(f"{name}?"),
    )
    running = await queued(database, name, agent)
    ended = outcome(delivery(name, agent=agent, question_id=question.question_id), question=question)
    await TurnStore(database).end(running, ACCOUNTS[agent], ended, NOW)
    await send_all(database, agent)


async def admit_batch(database: Database, agent: AgentName, shown: SyncBatch) -> Decisions:
    who = roster(helper={"respond": "always"})
    return await AdmissionStore(database).admit(
        agent, interest_of(shown), shown.next_batch, lambda known: decide(agent, shown, who, known), NOW
    )


@settings(max_examples=30, deadline=None)
@given(history=histories(), data=st.data())
async def test_every_event_is_judged_once_whichever_account_sees_it_first(
    history: tuple[RoomEvent, ...], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as home:
        database = await Database.open(Path(home))
        try:
            for agent, name in ((HELPER, "q"), (CRITIC, "c")):
                joined = Membership(room_id=ROOM, state="joined", invited_ts=None)
                await admit(database, agent, memberships=[joined])
                await ask(database, name, agent)
            shown = dict.fromkeys(ACCOUNTS, 0)
            while unfinished := [agent for agent, until in shown.items() if until < len(history)]:
                agent = data.draw(st.sampled_from(unfinished))
                until = data.draw(st.integers(shown[agent] + 1, len(history)))
                response = batch(joined=(room(*history[shown[agent] : until]),), next_batch=f"s{until}")
                await admit_batch(database, agent, response)
                assert await admit_batch(database, agent, response) == Decisions()
                shown[agent] = until
            assert_judged_once(database, history)
        finally:
            await database.close()


def assert_judged_once(database: Database, history: tuple[RoomEvent, ...]) -> None:
    sighted = Counter(rows(database, "SELECT agent, event_id FROM sightings"))
    assert sighted == Counter((agent, event.event_id) for agent in ACCOUNTS for event in history)

    verdicts: dict[str, Any] = dict(rows(database, "SELECT event_id, verdict FROM verdicts"))
    selections = rows(database, "SELECT question_id, source_event_id, turn_id FROM selections")
    assert {source for _, source, _ in selections} == {
        event for event, verdict in verdicts.items() if verdict == "selected"
    }
    assert {question for question, _, _ in selections} == {
        question for (question,) in rows(database, "SELECT question_id FROM questions WHERE state = 'answered'")
    }
    assert {state for (state,) in rows(database, "SELECT state FROM questions")} <= {"open", "answered"}

    turns = rows(
        database, "SELECT agent, kind, source_event_id, turn_id FROM turns WHERE source_event_id GLOB '$[0-9]*'"
    )
    assert {(source, turn_id) for _, kind, source, turn_id in turns if kind == "selection"} == {
        (source, turn_id) for _, source, turn_id in selections
    }
    assert not {source for _, kind, source, _ in turns if kind == "message"} & set(verdicts)
    assert {sender for (sender,) in rows(database, "SELECT DISTINCT sender FROM turns")} <= {ALICE, BOB}
