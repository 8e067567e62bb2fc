"""Turns: which may run, how they end, and what their agents are told."""

import pytest

from mindbridge.ids import AgentName, DeliveryId, EventId, QuestionId, RoomId, TurnId, UserId
from mindbridge.journal.database import Database, JournalError
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import QueuedTurn, Said
from mindbridge.journal.turns import TurnStore
from mindbridge.questions.model import Problem, ProblemCode
from tests.journal.sample_rows import (
    ALICE,
    CRITIC,
    HELPER,
    HELPER_USER,
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
    rows,
    seen,
    send_all,
    take,
    turn,
    value,
)

CUT = Problem(ProblemCode.OPTIONS_TRUNCATED, "Only 5 of 7.")
LOST = Problem(ProblemCode.BLOCK_UNREADABLE, "The block is no JSON.")


@pytest.fixture
def store(database: Database) -> TurnStore:
    return TurnStore(database)


async def runnable(store: TurnStore, agent: AgentName = HELPER) -> list[str]:
    return [each.turn_id.removeprefix("turn_") for each, _ in await store.runnable(agent)]


def state(database: Database, name: str = "one") -> tuple[str, int, str | None]:
    (found,) = rows(database, f"SELECT state, failures, error FROM turns WHERE turn_id = 'turn_{name}'")  # noqa: S608 -- own names
    return found


# In order


async def test_queued_turn_comes_back_as_it_was_recorded(store: TurnStore, database: Database) -> None:
    caused, selected = answer(question="question_q")
    await queue(database, turn())
    await end(database, "one", asking())
    await admit(database, opened=[seen()], turns=[caused], selections=[selected])
    assert await store.runnable(HELPER) == [
        (
            QueuedTurn(
                turn_id=caused.turn_id,
                agent=HELPER,
                kind="selection",
                room_id=ROOM,
                thread_id=THREAD,
                source_event_id=EventId("$click"),
                sender=ALICE,
                sender_name="Alice",
                text="chose",
                selection="{}",
                failures=0,
            ),
            0,
        )
    ]


async def test_first_turn_of_each_thread_may_run_in_the_order_of_their_coming(
    store: TurnStore, database: Database
) -> None:
    await queue(
        database,
        turn("a1", thread_id=EventId("$a")),
        turn("b1", thread_id=EventId("$b")),
        turn("a2", thread_id=EventId("$a")),
        turn("main1", thread_id=None),
        turn("main2", thread_id=None),
        turn("other room", thread_id=EventId("$a"), room_id=RoomId("!other")),
        turn("critics", thread_id=EventId("$a"), agent=CRITIC),
        turn("b2", thread_id=EventId("$b")),
    )
    assert await runnable(store) == ["a1", "b1", "main1", "other room"]
    assert await runnable(store, CRITIC) == ["critics"]
    await end(database, "a1", outcome())
    await end(database, "main1", outcome())
    assert await runnable(store) == ["b1", "a2", "main2", "other room"]


async def test_delayed_turn_holds_back_its_own_thread_only(store: TurnStore, database: Database) -> None:
    await queue(database, turn("one"), turn("two"), turn("elsewhere", thread_id=EventId("$elsewhere")))
    await store.delay(TurnId("turn_one"), "broke", NOW + 1_000)
    due = {each.turn_id: due_at for each, due_at in await store.runnable(HELPER)}
    assert due == {"turn_one": NOW + 1_000, "turn_elsewhere": 0}
    assert state(database) == ("queued", 1, "broke")
    assert (await queued(database, "one")).failures == 1


async def test_parked_turn_lets_those_behind_it_go_on(store: TurnStore, database: Database) -> None:
    await queue(database, turn("one"), turn("two"))
    await store.park(TurnId("turn_one"), "broke", delivery("parked", "notice"), NOW)
    assert await runnable(store) == ["two"]
    assert state(database) == ("parked", 1, "broke")
    assert [each.delivery_id for each in await send_all(database)] == ["parked"]


