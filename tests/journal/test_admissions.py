"""Admitting sync responses: once, whole, and with all that the decision needs to know."""

from typing import Any

import pytest

from mindbridge.bridge.admission import decide, interest_of
from mindbridge.bridge.replies import outcome_of
from mindbridge.events import Invite, Reaction, RoomEvent, SyncBatch
from mindbridge.ids import AgentName, DeliveryId, EventId, QuestionId, RoomId, UserId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database, JournalError
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Acknowledged, Decisions, Interest, Judged, Membership, Snapshot, Utterance
from mindbridge.journal.turns import TurnStore
from mindbridge.questions.answers import Verdict
from mindbridge.questions.lifecycle import State
from tests.journal.sample_rows import (
    ALICE,
    CRITIC,
    HELPER,
    HELPER_USER,
    NOTHING,
    NOW,
    ROOM,
    THREAD,
    admit,
    answer,
    asking,
    delivery,
    end,
    everything,
    outcome,
    queue,
    queued,
    record,
    rows,
    seen,
    send_all,
    sighting,
    take,
    turn,
    value,
)
from tests.unit import sample_room

REPLY = """Well.

```interactive
{"question": "Tea?", "options": [{"emoji": "🍵", "label": "Green"}, {"emoji": "☕", "label": "Black"}]}
```
"""


@pytest.fixture
def store(database: Database) -> AdmissionStore:
    return AdmissionStore(database)


async def snapshot(database: Database, agent: AgentName = HELPER, **interest: Any) -> Snapshot:
    """What a decision about a response would be given."""
    given: list[Snapshot] = []

    def look(seen_now: Snapshot) -> Decisions:
        given.append(seen_now)
        return Decisions()

    nothing = {"rooms": (), "events": (), "transactions": (), "targets": (), "claims": (), "threads": ()}
    await AdmissionStore(database).admit(agent, Interest(**(nothing | interest)), "s", look, NOW)
    return given[0]


# The account and its position


async def test_new_account_has_no_position_and_later_the_one_that_was_admitted(
    store: AdmissionStore, database: Database
) -> None:
    assert await store.record_account(HELPER, HELPER_USER, NOW) is None
    await admit(database, position="s1")
    await admit(database, position="s2")
    assert await store.record_account(HELPER, HELPER_USER, NOW) == "s2"
    assert await store.record_account(CRITIC, UserId("@critic:example.org"), NOW) is None


async def test_agents_new_account_begins_anew(store: AdmissionStore, database: Database) -> None:
    for agent in (HELPER, CRITIC):
        await store.record_account(agent, UserId(f"@{agent}:example.org"), NOW)
        await store.record_membership(agent, Membership(room_id=ROOM, state="joined", invited_ts=None))
        await admit(database, agent, position="s1")

    assert await store.record_account(HELPER, UserId("@successor:example.org"), NOW) is None

    assert await store.memberships(HELPER, "joined") == []
    assert len(await store.memberships(CRITIC, "joined")) == 1
    assert await store.record_account(CRITIC, UserId("@critic:example.org"), NOW) == "s1"


async def test_same_account_keeps_its_memberships(store: AdmissionStore) -> None:
    await store.record_account(HELPER, HELPER_USER, NOW)
    membership = Membership(room_id=ROOM, state="accepted", invited_ts=NOW)
    await store.record_membership(HELPER, membership)
    await store.record_account(HELPER, HELPER_USER, NOW)
    assert await store.memberships(HELPER, "accepted") == [membership]


async def test_membership_is_replaced_by_the_newer_one(store: AdmissionStore) -> None:
    for state in ("accepted", "joined"):
        await store.record_membership(HELPER, Membership(room_id=ROOM, state=state, invited_ts=NOW))
    assert await store.memberships(HELPER, "accepted") == []
    assert [each.room_id for each in await store.memberships(HELPER, "joined")] == [ROOM]


# Whole or not at all


