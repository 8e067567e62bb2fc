"""Questions that are to be compared with the server, and what was judged before their event was known."""

import pytest

from mindbridge.bridge.admission import decide, interest_of
from mindbridge.bridge.replies import outcome_of
from mindbridge.events import Reaction, RoomEvent, SyncBatch
from mindbridge.ids import AgentName, DeliveryId, EventId, QuestionId, RoomId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Decisions, Membership
from mindbridge.journal.turns import TurnStore
from tests.journal.sample_rows import (
    CRITIC,
    HELPER,
    HELPER_USER,
    NOW,
    ROOM,
    admit,
    asking,
    end,
    queue,
    rows,
    seen,
    send_all,
    take,
    turn,
    value,
)
from tests.unit import sample_room
from tests.unit.sample_questions import batch, click

REPLY = """```interactive
{"question": "Tea?", "options": [{"emoji": "🚀", "label": "Green"}, {"emoji": "🔍", "label": "Black"}]}
```
"""


@pytest.fixture
def store(database: Database) -> AdmissionStore:
    return AdmissionStore(database)


async def marked(store: AdmissionStore, agent: AgentName = HELPER) -> list[tuple[str, str]]:
    return [(each.question_id, each.event_id) for each in await store.to_compare(agent)]


async def ask(database: Database, name: str = "q", *, room_id: RoomId = ROOM, is_seen: bool = True) -> None:
    await queue(database, turn(f"of {name}", room_id=room_id))
    await end(database, f"of {name}", asking(name, f"{name}?", buttons=0))
    await send_all(database)
    if is_seen:
        await admit(database, opened=[seen(name)])


# Marked


async def test_gap_in_a_room_marks_its_open_questions_until_they_were_compared(
    store: AdmissionStore, database: Database
) -> None:
    await ask(database, "a")
    await ask(database, "b")
    await ask(database, "elsewhere", room_id=RoomId("!other"))
    assert await marked(store) == []
    await store.mark_gap(HELPER, ROOM)
    assert await marked(store) == [("question_a", "$event of a"), ("question_b", "$event of b")]
    assert await marked(store, CRITIC) == []
    await compare(database, "question_a")
    assert await marked(store) == [("question_b", "$event of b")]


async def test_question_that_the_server_has_is_marked_even_where_no_account_saw_it_yet(
    store: AdmissionStore, database: Database
) -> None:
    await ask(database, "q", is_seen=False)
    await store.mark_gap(HELPER, ROOM)
    assert await marked(store) == [("question_q", "$event of q")]


async def test_question_that_the_server_does_not_have_can_not_be_compared(
    store: AdmissionStore, database: Database
) -> None:
    await queue(database, turn())
    await end(database, "one", asking())
    await store.mark_gap(HELPER, ROOM)
    assert await marked(store) == []


async def test_answered_question_needs_no_comparison(store: AdmissionStore, database: Database) -> None:
    await ask(database)
    await store.mark_gap(HELPER, ROOM)
    await take(database)
    assert await marked(store) == []
    await store.mark_gap(HELPER, ROOM)
    assert await marked(store) == []


async def test_gap_in_another_accounts_room_marks_nothing(store: AdmissionStore, database: Database) -> None:
    await ask(database)
    await store.mark_gap(CRITIC, ROOM)
    assert await marked(store) == []


async def test_question_that_was_posted_otherwise_is_closed_and_not_compared(
    store: AdmissionStore, database: Database
) -> None:
    await queue(database, turn())
    await end(database, "one", asking())
    outbox = Outbox(database)
    await outbox.claim_next(HELPER, NOW)
    await outbox.found(DeliveryId("q"), EventId("$event of q"), NOW, NOW)
    await store.close_compared(QuestionId("question_q"), "posted_otherwise", NOW + 3)
    assert rows(database, "SELECT state, close_reason, closed_at FROM questions") == [
        ("closed", "posted_otherwise", NOW + 3)
    ]
    assert await marked(store) == []
    assert await send_all(database) == []


