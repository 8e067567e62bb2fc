"""Who may answer, which answer is taken, and all that follows (contract, section 4)."""

import json
from typing import Any

import pytest

from mindbridge import ids
from mindbridge.bridge.admission import decide
from mindbridge.events import Message, RoomEvent
from mindbridge.ids import EventId, TurnId, UserId
from mindbridge.journal.records import AskedQuestion, Decisions, Judged, NewTurn, Said, Selected, Sighting
from mindbridge.questions.answers import Verdict
from mindbridge.questions.lifecycle import State
from tests.unit.sample_questions import (
    NEXT_SEQ,
    THREAD,
    answered,
    batch,
    click,
    question,
    redaction,
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
    ROOM,
    STRANGER,
    message,
    roster,
)

ALWAYS: dict[str, Any] = {"helper": {"respond": "always"}}
REQUESTER: dict[str, Any] = {"helper": {"respond": "always", "questions": {"answerers": "requester"}}}
ONLY_BOB: dict[str, Any] = {"helper": {"respond": "always", "questions": {"answerers": (BOB,)}}}


def decided(*events: RoomEvent, known: tuple[AskedQuestion, ...] | None = None, **who: Any) -> Decisions:
    return decide(
        HELPER, batch(*events), roster(**(who or ALWAYS)), snapshot(*((question(),) if known is None else known))
    )


def verdicts(decisions: Decisions) -> list[tuple[str, str]]:
    return [(each.event_id, each.verdict) for each in decisions.verdicts]


def typed(text: str = "2", event_id: str = "$typed", sender: UserId = ALICE, **changes: Any) -> Message:
    return message(text, event_id, sender, **({"thread_id": THREAD} | changes))


def is_silent(decisions: Decisions) -> bool:
    """Nothing is answered, no agent has anything to do, nobody is told anything."""
    return not (decisions.selections or decisions.turns or decisions.deliveries or decisions.said)


def notices(decisions: Decisions) -> list[dict[str, Any]]:
    return [json.loads(each.content) for each in decisions.deliveries if each.kind == "notice"]


# Who


@pytest.mark.parametrize("event", [click(sender=STRANGER), typed(sender=STRANGER), typed("careful", sender=STRANGER)])
def test_stranger_answers_nothing_and_is_told_nothing(event: RoomEvent) -> None:
    """R7"""
    decisions = decided(event)
    assert verdicts(decisions) == [(event.event_id, Verdict.NOT_ALLOWED)]
    assert is_silent(decisions)


@pytest.mark.parametrize("event", [click(sender=BOT), typed(sender=BOT), typed("careful", sender=BOT)])
def test_bot_answers_nothing(event: RoomEvent) -> None:
    """R9"""
    decisions = decided(event)
    assert verdicts(decisions) == [(event.event_id, Verdict.NOT_A_PERSON)]
    assert is_silent(decisions)


@pytest.mark.parametrize("sender", [HELPER_USER, CRITIC_USER])
def test_agents_buttons_and_numbers_answer_nothing(sender: UserId) -> None:
    """R9"""
    for event in (click(sender=sender), typed(sender=sender), typed("careful", sender=sender)):
        assert is_silent(decided(event))


def test_notice_answers_nothing() -> None:
    decisions = decided(typed(is_notice=True))
    assert verdicts(decisions) == [("$typed", Verdict.NOT_A_PERSON)]
    assert is_silent(decisions)


def test_anyone_who_is_allowed_may_answer_unless_configured_otherwise() -> None:
    for sender in (ALICE, BOB):
        assert [each.answered_by for each in decided(click(sender=sender)).selections] == [sender]


@pytest.mark.parametrize(("who", "may", "may_not"), [(REQUESTER, ALICE, BOB), (ONLY_BOB, BOB, ALICE)])
def test_only_answerers_may_answer_and_others_who_try_are_told(
    who: dict[str, Any], may: UserId, may_not: UserId
) -> None:
    for event in (click(sender=may_not), typed(sender=may_not)):
        decisions = decided(event, **who)
        assert verdicts(decisions) == [(event.event_id, Verdict.NOT_ANSWERER)]
        assert (decisions.selections, decisions.turns) == ([], [])
        assert [each["m.mentions"] for each in notices(decisions)] == [{"user_ids": [may_not]}]
    for event in (click(sender=may), typed(sender=may), typed("careful", sender=may)):
        assert [each.answered_by for each in decided(event, **who).selections] == [may]