async def test_decision_that_fails_leaves_nothing_and_the_position_as_it_was(
    store: AdmissionStore, database: Database
) -> None:
    await store.record_account(HELPER, HELPER_USER, NOW)
    await admit(database, position="s1")
    before = everything(database)

    def fail(_: Snapshot) -> Decisions:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.admit(HELPER, NOTHING, "s2", fail, NOW)
    assert everything(database) == before


async def test_decision_that_can_not_be_written_leaves_nothing_and_the_position_as_it_was(
    store: AdmissionStore, database: Database
) -> None:
    await store.record_account(HELPER, HELPER_USER, NOW)
    await admit(database, position="s1")
    before = everything(database)
    with pytest.raises(JournalError):
        await admit(database, position="s2", turns=[turn()], sightings=[sighting("$1", 1), sighting("$1", 2)])
    assert everything(database) == before


async def test_turn_that_the_journal_does_not_allow_is_an_error_and_not_left_out(database: Database) -> None:
    with pytest.raises(JournalError, match="CHECK constraint failed"):
        await admit(database, turns=[turn(kind="unknown")])
    with pytest.raises(JournalError, match="NOT NULL constraint failed"):
        await admit(database, turns=[turn(text=None)])


async def test_position_and_all_decisions_are_there_together(store: AdmissionStore, database: Database) -> None:
    await store.record_account(HELPER, HELPER_USER, NOW)
    await admit(
        database,
        position="s1",
        sightings=[sighting("$1", 1), sighting("$old", 2, judged=False)],
        turns=[turn()],
        deliveries=[delivery("notice", "notice")],
        verdicts=[
            Judged(event_id=EventId("$1"), question_id=None, sender=ALICE, verdict=Verdict.EDITED, reason="Because.")
        ],
        memberships=[Membership(room_id=ROOM, state="joined", invited_ts=None)],
    )
    assert rows(database, "SELECT next_batch FROM accounts") == [("s1",)]
    assert rows(database, "SELECT seq, agent, event_id, server_ts, judged FROM sightings") == [
        (1, "helper", "$1", NOW, 1),
        (2, "helper", "$old", NOW, 0),
    ]
    assert rows(database, "SELECT turn_id, state, queued_at FROM turns") == [("turn_one", "queued", NOW)]
    assert rows(database, "SELECT delivery_id, kind, state FROM deliveries") == [("notice", "notice", "pending")]
    assert rows(database, "SELECT event_id, question_id, sender, verdict, reason FROM verdicts") == [
        ("$1", None, ALICE, "edited", "Because.")
    ]
    assert rows(database, "SELECT agent, room_id, state FROM memberships") == [("helper", "!room", "joined")]


# Answers


async def test_answer_closes_its_question_queues_its_turn_and_withdraws_the_buttons(database: Database) -> None:
    await queue(database, turn())
    await end(database, "one", asking(buttons=1))
    await send_all(database)
    await admit(database, opened=[seen()])
    selection = await take(database)
    assert rows(database, "SELECT state, closed_seq FROM questions") == [("answered", 7)]
    assert rows(database, "SELECT question_id, source_event_id, turn_id, number, key FROM selections") == [
        ("question_q", "$click", selection, 1, "1")
    ]
    assert rows(database, "SELECT target_id, after_turn FROM deliveries WHERE kind = 'redaction'") == [
        ("q button 1", selection)
    ]


async def test_one_event_can_not_answer_two_questions_whosever_they_are(database: Database) -> None:
    await queue(database, turn("one"), turn("critics", agent=CRITIC))
    await end(database, "one", asking("q"))
    critics = await queued(database, "critics", CRITIC)
    await TurnStore(database).end(critics, UserId("@critic:example.org"), asking("c", "Coffee?"), NOW)
    await admit(database, opened=[seen("q", 1), seen("c", 2)])
    await take(database, "question_q", "$click")
    before = everything(database)
    other = turn("other", agent=CRITIC, source_event_id=EventId("$click"))
    _, selected = answer("question_c", "$click", turn_id=other.turn_id)
    with pytest.raises(JournalError, match="source_event_id"):
        await admit(database, CRITIC, turns=[other], selections=[selected])
    assert everything(database) == before