async def test_turn_that_is_parked_again_posts_no_second_notice(store: TurnStore, database: Database) -> None:
    await queue(database, turn())
    for number in (1, 2):
        await store.park(TurnId("turn_one"), f"broke {number}", delivery("parked", "notice"), NOW)
        assert state(database) == ("parked", number, f"broke {number}")
        assert await store.requeue(TurnId("turn_one"))
    assert [each.delivery_id for each in await send_all(database)] == ["parked"]


async def test_only_a_parked_turn_can_be_requeued(store: TurnStore, database: Database) -> None:
    await queue(database, turn("one"), turn("two"))
    await end(database, "one", outcome())
    assert [await store.requeue(TurnId(name)) for name in ("turn_one", "turn_two", "turn_none")] == [False] * 3
    await store.park(TurnId("turn_two"), "broke", delivery("parked", "notice"), NOW)
    assert await store.requeue(TurnId("turn_two"))
    assert await runnable(store) == ["two"]


async def test_requeued_turn_is_due_at_once_and_keeps_its_failures(store: TurnStore, database: Database) -> None:
    await queue(database, turn())
    await store.delay(TurnId("turn_one"), "broke", NOW + 60_000)
    await store.park(TurnId("turn_one"), "broke again", delivery("parked", "notice"), NOW)
    await store.requeue_parked(HELPER)
    ((requeued, due_at),) = await store.runnable(HELPER)
    assert (requeued.failures, due_at) == (2, 0)


async def test_parked_turns_run_again_after_their_agents_next_success_and_not_anothers(
    store: TurnStore, database: Database
) -> None:
    await queue(database, turn("one"), turn("critics", agent=CRITIC), turn("two"), turn("three"))
    await store.park(TurnId("turn_one"), "broke", delivery("parked", "notice"), NOW)
    assert await store.end(await queued(database, "critics", CRITIC), HELPER_USER, outcome(), NOW)
    assert await runnable(store) == ["two"]
    await end(database, "two", outcome())
    assert await runnable(store) == ["one"]


async def test_start_requeues_the_agents_parked_turns_only(store: TurnStore, database: Database) -> None:
    await queue(database, turn("one"), turn("critics", agent=CRITIC))
    for name in ("turn_one", "turn_critics"):
        await store.park(TurnId(name), "broke", delivery(f"parked {name}", "notice"), NOW)
    await store.requeue_parked(HELPER)
    assert (await runnable(store), await runnable(store, CRITIC)) == (["one"], [])


# Ended once


async def test_turn_ends_once(store: TurnStore, database: Database) -> None:
    await queue(database, turn())
    running = await queued(database)
    assert await store.end(running, HELPER_USER, asking("q", "Tea?"), NOW)
    ended = everything(database)
    assert not await store.end(running, HELPER_USER, asking("other", "Coffee?"), NOW)
    assert everything(database) == ended


async def test_all_that_a_turn_leads_to_is_there_together(database: Database) -> None:
    await queue(database, turn())
    await end(database, "one", asking())
    assert rows(database, "SELECT state, reply, ended_at FROM turns") == [("done", "the reply", NOW)]
    assert rows(database, "SELECT question_id, agent, room_id, thread_id, requester, text, state FROM questions") == [
        ("question_q", "helper", "!room", "$root", ALICE, "Tea?", "posting")
    ]
    assert rows(database, "SELECT delivery_id FROM deliveries ORDER BY seq") == [
        ("q",),
        ("q button 1",),
        ("q button 2",),
    ]


async def test_end_that_can_not_be_written_leaves_the_turn_queued_and_nothing_else(
    store: TurnStore, database: Database
) -> None:
    await queue(database, turn("one"), turn("two"))
    await end(database, "one", asking())
    before = everything(database)
    with pytest.raises(JournalError):
        await store.end(await queued(database, "two"), HELPER_USER, asking(text="Same ids, other text?"), NOW)
    assert everything(database) == before
    assert await runnable(store) == ["two"]


