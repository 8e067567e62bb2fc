"""Which question an answer means (contract, section 4)."""

from dataclasses import replace
from typing import Any

import pytest

from mindbridge.bridge.admission import decide
from mindbridge.events import Message
from mindbridge.ids import EventId, RoomId, TurnId, UserId
from mindbridge.journal.records import AskedQuestion, Decisions
from mindbridge.questions.answers import Verdict
from mindbridge.questions.lifecycle import State
from mindbridge.questions.model import Option
from tests.unit.sample_questions import (
    OPTIONS,
    THREAD,
    answered,
    batch,
    click,
    question,
    snapshot,
    unseen,
)
from tests.unit.sample_room import (
    ALICE,
    BOB,
    BOT,
    CRITIC,
    CRITIC_USER,
    HELPER,
    HELPER_USER,
    NOON,
    message,
    room,
    roster,
)

PAIR = frozenset({HELPER_USER, CRITIC_USER, BOT, ALICE})
"""Alice alone with agents and bots."""


def decided(*events: Any, known: tuple[AskedQuestion, ...], members: Any = None, **who: Any) -> Decisions:
    return decide(HELPER, batch(joined=(room(*events, members=members),)), roster(**who), snapshot(*known))


def meant(*events: Any, known: tuple[AskedQuestion, ...], members: Any = None, **who: Any) -> list[tuple[str, int]]:
    """The questions that were answered, each with the number of the option."""
    decisions = decided(*events, known=known, members=members, **who)
    return [(each.question_id.removeprefix("question_"), each.number) for each in decisions.selections]


def verdicts(*events: Any, known: tuple[AskedQuestion, ...], members: Any = None, **who: Any) -> list[tuple[str, str]]:
    decisions = decided(*events, known=known, members=members, **who)
    return [(str(each.question_id).removeprefix("question_"), each.verdict) for each in decisions.verdicts]


def is_ordinary(said: Message, *known: AskedQuestion, members: Any = None, **who: Any) -> bool:
    """Whether a message is a turn like any other, answers nothing and closes nothing."""
    decisions = decided(said, known=known, members=members, helper={"respond": "always"} | who.pop("helper", {}), **who)
    assert (decisions.verdicts, decisions.selections, decisions.deliveries, decisions.opened) == ([], [], [], [])
    return [(turn.kind, turn.source_event_id) for turn in decisions.turns] == [("message", said.event_id)]


def typed(text: str = "2", event_id: str = "$typed", sender: UserId = ALICE, **changes: Any) -> Message:
    """Typed in the thread."""
    return message(text, event_id, sender, **({"thread_id": THREAD} | changes))


def outside(text: str = "2", sender: UserId = ALICE, **changes: Any) -> Message:
    """Typed in the main timeline."""
    return message(text, "$typed", sender, **changes)


def reply(to: str, text: str = "2", thread_id: EventId | None = THREAD) -> Message:
    return message(text, "$reply", thread_id=thread_id, reply_to=EventId(to))


ELSEWHERE: dict[str, Any] = {"thread_id": EventId("$elsewhere")}


# In the thread


@pytest.mark.parametrize("text", ["2", "2.", "option 2", "２", "2\ufe0f\u20e3", "careful", " CAREFUL "], ids=ascii)
def test_number_or_label_in_the_thread_answers_its_open_question(text: str) -> None:
    assert meant(typed(text), known=(question(),)) == [("q", 2)]


def test_newest_open_question_of_the_thread_is_meant() -> None:
    """T5"""
    known = (question("first", seq=1), question("second", seq=2))
    assert meant(typed(), known=known) == [("second", 2)]
    assert meant(typed("careful"), known=known) == [("second", 2)]


def test_newest_is_the_one_that_was_seen_last_not_the_one_recorded_last() -> None:
    """T5"""
    known = (question("first", seq=1, opened_seq=60), question("second", seq=2, opened_seq=40))
    assert meant(typed(), known=known) == [("first", 2)]