async def test_one_question_can_not_be_answered_twice(database: Database) -> None:
    await queue(database, turn())
    await end(database, "one", asking())
    await admit(database, opened=[seen()])
    await take(database, event_id="$first")
    before = everything(database)
    with pytest.raises(JournalError, match=r"selections\.question_id"):
        await take(database, event_id="$second")
    assert everything(database) == before


# What a decision is given


async def test_snapshot_of_an_empty_journal_is_empty(database: Database) -> None:
    assert await snapshot(
        database, rooms=(ROOM,), events=("$1",), threads=((ROOM, None),), targets=("$q",)
    ) == Snapshot(
        next_seq=1,
        sighted=frozenset(),
        judged=frozenset(),
        verdicts=frozenset(),
        questions=(),
        participations=frozenset(),
        memberships=(),
        turns_of_events={},
    )


async def test_snapshot_tells_what_this_account_saw_and_what_any_account_judged(database: Database) -> None:
    judged = Judged(event_id=EventId("$2"), question_id=None, sender=ALICE, verdict=Verdict.EDITED, reason="Because.")
    await admit(database, HELPER, sightings=[sighting("$1", 1, judged=False), sighting("$2", 2)], verdicts=[judged])
    await admit(database, CRITIC, sightings=[sighting("$1", 3), sighting("$3", 4, judged=False)])
    known = await snapshot(database, events=("$1", "$2", "$3", "$4"))
    assert known.next_seq == 5
    assert [set(each) for each in (known.sighted, known.judged, known.verdicts)] == [{"$1", "$2"}, {"$1", "$2"}, {"$2"}]


async def test_snapshot_tells_the_threads_in_which_this_agent_had_a_turn(database: Database) -> None:
    await queue(
        database,
        turn("one", thread_id=EventId("$a")),
        turn("two", thread_id=EventId("$b"), agent=CRITIC),
        turn("three", thread_id=None),
        turn("four", thread_id=EventId("$a"), room_id=RoomId("!other")),
    )
    threads = tuple((ROOM, thread) for thread in ("$a", "$b", "$c", None))
    assert (await snapshot(database, threads=threads)).participations == {(ROOM, "$a")}
    assert (await snapshot(database, CRITIC, threads=threads)).participations == {(ROOM, "$b")}


async def test_snapshot_tells_the_memberships_of_this_account_in_these_rooms(
    store: AdmissionStore, database: Database
) -> None:
    here = Membership(room_id=ROOM, state="accepted", invited_ts=NOW)
    await store.record_membership(HELPER, here)
    await store.record_membership(HELPER, Membership(room_id=RoomId("!other"), state="joined", invited_ts=None))
    await store.record_membership(CRITIC, Membership(room_id=ROOM, state="joined", invited_ts=None))
    assert (await snapshot(database, rooms=(ROOM,))).memberships == (here,)


async def test_snapshot_tells_turns_of_own_messages_by_event_and_by_transaction(database: Database) -> None:
    await record(
        database, delivery("sent", turn_id=turn().turn_id), delivery("button", "button", turn_id=turn().turn_id)
    )
    await send_all(database)
    await record(database, delivery("on its way", turn_id=turn("two").turn_id))
    known = await snapshot(
        database, events=("$event of sent", "$event of button", "$x"), transactions=("on its way", "x")
    )
    assert known.turns_of_events == {"$event of sent": "turn_one", "sent": "turn_one", "on its way": "turn_two"}


async def asked(database: Database, *names: str, thread: EventId | None = THREAD, text: str = "") -> None:
    for name in names:
        await queue(database, turn(f"of {name}", thread_id=thread))
        await end(database, f"of {name}", asking(name, text or f"{name}?", buttons=0))


def ids_of(known: Snapshot) -> list[str]:
    return [each.question_id.removeprefix("question_") for each in known.questions]


async def answered(database: Database, name: str, seq: int) -> None:
    await admit(database, opened=[seen(name, seq)])
    turn_id = await take(database, f"question_{name}", f"$answer to {name}")
    running = await queued(database, turn_id.removeprefix("turn_"))
    await TurnStore(database).end(running, HELPER_USER, outcome(), NOW)