# Judged again


async def admit_batch(database: Database, shown: SyncBatch, agent: AgentName = HELPER) -> Decisions:
    roster = sample_room.roster()
    return await AdmissionStore(database).admit(
        agent, interest_of(shown), shown.next_batch, lambda known: decide(agent, shown, roster, known), NOW
    )


async def compare(database: Database, question: str, *reactions: RoomEvent) -> Decisions:
    """Takes in the reactions that the server has for a question."""
    shown, roster = batch(joined=(sample_room.room(*reactions),)), sample_room.roster()
    return await AdmissionStore(database).admit(
        HELPER,
        interest_of(shown),
        None,
        lambda known: decide(HELPER, shown, roster, known),
        NOW,
        compared=QuestionId(question),
    )


async def ask_for_real(database: Database) -> tuple[str, Reaction]:
    """A question whose message was tried with no word from the server; its id, and a click on it that was sighted."""
    store = AdmissionStore(database)
    await store.record_account(HELPER, HELPER_USER, NOW)
    for agent in (HELPER, CRITIC):
        await store.record_membership(agent, Membership(room_id=ROOM, state="joined", invited_ts=None))
    await admit_batch(database, batch(sample_room.message("hello", "$hello", mentions=frozenset({HELPER_USER}))))
    ((running, _),) = await TurnStore(database).runnable(HELPER)
    await TurnStore(database).end(running, HELPER_USER, outcome_of(running, REPLY, 5), NOW)
    clicked = click("🚀", target="$asked")
    for agent in (HELPER, CRITIC):
        await admit_batch(database, batch(clicked), agent)
    assert rows(database, "SELECT event_id, verdict FROM verdicts") == [("$click", "unknown_question")]
    due = await Outbox(database).claim_next(HELPER, NOW)
    assert due is not None
    await Outbox(database).found(due.delivery_id, EventId("$asked"), NOW, NOW)
    return str(value(database, "SELECT question_id FROM questions")), clicked


async def test_click_that_was_of_no_known_question_answers_once_the_question_is_compared(database: Database) -> None:
    question, clicked = await ask_for_real(database)
    position = value(database, "SELECT next_batch FROM accounts WHERE agent = 'helper'")
    await compare(database, question, clicked)
    assert rows(database, "SELECT question_id, source_event_id, number FROM selections") == [(question, "$click", 1)]
    assert rows(database, "SELECT event_id, question_id, verdict FROM verdicts") == [("$click", question, "selected")]
    assert await AdmissionStore(database).to_compare(HELPER) == []
    assert value(database, "SELECT next_batch FROM accounts WHERE agent = 'helper'") == position


async def test_click_that_is_shown_again_after_a_comparison_changes_nothing(database: Database) -> None:
    question, clicked = await ask_for_real(database)
    await compare(database, question, clicked)
    for agent in (HELPER, CRITIC):
        again = await admit_batch(database, batch(clicked), agent)
        assert (again.selections, again.turns, again.verdicts) == ([], [], [])
    assert value(database, "SELECT COUNT(*) FROM selections") == 1


async def test_comparison_judges_nothing_again_that_had_another_verdict(database: Database) -> None:
    question, clicked = await ask_for_real(database)
    stray = click("🎈", target="$asked", event_id="$stray")
    await admit_batch(database, batch(stray))
    decisions = await compare(database, question, stray, clicked)
    assert [each.event_id for each in decisions.verdicts] == ["$click"]
    assert rows(database, "SELECT event_id, verdict FROM verdicts ORDER BY event_id") == [
        ("$click", "selected"),
        ("$stray", "not_an_option"),
    ]


async def test_without_a_comparison_a_click_on_no_known_question_stays_without_effect(database: Database) -> None:
    _, clicked = await ask_for_real(database)
    await admit_batch(database, batch(clicked))
    assert value(database, "SELECT COUNT(*) FROM selections") == 0