def test_label_from_someone_who_may_not_answer_is_an_ordinary_message() -> None:
    decisions = decided(typed("careful", sender=BOB), **REQUESTER)
    assert (decisions.verdicts, decisions.deliveries) == ([], [])
    assert [turn.kind for turn in decisions.turns] == ["message"]


def test_forged_prompt_of_a_person_takes_no_answer() -> None:
    """R12"""
    forged = message("q?", "$forged", ALICE, thread_id=THREAD, question_id="question_q")
    decisions = decided(forged, click(target="$forged", sender=BOB), known=(unseen(),))
    assert verdicts(decisions) == [("$click", Verdict.UNKNOWN_QUESTION)]
    assert decisions.selections == []


# First


def test_first_answer_wins_and_the_second_person_is_told_what_was_taken_and_by_whom() -> None:
    decisions = decided(click("🚀", event_id="$first", sender=BOB), click("🔍", event_id="$second"))
    assert verdicts(decisions) == [("$first", Verdict.SELECTED), ("$second", Verdict.ALREADY_ANSWERED)]
    assert [(each.source_event_id, each.number) for each in decisions.selections] == [("$first", 1)]
    assert [turn.source_event_id for turn in decisions.turns] == ["$first"]
    assert [
        (each["msgtype"], each["body"], each["m.mentions"], each["m.relates_to"]) for each in notices(decisions)
    ] == [
        (
            "m.notice",
            "Alice: this question was already answered. ✔ 1. 🚀 Fast · Bob · 2026-11-30 12:00 UTC",
            {"user_ids": [ALICE]},
            {
                "rel_type": "m.thread",
                "event_id": THREAD,
                "is_falling_back": True,
                "m.in_reply_to": {"event_id": "$q"},
            },
        )
    ]


def test_same_reaction_under_two_event_ids_is_one_selection() -> None:
    """R4"""
    decisions = decided(click(event_id="$one"), click(event_id="$two"))
    assert verdicts(decisions) == [("$one", Verdict.SELECTED), ("$two", Verdict.SAME_OPTION)]
    assert len(decisions.selections) == len(decisions.turns) == 1
    assert notices(decisions) == []


def test_click_and_number_of_the_same_option_are_one_selection() -> None:
    decisions = decided(typed("2"), click("🔍"), click("2\ufe0f\u20e3", event_id="$keycap"))
    assert [verdict for _, verdict in verdicts(decisions)] == [
        Verdict.SELECTED,
        Verdict.SAME_OPTION,
        Verdict.SAME_OPTION,
    ]
    assert (len(decisions.selections), notices(decisions)) == (1, [])


def test_loser_is_told_once_however_often_they_try() -> None:
    known = (answered(),)
    decisions = decided(click(event_id="$1"), click("❤️", event_id="$2"), typed("3"), known=known)
    later = decided(click(event_id="$4"), known=known)
    told = {each.delivery_id for each in (*decisions.deliveries, *later.deliveries)}
    assert [verdict for _, verdict in verdicts(decisions)] == [Verdict.ALREADY_ANSWERED] * 3
    assert len(told) == 1


def test_each_loser_is_told_and_for_each_reason() -> None:
    decisions = decided(click(event_id="$1"), click(event_id="$2", sender=BOB), known=(answered(),))
    superseded = decided(click(event_id="$3"), known=(question(state=State.SUPERSEDED),))
    assert len({each.delivery_id for each in (*decisions.deliveries, *superseded.deliveries)}) == 3


def test_who_answers_a_superseded_question_is_told() -> None:
    (told,) = notices(decided(click(), known=(question(state=State.SUPERSEDED),)))
    assert told["body"] == "Alice: this question was asked again; please answer the newer one."


def test_questions_side_by_side_are_answered_each_by_itself() -> None:
    known = (question("a", seq=1), question("b", seq=2))
    decisions = decided(click(target="$b"), click("🚀", "$a", "$other", BOB), known=known)
    assert [(each.question_id, each.number) for each in decisions.selections] == [("question_b", 2), ("question_a", 1)]


# Taken back


@pytest.mark.parametrize("answer", [click(event_id="$answer"), typed(event_id="$answer"), typed("careful", "$answer")])
def test_answer_taken_back_in_the_same_response_leaves_the_question_open(answer: RoomEvent) -> None:
    """R8"""
    decisions = decided(answer, redaction("$answer"))
    assert verdicts(decisions) == [("$answer", Verdict.WITHDRAWN)]
    assert is_silent(decisions)