def test_newest_question_of_all_agents_is_meant() -> None:
    """T5"""
    known = (question("helpers", seq=1), question("critics", seq=2, agent=CRITIC))
    assert meant(typed(), known=known) == [("critics", 2)]


def test_question_of_another_thread_or_room_is_not_meant() -> None:
    assert is_ordinary(typed(), question(**ELSEWHERE), question("r", seq=2, room_id=RoomId("!other")))


def test_number_that_the_newest_question_does_not_offer_is_an_ordinary_message() -> None:
    known = (question("three", seq=1), question("two", seq=2, options=OPTIONS[:2]))
    assert meant(typed("2"), known=known) == [("two", 2)]
    assert is_ordinary(typed("3"), *known)
    assert is_ordinary(typed("10"), *known)


def test_label_of_an_older_question_is_an_ordinary_message() -> None:
    known = (question("older", seq=1), question("newer", seq=2, options=(OPTIONS[0],)))
    assert is_ordinary(typed("careful"), *known)


def test_ordinary_words_are_a_turn_and_leave_the_question_open() -> None:
    """T4"""
    for text in ("wait, explain first", "2 apples", "v2", "22", "careful!", "", "option"):
        assert is_ordinary(typed(text), question())


def test_label_that_two_options_have_is_an_ordinary_message() -> None:
    twins = (OPTIONS[0], replace(OPTIONS[1], label="fast"))
    assert is_ordinary(typed("fast"), question(options=twins))
    assert meant(typed("2"), known=(question(options=twins),)) == [("q", 2)]


def test_answer_in_the_same_response_as_its_question_counts() -> None:
    """R11"""
    asked = message("q?", "$q", HELPER_USER, thread_id=THREAD, question_id="question_q")
    for answer in (typed(), typed("careful"), click(), reply("$q")):
        assert meant(asked, answer, known=(unseen(),)) == [("q", 2)]
        assert meant(asked, answer, known=(unseen(event_id="$q"),)) == [("q", 2)]


def test_number_typed_before_the_question_was_visible_is_an_ordinary_message() -> None:
    asked = message("q?", "$q", HELPER_USER, thread_id=THREAD, question_id="question_q")
    assert meant(typed(), asked, known=(unseen(),)) == []
    assert is_ordinary(typed(), unseen())
    assert is_ordinary(typed(), unseen(event_id="$q"))


def test_thread_that_starts_at_the_question_itself_is_its_thread() -> None:
    assert meant(typed(thread_id=EventId("$q")), known=(question(thread_id=None),)) == [("q", 2)]
    assert meant(typed("careful", thread_id=EventId("$q")), known=(question(),)) == [("q", 2)]


def test_question_of_an_agent_that_is_gone_takes_no_answer_and_hides_no_other() -> None:
    gone = question("gone", seq=2, agent="former")
    assert meant(typed(), known=(question(), gone)) == [("q", 2)]
    assert meant(outside(), known=(question(), gone)) == [("q", 2)]
    assert is_ordinary(typed(), gone)
    assert is_ordinary(reply("$gone"), gone)
    assert verdicts(click(target="$gone"), known=(gone,)) == [("None", Verdict.UNKNOWN_QUESTION)]


# Replies


@pytest.mark.parametrize("thread_id", [THREAD, None, EventId("$elsewhere")])
@pytest.mark.parametrize("text", ["2", "careful"])
def test_real_reply_means_the_question_that_it_replies_to_wherever_it_stands(
    thread_id: EventId | None, text: str
) -> None:
    """T1 T5"""
    known = (question("older", seq=1), question("newer", seq=2))
    assert meant(reply("$older", text, thread_id), known=known) == [("older", 2)]


def test_threads_fallback_is_no_reply_and_means_the_newest_question() -> None:
    """T1"""
    known = (question("older", seq=1), question("newer", seq=2))
    assert meant(typed(reply_to=None), known=known) == [("newer", 2)]