async def test_snapshot_holds_the_rooms_unanswered_questions_and_the_newest_seen_of_room_and_threads(
    database: Database,
) -> None:
    other_thread = EventId("$other")
    await asked(database, "a1", "a2", "a3", thread=THREAD)
    for seq, name in enumerate(("a1", "a2"), start=1):
        await answered(database, name, seq)
    await asked(database, "b1", thread=other_thread)
    await answered(database, "b1", 3)
    assert ids_of(await snapshot(database, rooms=(ROOM,))) == ["a3", "b1"]
    assert ids_of(await snapshot(database, rooms=(ROOM,), threads=((ROOM, THREAD),))) == ["a2", "a3", "b1"]
    assert ids_of(await snapshot(database, targets=("$event of a1",))) == ["a1"]
    assert ids_of(await snapshot(database, rooms=(RoomId("!other"),), threads=((RoomId("!other"), THREAD),))) == []


async def test_newest_question_is_the_one_that_was_seen_last_not_the_one_recorded_last(database: Database) -> None:
    await asked(database, "first", "second")
    await answered(database, "second", 1)
    await answered(database, "first", 2)
    assert ids_of(await snapshot(database, threads=((ROOM, THREAD),))) == ["first"]
    assert ids_of(await snapshot(database, rooms=(ROOM,))) == ["first"]


async def test_newest_question_outside_threads_is_known_too(database: Database) -> None:
    await asked(database, "main", thread=None)
    await answered(database, "main", 1)
    assert ids_of(await snapshot(database, threads=((ROOM, None),))) == ["main"]
    assert ids_of(await snapshot(database, threads=((ROOM, THREAD),))) == []


async def test_snapshot_tells_a_question_whole(database: Database) -> None:
    await asked(database, "q")
    await send_all(database)
    await admit(database, opened=[seen(seq=3)])
    await take(database)
    (question,) = (await snapshot(database, rooms=(ROOM,))).questions
    assert {name: getattr(question, name) for name in question.__slots__} == {
        "seq": 1,
        "question_id": "question_q",
        "agent": "helper",
        "room_id": "!room",
        "thread_id": "$root",
        "turn_id": "turn_of q",
        "delivery_id": "q",
        "event_id": "$event of q",
        "requester": ALICE,
        "text": "q?",
        "part": "part of q",
        "state": State.ANSWERED,
        "revision": 1,
        "recorded_at": NOW,
        "asked_ts": NOW,
        "opened_seq": 3,
        "closed_seq": 7,
        "taken_number": 1,
        "taken_by_name": "Alice",
        "taken_ts": NOW,
        "last_said_in_thread": 0,
        "last_said_in_room": 0,
    }


def utterance(event_id: str, seq: int, **changes: Any) -> Utterance:
    fields: dict[str, Any] = {
        "agent": HELPER,
        "room_id": ROOM,
        "thread_id": THREAD,
        "event_id": EventId(event_id),
        "turn_id": None,
        "seq": seq,
    }
    return Utterance(**(fields | changes))


async def last_said(database: Database, *said: Utterance) -> tuple[int, int]:
    await admit(database, utterances=list(said))
    (question,) = (await snapshot(database, rooms=(ROOM,))).questions
    return question.last_said_in_thread, question.last_said_in_room


async def test_what_the_agent_said_since_in_the_thread_and_in_the_room_is_known(database: Database) -> None:
    await asked(database, "q")
    assert await last_said(database) == (0, 0)
    assert await last_said(database, utterance("$1", 5, thread_id=None)) == (0, 5)
    assert await last_said(database, utterance("$2", 6), utterance("$3", 7)) == (7, 7)
    assert await last_said(database, utterance("$4", 8, thread_id=EventId("$other"))) == (7, 8)


async def test_what_others_said_or_said_elsewhere_does_not_count(database: Database) -> None:
    await asked(database, "q")
    assert await last_said(
        database, utterance("$1", 5, agent=CRITIC), utterance("$2", 6, room_id=RoomId("!other"))
    ) == (0, 0)