def test_after_an_answer_that_was_taken_back_the_next_one_counts() -> None:
    """R8"""
    decisions = decided(click(event_id="$one"), click("🚀", event_id="$two"), redaction("$one"))
    assert verdicts(decisions) == [("$one", Verdict.WITHDRAWN), ("$two", Verdict.SELECTED)]
    assert [each.number for each in decisions.selections] == [1]


def test_taking_back_an_answer_that_was_taken_has_no_effect() -> None:
    """R8"""
    decisions = decided(redaction("$click"), known=(answered(),))
    sighting = Sighting(seq=NEXT_SEQ, event_id=EventId("$redaction"), server_ts=NOON, judged=True)
    assert decisions == Decisions(sightings=[sighting], withdrawn=[EventId("$click")])


def test_taking_back_something_else_leaves_the_answer() -> None:
    assert len(decided(click(), redaction("$other")).selections) == 1


# What follows


def test_selection_is_told_to_the_agent_that_asked_and_recorded_whole() -> None:
    decisions = decided(click("🔍", event_id="$click", sender=BOB), known=(question(text="What approach?"),))
    turn_id = ids.turn_id(HELPER, EventId("$click"))
    assert decisions.verdicts == [
        Judged(
            event_id=EventId("$click"),
            question_id=question().question_id,
            sender=BOB,
            verdict=Verdict.SELECTED,
            reason="It was the first answer to the open question.",
        )
    ]
    assert decisions.selections == [
        Selected(
            question_id=question().question_id,
            source_event_id=EventId("$click"),
            turn_id=turn_id,
            answered_by=BOB,
            answered_by_name="Bob",
            number=2,
            key="🔍",
            answered_ts=NOON,
            seq=NEXT_SEQ,
        )
    ]
    assert decisions.said == [
        Said(room_id=ROOM, thread_id=THREAD, event_id=EventId("$click"), sender=BOB, text="chose 2. Careful")
    ]
    (turn,) = decisions.turns
    assert turn.selection is not None
    assert json.loads(turn.selection) == {
        "question_id": "question_q",
        "question_event_id": "$q",
        "thread_id": "$root",
        "question_text": "What approach?",
        "selected_option": {"number": 2, "key": "🔍", "label": "Careful", "value": 0},
        "source_event_id": "$click",
        "answered_by": BOB,
        "revision": 1,
        "asked_at": "2026-11-30T11:59:59Z",
        "answered_at": "2026-11-30T12:00:00Z",
        "older": False,
    }
    assert turn == NewTurn(
        turn_id=turn_id,
        agent=HELPER,
        kind="selection",
        room_id=ROOM,
        thread_id=THREAD,
        source_event_id=EventId("$click"),
        sender=BOB,
        sender_name="Bob",
        text=turn.text,
        selection=turn.selection,
    )
    assert "Bob" in turn.text
    assert "2: Careful" in turn.text
    assert json.dumps(json.loads(turn.selection)) in json.dumps(
        json.loads(turn.text.split("```json\n")[1].split("```")[0])
    )


def test_answered_question_is_edited_and_reads_as_answered() -> None:
    (edit,) = decided(click(sender=BOB)).deliveries
    assert (edit.kind, edit.agent, edit.room_id, edit.question_id, edit.target_id, edit.after_turn) == (
        "edit",
        HELPER,
        ROOM,
        "question_q",
        "delivery_q",
        None,
    )
    sent = json.loads(edit.content)
    line = "✔ 2. 🔍 Careful · Bob · 2026-11-30 12:00 UTC"
    assert (sent["body"], "formatted_body" in sent, sent["m.mentions"]) == (f"* {line}", False, {})
    inner = sent["m.new_content"]
    assert inner["body"] == f"q?\n\n1. 🚀 Fast\n2. 🔍 Careful\n3. ❤️ With love\n\n{line}"
    assert (inner["m.mentions"], inner["dev.mindbridge.question"]["state"]) == ({}, "answered")


@pytest.mark.parametrize(("event", "key"), [(typed("2"), "2"), (typed("careful"), "2"), (click("2\ufe0f\u20e3"), "2")])
def test_key_of_a_number_a_label_or_a_keycap_is_the_number_as_text(event: RoomEvent, key: str) -> None:
    assert [each.key for each in decided(event).selections] == [key]