@pytest.mark.parametrize("thread_id", [THREAD, None])
@pytest.mark.parametrize("text", ["2", "careful"])
def test_real_reply_to_anything_else_is_an_ordinary_message(thread_id: EventId | None, text: str) -> None:
    """T1"""
    assert is_ordinary(reply("$something", text, thread_id), question())


def test_real_reply_that_names_no_option_is_an_ordinary_message() -> None:
    assert is_ordinary(reply("$q", "9"), question(), question("newer", seq=2))
    assert is_ordinary(reply("$q", "why?"), question())


def test_real_reply_to_a_question_in_another_room_is_an_ordinary_message() -> None:
    assert is_ordinary(reply("$q"), question(room_id=RoomId("!other")))


def test_reply_to_a_posted_question_that_no_timeline_showed_counts() -> None:
    decisions = decided(reply("$q"), known=(unseen(event_id="$q"),))
    assert [each.question_id for each in decisions.opened] == ["question_q"]
    assert [each.number for each in decisions.selections] == [2]


# Outside threads


def test_number_outside_threads_means_the_rooms_only_open_question() -> None:
    assert meant(outside(), known=(question(),)) == [("q", 2)]
    assert meant(outside(), known=(answered("old", seq=1), question(seq=2))) == [("q", 2)]


def test_label_outside_threads_is_an_ordinary_message() -> None:
    assert is_ordinary(outside("careful"), question())
    assert is_ordinary(outside("careful"), question(), members=PAIR)


def test_number_outside_threads_is_an_ordinary_message_where_several_questions_are_open() -> None:
    """T5"""
    other = question("other", seq=2, agent=CRITIC, **ELSEWHERE)
    assert is_ordinary(outside(), question(), other)
    assert is_ordinary(outside(), question(), other, members=PAIR)


def test_number_outside_threads_counts_only_from_the_requester_or_the_only_person() -> None:
    bobs = question(requester=BOB)
    assert is_ordinary(outside(), bobs)
    assert meant(outside(sender=BOB), known=(bobs,)) == [("q", 2)]
    assert meant(outside(), known=(bobs,), members=PAIR) == [("q", 2)]


def test_number_outside_threads_counts_only_while_the_agent_has_said_nothing_newer_in_the_room() -> None:
    assert is_ordinary(outside(), question(last_said_in_room=11))
    assert meant(outside(), known=(question(last_said_in_room=9),)) == [("q", 2)]


def test_what_the_agent_says_in_the_same_response_ends_the_time_for_numbers_outside_threads() -> None:
    newer = message("by the way", "$newer", HELPER_USER, thread_id=EventId("$elsewhere"))
    others = message("by the way", "$newer", CRITIC_USER)
    notice = message("note", "$newer", HELPER_USER, is_notice=True)
    own_part = message("part 2", "$newer", HELPER_USER, transaction_id="delivery_2")
    known = (question(),)
    assert meant(newer, outside(), known=known) == []
    assert meant(others, outside(), known=known) == [("q", 2)]
    assert meant(notice, outside(), known=known) == [("q", 2)]
    decisions = decide(
        HELPER,
        batch(own_part, outside()),
        roster(),
        replace(snapshot(question()), turns_of_events={"delivery_2": TurnId("turn_q")}),
    )
    assert [each.number for each in decisions.selections] == [2]


def test_number_in_another_thread_is_an_ordinary_message() -> None:
    assert is_ordinary(typed(thread_id=EventId("$elsewhere")), question(), members=PAIR)


def test_number_outside_threads_in_another_room_is_an_ordinary_message() -> None:
    assert is_ordinary(outside(), question(room_id=RoomId("!other")), members=PAIR)


# Agents without threads


FLAT: dict[str, Any] = {"helper": {"threads": False}}


