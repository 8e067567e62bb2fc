"""What an agent is told with its turn (contract, section 5)."""

import json
from typing import Any

from mindbridge.agents.turn import Sender, Turn
from mindbridge.bridge.turn_input import turn_input
from mindbridge.ids import EventId, QuestionId, TurnId, UserId
from mindbridge.journal.records import QueuedTurn, TurnContext
from mindbridge.questions.model import Problem, ProblemCode
from tests.unit.sample_room import ALICE, BOB, BOT, CRITIC_USER, HELPER, HELPER_USER, ROOM, STRANGER, agent, roster
from tests.unit.sample_turn import selection

LIMIT = 32 * 1024
CONFIG = agent(HELPER_USER, role="A pirate", instructions=("Be brief.", "Be kind."))


def queued(**changes: Any) -> QueuedTurn:
    fields: dict[str, Any] = {
        "turn_id": TurnId("turn_1"),
        "agent": HELPER,
        "kind": "message",
        "room_id": ROOM,
        "thread_id": EventId("$root"),
        "source_event_id": EventId("$hello"),
        "sender": ALICE,
        "sender_name": "Alice",
        "text": "hello",
        "selection": None,
        "failures": 0,
    }
    return QueuedTurn(**(fields | changes))


def context(**changes: Any) -> TurnContext:
    return TurnContext(**({"history": (), "open_questions": (), "problems": ()} | changes))


def told(turn: QueuedTurn | None = None, **changes: Any) -> Turn:
    return turn_input(turn or queued(), context(**changes), CONFIG, roster())


def size(entries: tuple[Any, ...]) -> int:
    return sum(len(entry.model_dump_json().encode()) for entry in entries)


def test_message_turn_tells_the_message_and_where_it_stands() -> None:
    assert told() == Turn(
        turn_id="turn_1",
        attempt=1,
        agent="helper",
        kind="message",
        room_id="!room",
        thread_id="$root",
        event_id="$hello",
        sender=Sender(user_id=ALICE, display_name="Alice"),
        text="hello",
        selection=None,
        history=(),
        open_questions=(),
        problems=(),
        role="A pirate",
        instructions=("Be brief.", "Be kind."),
    )


def test_attempt_grows_with_failures() -> None:
    assert [told(queued(failures=failures)).attempt for failures in (0, 1, 2)] == [1, 2, 3]


def test_selection_turn_tells_the_selection() -> None:
    chosen = selection()
    assert told(queued(kind="selection", selection=chosen.model_dump_json())).selection == chosen


def test_turn_outside_threads_has_no_thread() -> None:
    assert told(queued(thread_id=None)).thread_id is None


def test_problems_are_told_by_code_and_sentence() -> None:
    turn = told(problems=(Problem(ProblemCode.OPTIONS_TRUNCATED, "Only 5 of 7."),))
    assert json.loads(turn.model_dump_json())["problems"] == [{"code": "options_truncated", "message": "Only 5 of 7."}]


def test_open_questions_are_told_in_their_order() -> None:
    questions = ((QuestionId("q1"), EventId("$1"), "Tea?"), (QuestionId("q2"), EventId("$2"), "Milk?"))
    assert json.loads(told(open_questions=questions).model_dump_json())["open_questions"] == [
        {"question_id": "q1", "question_event_id": "$1", "question_text": "Tea?"},
        {"question_id": "q2", "question_event_id": "$2", "question_text": "Milk?"},
    ]


def test_only_this_agents_own_words_have_the_role_assistant() -> None:
    history = told(history=((ALICE, "hi"), (HELPER_USER, "hello"), (CRITIC_USER, "well"), (BOB, "hm"))).history
    assert [(entry.role, entry.sender, entry.text) for entry in history] == [
        ("user", ALICE, "hi"),
        ("assistant", HELPER_USER, "hello"),
        ("user", CRITIC_USER, "well"),
        ("user", BOB, "hm"),
    ]


def test_words_of_strangers_bots_and_former_agents_are_left_out() -> None:
    former = UserId("@former:elsewhere.example")
    history = told(history=((STRANGER, "buy"), (BOT, "rain"), (former, "I was"), (ALICE, "hi"))).history
    assert [entry.sender for entry in history] == [ALICE]


def test_of_a_long_history_the_newest_fifty_entries_are_told_in_order() -> None:
    history = told(history=tuple((ALICE, str(number)) for number in range(80))).history
    assert [entry.text for entry in history] == [str(number) for number in range(30, 80)]


def test_those_who_do_not_count_take_no_place_among_the_fifty() -> None:
    entries = [(ALICE, "first"), *[(STRANGER, "spam")] * 49]
    assert [entry.text for entry in told(history=tuple(entries)).history] == ["first"]


def test_of_a_large_history_the_newest_32_kilobytes_are_told() -> None:
    history = told(history=tuple((ALICE, f"{number} " + "x" * 5_000) for number in range(20))).history
    assert [entry.text.split()[0] for entry in history] == ["14", "15", "16", "17", "18", "19"]
    assert size(history) <= LIMIT


def test_entry_that_does_not_fit_ends_the_history_even_where_an_older_one_would_fit() -> None:
    history = told(history=((ALICE, "small"), (ALICE, "x" * 40_000), (ALICE, "newest"))).history
    assert [entry.text for entry in history] == ["newest"]


def test_newest_entry_that_is_too_large_is_told_from_its_end() -> None:
    for character in ("x", "é", "🚀", "\x01", '"', "\\"):
        (entry,) = told(history=((ALICE, "older"), (ALICE, "start " + character * 40_000 + " end"))).history
        assert entry.text.endswith(character * 1_000 + " end")
        assert size((entry,)) <= LIMIT


def test_open_questions_are_the_newest_fifty_within_32_kilobytes() -> None:
    small = tuple((QuestionId(f"q{number}"), EventId(f"${number}"), "Tea?") for number in range(60))
    large = tuple((QuestionId(f"q{number}"), EventId(f"${number}"), "x" * 10_000) for number in range(5))
    assert [each.question_id for each in told(open_questions=small).open_questions] == [f"q{n}" for n in range(10, 60)]
    assert [each.question_id for each in told(open_questions=large).open_questions] == ["q2", "q3", "q4"]
    assert size(told(open_questions=large).open_questions) <= LIMIT