async def test_turn_that_ended_can_not_fail_any_more(store: TurnStore, database: Database) -> None:
    await queue(database, turn())
    await end(database, "one", outcome())
    before = everything(database)
    await store.delay(TurnId("turn_one"), "broke", NOW + 1)
    await store.park(TurnId("turn_one"), "broke", delivery("parked", "notice"), NOW)
    assert everything(database) == before


# Problems


async def problems_told(store: TurnStore, database: Database, name: str, agent: AgentName = HELPER) -> list[Problem]:
    return list((await store.context(await queued(database, name, agent))).problems)


async def test_problems_are_told_to_the_next_turn_of_the_thread_and_no_later_one(
    store: TurnStore, database: Database
) -> None:
    await queue(database, turn("one"), turn("two"), turn("three"))
    await end(database, "one", outcome(problems=[CUT, LOST]))
    assert await problems_told(store, database, "two") == [CUT, LOST]
    await end(database, "two", outcome())
    assert await problems_told(store, database, "three") == []


async def test_problems_are_told_again_when_the_turn_is_tried_again(store: TurnStore, database: Database) -> None:
    await queue(database, turn("one"), turn("two"))
    await end(database, "one", outcome(problems=[CUT]))
    assert await problems_told(store, database, "two") == [CUT]
    await store.delay(TurnId("turn_two"), "broke", 0)
    assert await problems_told(store, database, "two") == [CUT]


async def test_problems_that_a_parked_turn_was_told_are_told_to_the_one_behind_it(
    store: TurnStore, database: Database
) -> None:
    await queue(database, turn("one"), turn("two"), turn("three"))
    await end(database, "one", outcome(problems=[CUT]))
    assert await problems_told(store, database, "two") == [CUT]
    await store.park(TurnId("turn_two"), "broke", delivery("parked", "notice"), NOW)
    assert await problems_told(store, database, "three") == [CUT]
    await end(database, "three", outcome())
    assert await problems_told(store, database, "two") == []


async def test_problem_that_comes_up_while_a_turn_runs_is_told_to_the_next_one(
    store: TurnStore, database: Database
) -> None:
    await queue(database, turn("one"), turn("two"), turn("three"))
    await end(database, "one", asking())
    running = await queued(database, "two")
    assert (await store.context(running)).problems == ()
    outbox = Outbox(database)
    assert (await outbox.claim_next(HELPER, NOW)) is not None
    await outbox.refuse(DeliveryId("q"), "403 M_FORBIDDEN", NOW, lambda _: delivery("never", "edit"))
    await store.end(running, HELPER_USER, outcome(), NOW)
    assert [problem.code for problem in await problems_told(store, database, "three")] == ["question_not_posted"]


async def test_problems_stay_in_their_thread_and_with_their_agent(store: TurnStore, database: Database) -> None:
    await queue(
        database,
        turn("one"),
        turn("critics", agent=CRITIC),
        turn("elsewhere", thread_id=EventId("$elsewhere")),
        turn("main", thread_id=None),
        turn("two"),
    )
    await end(database, "one", outcome(problems=[CUT]))
    assert await problems_told(store, database, "critics", CRITIC) == []
    assert await problems_told(store, database, "elsewhere") == []
    assert await problems_told(store, database, "main") == []
    assert await problems_told(store, database, "two") == [CUT]


async def test_problems_outside_threads_are_told_outside_threads(store: TurnStore, database: Database) -> None:
    await queue(database, turn("one", thread_id=None), turn("two", thread_id=None))
    await end(database, "one", outcome(problems=[CUT]))
    assert await problems_told(store, database, "two") == [CUT]


# History


async def history(store: TurnStore, database: Database, name: str, agent: AgentName = HELPER) -> list[tuple[str, str]]:
    context = await store.context(await queued(database, name, agent))
    return [(sender[1:].split(":")[0], text) for sender, text in context.history]