def test_without_threads_the_main_timeline_counts_as_the_thread() -> None:
    flat = question(thread_id=None)
    for text in ("2", "careful"):
        assert meant(outside(text), known=(flat,), **FLAT) == [("q", 2)]
        assert meant(outside(text, BOB), known=(flat,), **FLAT) == [("q", 2)]


def test_without_threads_the_newest_open_question_of_the_main_timeline_is_meant() -> None:
    known = (question("older", seq=1, thread_id=None), question("newer", seq=2, thread_id=None))
    in_a_thread = question("threaded", seq=3, agent=CRITIC)
    assert meant(outside(), known=(*known, in_a_thread), **FLAT) == [("newer", 2)]
    assert meant(typed(), known=(*known, in_a_thread), **FLAT) == [("threaded", 2)]


def test_question_of_the_main_timeline_is_not_meant_in_a_thread() -> None:
    assert is_ordinary(typed(), question(thread_id=None), **FLAT)


# Too late


def test_number_after_the_answer_is_late_and_no_message_until_the_agent_speaks_again() -> None:
    late = answered(number=1, closed_seq=50, last_said_in_thread=0)
    assert verdicts(typed("2"), known=(late,)) == [("q", Verdict.ALREADY_ANSWERED)]
    assert verdicts(typed("1"), known=(late,)) == [("q", Verdict.SAME_OPTION)]
    assert decided(typed("2"), known=(late,), helper={"respond": "always"}).turns == []
    assert is_ordinary(typed("2"), answered(closed_seq=50, last_said_in_thread=51))
    assert verdicts(typed("2"), known=(answered(closed_seq=50, last_said_in_thread=49),)) == [
        ("q", Verdict.ALREADY_ANSWERED)
    ]


def test_what_was_not_offered_and_labels_are_ordinary_messages_after_the_answer() -> None:
    for text in ("4", "careful", "thanks", "22"):
        assert is_ordinary(typed(text), answered())


def test_agents_next_message_in_the_same_response_ends_the_time_for_late_numbers() -> None:
    thanks = message("thanks", "$thanks", HELPER_USER, thread_id=THREAD)
    elsewhere = message("thanks", "$thanks", HELPER_USER, thread_id=EventId("$elsewhere"))
    others = message("thanks", "$thanks", CRITIC_USER, thread_id=THREAD)
    known = (answered(),)
    assert verdicts(thanks, typed(), known=known) == []
    assert verdicts(elsewhere, typed(), known=known) == [("q", Verdict.ALREADY_ANSWERED)]
    assert verdicts(others, typed(), known=known) == [("q", Verdict.ALREADY_ANSWERED)]


def test_late_number_does_not_answer_an_older_question_of_the_thread() -> None:
    """T5"""
    known = (question("older", seq=1), answered("newer", seq=2))
    assert verdicts(typed(), known=known) == [("newer", Verdict.ALREADY_ANSWERED)]
    assert meant(typed("careful"), known=known) == [("older", 2)]
    assert meant(reply("$older"), known=known) == [("older", 2)]


def test_newer_open_question_takes_the_number_after_an_answer() -> None:
    known = (answered("older", seq=1), question("newer", seq=2))
    assert meant(typed(), known=known) == [("newer", 2)]


def test_number_right_behind_the_answer_in_the_same_response_is_late() -> None:
    assert verdicts(click("🚀", sender=BOB), typed(), known=(question(),)) == [
        ("q", Verdict.SELECTED),
        ("q", Verdict.ALREADY_ANSWERED),
    ]


def test_number_outside_threads_is_late_too() -> None:
    late = answered(number=1, closed_seq=50)
    assert verdicts(outside(), known=(late,)) == [("q", Verdict.ALREADY_ANSWERED)]
    assert verdicts(outside(), known=(late,), members=PAIR) == [("q", Verdict.ALREADY_ANSWERED)]
    assert is_ordinary(outside(sender=BOB), late)
    assert is_ordinary(outside(), answered(closed_seq=50, last_said_in_room=51))