async def test_other_parts_of_the_reply_that_asked_do_not_count(database: Database) -> None:
    await asked(database, "q")
    assert await last_said(database, utterance("$q", 5, turn_id="turn_of q")) == (0, 0)
    assert await last_said(database, utterance("$later", 6, turn_id="turn_other")) == (6, 6)


async def test_part_that_another_account_saw_before_it_was_acknowledged_is_known_for_its_turns_afterwards(
    database: Database,
) -> None:
    await asked(database, "q")
    await record(database, delivery("part 2", turn_id="turn_of q"))
    assert await last_said(database, utterance("$event of part 2", 5)) == (5, 5)
    await send_all(database)
    assert await last_said(database) == (0, 0)


# Admitting the same twice, with the real decision


def batch(*events: RoomEvent, position: str = "s1", **changes: Any) -> SyncBatch:
    fields: dict[str, Any] = {"next_batch": position, "first": False, "invites": (), "left": ()}
    return SyncBatch(**({"joined": (sample_room.room(*events),)} | fields | changes))


async def admit_batch(database: Database, shown: SyncBatch, agent: AgentName = HELPER) -> Decisions:
    roster = sample_room.roster()
    return await AdmissionStore(database).admit(
        agent, interest_of(shown), shown.next_batch, lambda known: decide(agent, shown, roster, known), NOW
    )


async def run_turns(database: Database) -> None:
    store = TurnStore(database)
    for running, _ in await store.runnable(HELPER):
        await store.end(running, HELPER_USER, outcome_of(running, REPLY, 5), NOW)


def click(event_id: str, target: EventId, key: str = "🍵") -> Reaction:
    return Reaction(
        event_id=EventId(event_id), sender=ALICE, server_ts=NOW, sender_name="Alice", target=target, key=key
    )


async def admit_twice(database: Database, shown: SyncBatch) -> None:
    await admit_batch(database, shown)
    admitted = everything(database)
    assert await admit_batch(database, shown) == Decisions()
    assert everything(database) == admitted


async def test_every_response_of_a_conversation_admitted_again_changes_nothing(database: Database) -> None:
    await AdmissionStore(database).record_account(HELPER, HELPER_USER, NOW)
    hello = sample_room.message("hello", "$hello", mentions=frozenset({HELPER_USER}))
    await admit_twice(database, batch(joined=(), invites=(Invite(ROOM, ALICE, NOW),)))
    await admit_twice(database, batch(hello, position="s2"))
    await run_turns(database)
    message, *_ = await send_all(database)
    question, target = rows(database, "SELECT question_id, event_id FROM questions")[0]
    in_thread: dict[str, Any] = {"thread_id": EventId("$hello")}
    own: dict[str, Any] = {"question_id": question, "transaction_id": message.delivery_id}
    for position, event in enumerate(
        (
            sample_room.message("Tea?", target, HELPER_USER, **in_thread, **own),
            click("$click", target),
            click("$late", target, "☕"),
            sample_room.message("2", "$typed", **in_thread),
            sample_room.message("thanks", "$thanks", **in_thread),
        )
    ):
        await admit_twice(database, batch(event, position=f"t{position}"))

    assert rows(database, "SELECT source_event_id, number, key FROM selections") == [("$click", 1, "🍵")]
    assert rows(database, "SELECT event_id, verdict FROM verdicts ORDER BY decided_at, event_id") == [
        ("$click", "selected"),
        ("$late", "already_answered"),
        ("$typed", "already_answered"),
    ]
    assert rows(database, "SELECT source_event_id FROM turns ORDER BY seq") == [("$hello",), ("$click",), ("$thanks",)]
    assert value(database, "SELECT COUNT(*) FROM deliveries WHERE kind = 'notice'") == 1