def test_answer_outside_the_thread_still_goes_on_in_the_questions_thread() -> None:
    (turn,) = decided(message("2", "$typed")).turns
    assert (turn.kind, turn.thread_id) == ("selection", THREAD)


def test_option_values_keep_their_type() -> None:
    values = []
    for key in ("🚀", "🔍", "❤️"):
        (turn,) = decided(click(key)).turns
        assert turn.selection is not None
        values.append(json.loads(turn.selection)["selected_option"]["value"])
    assert [(type(value), value) for value in values] == [(str, "fast"), (int, 0), (dict, {"love": True})]


@pytest.mark.parametrize(("last_said", "older"), [(0, False), (9, False), (11, True)])
def test_question_is_older_where_the_agent_has_said_something_since(last_said: int, older: bool) -> None:  # noqa: FBT001
    (turn,) = decided(click(), known=(question(last_said_in_thread=last_said),)).turns
    assert turn.selection is not None
    assert json.loads(turn.selection)["older"] is older


def test_names_stay_on_one_line_and_make_no_markup_and_no_mention() -> None:
    hostile = click(sender=BOB)
    named = type(hostile)(
        event_id=hostile.event_id,
        sender=BOB,
        server_ts=NOON,
        sender_name="Bob\n2. 🔍 <b>@room</b>" + "x" * 500,
        target=hostile.target,
        key="🚀",
    )
    decisions = decided(named, click(event_id="$late"))
    edit, notice = decisions.deliveries
    for content in (json.loads(edit.content)["m.new_content"], json.loads(notice.content)):
        (line,) = [line for line in content["body"].split("\n") if "✔ 1. 🚀 Fast · Bob 2." in line]
        assert len(line) < 250
        assert "<b>@room" not in content["formatted_body"]
    assert "\n" not in json.loads(edit.content)["body"]
    assert json.loads(edit.content)["m.mentions"] == {}


@pytest.mark.parametrize("server_ts", [0, 2**53 - 1])
def test_answer_at_an_impossible_time_is_taken_all_the_same(server_ts: int) -> None:
    late = typed(server_ts=server_ts)
    assert [each.answered_ts for each in decided(late).selections] == [server_ts]


# Two agents in one room


def test_number_that_another_account_has_judged_is_no_message_to_this_one() -> None:
    known = snapshot(answered(number=2), judged=frozenset({"$typed"}), verdicts=frozenset({"$typed"}))
    for respond in ("auto", "always"):
        decisions = decide(CRITIC, batch(typed()), roster(critic={"respond": respond}), known)
        assert decisions == Decisions(
            sightings=[Sighting(seq=NEXT_SEQ, event_id=EventId("$typed"), server_ts=NOON, judged=True)]
        )


def test_number_is_judged_for_all_agents_by_the_account_that_sees_it_first() -> None:
    decisions = decide(CRITIC, batch(typed()), roster(critic={"respond": "always"}), snapshot(question()))
    assert [(turn.agent, turn.kind) for turn in decisions.turns] == [(HELPER, "selection")]
    assert [each.agent for each in decisions.deliveries] == [HELPER]


def test_reaction_that_another_account_has_judged_is_not_judged_again() -> None:
    known = snapshot(question(), judged=frozenset({"$click"}))
    decisions = decide(CRITIC, batch(click()), roster(), known)
    assert (decisions.verdicts, decisions.selections, decisions.deliveries) == ([], [], [])


def test_what_another_account_saw_only_as_history_is_judged_by_this_one() -> None:
    known = snapshot(question(), judged=frozenset(), verdicts=frozenset())
    assert len(decide(CRITIC, batch(typed()), roster(), known).selections) == 1


def test_ordinary_words_that_another_account_has_judged_are_still_a_message_to_this_one() -> None:
    """T4"""
    known = snapshot(question(), judged=frozenset({"$typed"}))
    decisions = decide(CRITIC, batch(typed("wait, explain first")), roster(critic={"respond": "always"}), known)
    assert [(turn.agent, turn.kind) for turn in decisions.turns] == [(CRITIC, "message")]


def test_two_agents_questions_are_never_both_answered_by_one_number() -> None:
    known = (question("helpers", seq=1), question("critics", seq=2, agent=CRITIC, turn_id=TurnId("turn_c")))
    decisions = decided(typed(), known=known)
    assert [each.question_id for each in decisions.selections] == ["question_critics"]
    assert [(turn.agent, turn.kind) for turn in decisions.turns] == [(CRITIC, "selection")]