async def test_history_is_what_was_said_before_in_order_with_the_agents_replies(
    store: TurnStore, database: Database
) -> None:
    await queue(database, turn("one"))
    await end(database, "one", outcome(delivery("r1"), delivery("r2"), parts=[("r1", "reply 1"), ("r2", "reply 2")]))
    await queue(database, turn("two"))
    assert await history(store, database, "two") == [
        ("alice", "message one"),
        ("helper", "reply 1"),
        ("helper", "reply 2"),
    ]


async def test_history_has_neither_the_turns_own_message_nor_those_that_came_after_it(
    store: TurnStore, database: Database
) -> None:
    await queue(database, turn("one"), turn("two"), turn("three"))
    assert await history(store, database, "one") == []
    await end(database, "one", outcome(delivery("r1"), parts=[("r1", "reply 1")]))
    assert await history(store, database, "two") == [("alice", "message one"), ("helper", "reply 1")]


async def test_threads_root_is_in_its_history_and_other_threads_are_not(store: TurnStore, database: Database) -> None:
    root = Said(room_id=ROOM, thread_id=None, event_id=THREAD, sender=ALICE, text="the root")
    beside = Said(room_id=ROOM, thread_id=None, event_id=EventId("$beside"), sender=ALICE, text="beside")
    elsewhere = Said(room_id=RoomId("!other"), thread_id=THREAD, event_id=EventId("$x"), sender=ALICE, text="elsewhere")
    await admit(database, said=[beside, root, elsewhere])
    await queue(database, turn("one"), turn("main", thread_id=None))
    assert await history(store, database, "one") == [("alice", "the root")]
    assert await history(store, database, "main") == [("alice", "beside"), ("alice", "the root")]


async def test_message_that_starts_a_thread_is_not_in_the_history_of_its_own_turn(
    store: TurnStore, database: Database
) -> None:
    root = Said(room_id=ROOM, thread_id=None, event_id=THREAD, sender=ALICE, text="the root")
    await admit(database, said=[root], turns=[turn("one", source_event_id=THREAD)])
    assert await history(store, database, "one") == []
    await queue(database, turn("two"))
    await end(database, "one", outcome(delivery("r1"), parts=[("r1", "reply 1")]))
    assert await history(store, database, "two") == [("alice", "the root"), ("helper", "reply 1")]


async def test_message_to_two_agents_stands_in_the_history_once(store: TurnStore, database: Database) -> None:
    await queue(database, turn("one"), turn("critics", agent=CRITIC, source_event_id=EventId("$one")))
    await queue(database, turn("two"))
    await end(database, "one", outcome())
    assert await history(store, database, "two") == [("alice", "message one")]


async def test_what_the_server_refused_is_no_part_of_the_history(store: TurnStore, database: Database) -> None:
    await queue(database, turn("one"), turn("two"))
    await end(database, "one", outcome(delivery("r1"), delivery("r2"), parts=[("r1", "refused"), ("r2", "taken")]))
    outbox = Outbox(database)
    assert (await outbox.claim_next(HELPER, NOW)) is not None
    await outbox.refuse(DeliveryId("r1"), "413 M_TOO_LARGE", NOW, lambda _: delivery("never", "edit"))
    assert await history(store, database, "two") == [("alice", "message one"), ("helper", "taken")]


async def test_history_is_the_newest_fifty(store: TurnStore, database: Database) -> None:
    await queue(database, *(turn(str(number)) for number in range(60)), turn("last"))
    for number in range(60):
        await store.park(TurnId(f"turn_{number}"), "broke", delivery("parked", "notice"), NOW)
    assert await history(store, database, "last") == [("alice", f"message {number}") for number in range(10, 60)]


# Open questions


async def open_questions(store: TurnStore, database: Database, name: str) -> list[tuple[QuestionId, EventId, str]]:
    return list((await store.context(await queued(database, name))).open_questions)