async def test_answer_that_two_accounts_see_is_taken_once(database: Database) -> None:
    hello = sample_room.message("hello", "$hello", mentions=frozenset({HELPER_USER}))
    joined = (Membership(room_id=ROOM, state="joined", invited_ts=None),)
    for agent in (HELPER, CRITIC):
        await admit(database, agent, memberships=list(joined))
    await admit_batch(database, batch(hello))
    await admit_batch(database, batch(hello), CRITIC)
    await run_turns(database)
    await send_all(database)
    question, target = rows(database, "SELECT question_id, event_id FROM questions")[0]
    message = sample_room.message("Tea?", target, HELPER_USER, thread_id=EventId("$hello"), question_id=question)
    typed = sample_room.message("2", "$typed", thread_id=EventId("$hello"))

    await admit_batch(database, batch(message, typed), CRITIC)
    after_critic = everything(database)
    await admit_batch(database, batch(message, typed), HELPER)

    assert rows(database, "SELECT question_id, source_event_id, number FROM selections") == [(question, "$typed", 2)]
    assert rows(database, "SELECT agent, kind, source_event_id FROM turns ORDER BY seq") == [
        ("helper", "message", "$hello"),
        ("helper", "selection", "$typed"),
    ]
    changed = {name for name, found in everything(database).items() if found != after_critic[name]}
    assert changed == {"sightings"}


async def test_echo_of_an_own_message_acknowledges_its_delivery(database: Database) -> None:
    await record(database, delivery("mine"))
    await admit(database, acknowledged=[Acknowledged(delivery_id=DeliveryId("mine"), event_id=EventId("$mine"))])
    assert rows(database, "SELECT state, event_id, settled_at FROM deliveries") == [("sent", "$mine", NOW)]


async def test_echo_of_what_the_journal_did_not_send_is_noted_and_changes_nothing_else(database: Database) -> None:
    before = everything(database)
    await admit(database, acknowledged=[Acknowledged(delivery_id=DeliveryId("m123"), event_id=EventId("$mine"))])
    assert everything(database) == before | {"echoes": [("m123", "$mine", NOW)]}


def test_interest_names_all_that_the_response_touches() -> None:
    reply = sample_room.message("2", "$reply", thread_id=THREAD, reply_to=EventId("$question"), transaction_id="t1")
    interest = interest_of(
        batch(
            reply,
            click("$click", EventId("$clicked")),
            sample_room.message("Tea?", "$tea", question_id="question_1"),
            invites=(Invite(RoomId("!new"), ALICE, NOW),),
            left=(RoomId("!gone"),),
        )
    )
    assert {name: set(getattr(interest, name)) for name in interest.__slots__} == {
        "rooms": {ROOM, "!new", "!gone"},
        "events": {"$reply", "$click", "$tea"},
        "transactions": {"t1"},
        "targets": {"$question", "$clicked", THREAD},
        "claims": {"question_1"},
        "threads": {(ROOM, THREAD), (ROOM, None)},
    }


# Questions that are shown late


async def test_question_that_was_looked_up_gets_its_place_in_the_room_when_it_is_shown(database: Database) -> None:
    """Two of them have no order before that, and a typed number means the later one."""
    await queue(database, turn("one"), turn("two", source_event_id=EventId("$two")))
    await end(database, "one", asking("p", "Tea?"))
    await end(database, "two", asking("q", "Milk?"))
    for name in ("q", "p"):
        await Outbox(database).found(DeliveryId(name), EventId(f"$event of {name}"), NOW, NOW)

    await admit(database, opened=[seen("q", 4), seen("p", 5)])

    places = rows(database, "SELECT delivery_id, opened_seq FROM questions ORDER BY opened_seq")
    assert places == [("q", 4), ("p", 5)]


async def test_message_of_a_superseded_question_is_told_by_what_it_says_of_itself(database: Database) -> None:
    await queue(database, turn("one"), turn("two", source_event_id=EventId("$two")))
    await end(database, "one", asking("p"))
    await end(database, "two", asking("q"))
    claims = (QuestionId("question_p"),)
    assert [each.state for each in (await snapshot(database, CRITIC, claims=claims)).questions] == [State.SUPERSEDED]