def test_reply_or_reaction_is_late_for_ever() -> None:
    late = answered(closed_seq=50, last_said_in_thread=70, last_said_in_room=70)
    for event in (reply("$q"), reply("$q", "careful"), click()):
        assert verdicts(event, known=(late,)) == [("q", Verdict.ALREADY_ANSWERED)]


def test_superseded_question_takes_no_answer() -> None:
    old = question(state=State.SUPERSEDED)
    for event in (reply("$q"), click()):
        assert verdicts(event, known=(old,)) == [("q", Verdict.SUPERSEDED)]
    assert is_ordinary(typed(), old)
    assert meant(typed(), known=(old, question("newer", seq=2))) == [("newer", 2)]


# Reactions


@pytest.mark.parametrize(
    ("key", "number", "told_key"),
    [
        ("🚀", 1, "🚀"),
        ("❤", 3, "❤️"),
        ("❤\ufe0f", 3, "❤️"),
        ("2\ufe0f\u20e3", 2, "2"),
        ("2\u20e3", 2, "2"),
    ],
    ids=ascii,
)
def test_reaction_with_a_button_or_a_keycap_answers_and_its_raw_key_is_not_passed_on(
    key: str, number: int, told_key: str
) -> None:
    """R1"""
    (selected,) = decided(click(key), known=(question(),)).selections
    assert (selected.number, selected.key) == (number, told_key)


def test_shared_emoji_selects_nothing_and_the_keycap_counts_as_number() -> None:
    shared = tuple(
        Option(number=number, emoji="❓", label=f"Label {number}", value=number, button=f"{number}\ufe0f\u20e3")
        for number in (1, 2)
    )
    known = (question(options=shared),)
    assert verdicts(click("❓"), known=known) == [("q", Verdict.NOT_AN_OPTION)]
    (selected,) = decided(click("2\ufe0f\u20e3"), known=known).selections
    assert (selected.number, selected.key) == (2, "2")


@pytest.mark.parametrize(
    "key", ["", " ", "👍", "9\ufe0f\u20e3", "x" * 10_240, "<b>", "mxc://example.org/a", ":rocket:", "🚀🚀"], ids=ascii
)
def test_reaction_that_is_no_option_is_silent(key: str) -> None:
    """R10"""
    decisions = decided(click(key), known=(question(),))
    assert [(each.question_id, each.verdict, each.reason) for each in decisions.verdicts] == [
        ("question_q", Verdict.NOT_AN_OPTION, "The reaction is no button of the question.")
    ]
    assert (decisions.selections, decisions.turns, decisions.deliveries) == ([], [], [])


def test_reaction_on_anything_else_is_silent() -> None:
    decisions = decided(click(target="$something"), known=(question(),))
    assert [(each.question_id, each.verdict) for each in decisions.verdicts] == [(None, Verdict.UNKNOWN_QUESTION)]
    assert (decisions.selections, decisions.turns, decisions.deliveries) == ([], [], [])


def test_reaction_from_another_room_is_on_no_question() -> None:
    elsewhere = question(room_id=RoomId("!other"))
    assert verdicts(click(), known=(elsewhere,)) == [("None", Verdict.UNKNOWN_QUESTION)]


def test_reaction_means_its_question_and_not_a_newer_one() -> None:
    assert meant(click(target="$older"), known=(question("older", seq=1), question("newer", seq=2))) == [("older", 2)]


def test_reaction_on_a_posted_question_that_no_timeline_showed_counts() -> None:
    decisions = decided(click(), known=(unseen(event_id="$q"),))
    assert [(each.question_id, each.event_id, each.asked_ts) for each in decisions.opened] == [
        ("question_q", "$q", NOON - 2_000)
    ]
    assert [each.number for each in decisions.selections] == [2]


def test_reaction_on_a_question_that_was_refused_finds_no_question() -> None:
    failed = question(state=State.FAILED)
    assert verdicts(click(), known=(failed,)) == [("q", Verdict.UNKNOWN_QUESTION)]