async def test_open_questions_are_the_posted_ones_of_the_thread_oldest_first(
    store: TurnStore, database: Database
) -> None:
    await queue(database, turn("one"), turn("two"), turn("three"), turn("elsewhere", thread_id=EventId("$elsewhere")))
    await end(database, "one", asking("q1", "Tea?"))
    await end(database, "two", asking("q2", "Milk?"))
    await end(database, "elsewhere", asking("q3", "Sugar?"))
    assert await open_questions(store, database, "three") == []
    await send_all(database)
    assert await open_questions(store, database, "three") == [
        ("question_q1", "$event of q1", "Tea?"),
        ("question_q2", "$event of q2", "Milk?"),
    ]


async def test_answered_question_is_open_no_more(store: TurnStore, database: Database) -> None:
    await queue(database, turn("one"), turn("two"))
    await end(database, "one", asking())
    await admit(database, opened=[seen()])
    assert [each for each, _, _ in await open_questions(store, database, "two")] == ["question_q"]
    await take(database)
    assert await open_questions(store, database, "two") == []


# Asked again


def questions(database: Database) -> dict[str, str]:
    return dict(rows(database, "SELECT question_id, state FROM questions ORDER BY seq"))


async def test_same_question_asked_again_in_the_thread_closes_the_one_before(database: Database) -> None:
    await queue(database, turn("one"), turn("two"))
    await end(database, "one", asking("q1", "Tea?", buttons=1))
    await send_all(database)
    await admit(database, opened=[seen("q1")])
    await end(database, "two", asking("q2", "Tea?", buttons=1))
    assert questions(database) == {"question_q1": "superseded", "question_q2": "posting"}
    assert [(each.delivery_id, each.kind, each.target_event) for each in await send_all(database)][:3] == [
        ("q2", "message", None),
        ("q2 button 1", "button", "$event of q2"),
        ("closing of question_q1", "edit", "$event of q1"),
    ]
    assert rows(database, "SELECT kind, target_id, state FROM deliveries WHERE kind = 'redaction'") == [
        ("redaction", "q1 button 1", "sent")
    ]


async def test_question_that_is_not_posted_yet_is_superseded_before_its_buttons_are_sent(database: Database) -> None:
    await queue(database, turn("one"), turn("two"))
    await end(database, "one", asking("q1", "Tea?"))
    await end(database, "two", asking("q2", "Tea?", buttons=1))
    assert questions(database) == {"question_q1": "superseded", "question_q2": "posting"}
    assert [each.delivery_id for each in await send_all(database)] == [
        "q1",
        "q2",
        "q2 button 1",
        "closing of question_q1",
    ]


async def test_superseded_question_that_is_seen_late_stays_superseded(database: Database) -> None:
    await queue(database, turn("one"), turn("two"))
    await end(database, "one", asking("q1", "Tea?"))
    await end(database, "two", asking("q2", "Tea?"))
    await admit(database, opened=[seen("q1", 1), seen("q2", 2)])
    assert questions(database) == {"question_q1": "superseded", "question_q2": "open"}


async def test_other_text_thread_or_agent_closes_nothing(store: TurnStore, database: Database) -> None:
    await queue(
        database,
        turn("one"),
        turn("two"),
        turn("elsewhere", thread_id=EventId("$elsewhere")),
        turn("main", thread_id=None),
        turn("critics", agent=CRITIC),
    )
    await end(database, "one", asking("q1", "Tea?"))
    await end(database, "two", asking("q2", "tea?"))
    await end(database, "elsewhere", asking("q3", "Tea?"))
    await end(database, "main", asking("q4", "Tea?"))
    await store.end(await queued(database, "critics", CRITIC), UserId("@critic:example.org"), asking("q5", "Tea?"), NOW)
    assert set(questions(database).values()) == {"posting"}


async def test_answered_question_asked_again_keeps_its_answer(database: Database) -> None:
    await queue(database, turn("one"))
    await end(database, "one", asking("q1", "Tea?"))
    await admit(database, opened=[seen("q1")])
    await take(database, "question_q1")
    name = value(database, "SELECT turn_id FROM turns WHERE kind = 'selection'").removeprefix("turn_")
    await end(database, name, asking("q2", "Tea?"))
    assert questions(database) == {"question_q1": "answered", "question_q2": "posting"}
