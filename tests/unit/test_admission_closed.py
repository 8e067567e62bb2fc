"""Questions that are closed without an answer: redacted, their room left or upgraded (contract, sections 4 and 5)."""

from dataclasses import replace
from typing import Any

import pytest

from mindbridge.bridge.admission import decide, interest_of
from mindbridge.events import RoomEvent, SyncBatch, Tombstone
from mindbridge.ids import EventId, QuestionId, RoomId, UserId
from mindbridge.journal.records import (
    Closed,
    Decisions,
    Judged,
    Membership,
    MembershipState,
    RoomClosed,
    Sighting,
    Snapshot,
    Upgrade,
)
from mindbridge.questions.answers import Verdict
from mindbridge.questions.lifecycle import State
from tests.unit.sample_questions import (
    JOINED,
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
    room,
    roster,
)

ALWAYS: dict[str, Any] = {"helper": {"respond": "always"}}
NEW_ROOM = RoomId("!new")


def decided(shown: SyncBatch, known: Snapshot | None = None, agent: Any = HELPER, **who: Any) -> Decisions:
    return decide(agent, shown, roster(**(who or ALWAYS)), snapshot(question()) if known is None else known)


def verdicts(decisions: Decisions) -> list[tuple[str, str]]:
    return [(each.event_id, each.verdict) for each in decisions.verdicts]


def tombstone(sender: UserId = ALICE, replacement: str = NEW_ROOM) -> Tombstone:
    return Tombstone(event_id=EventId("$tombstone"), sender=sender, server_ts=NOON, replacement=RoomId(replacement))


# Redacted


def test_redaction_of_a_question_closes_it_and_says_why() -> None:
    assert decided(batch(redaction("$q"))) == Decisions(
        sightings=[Sighting(seq=NEXT_SEQ, event_id=EventId("$redaction"), server_ts=NOON, judged=True)],
        withdrawn=[EventId("$q")],
        closed=[Closed(question_id=QuestionId("question_q"), seq=NEXT_SEQ)],
        verdicts=[
            Judged(
                event_id=EventId("$redaction"),
                question_id=QuestionId("question_q"),
                sender=ALICE,
                verdict=Verdict.QUESTION_CLOSED,
                reason="It redacted the question, which closed it.",
            )
        ],
    )


def test_click_after_the_redaction_comes_too_late_and_nobody_is_told() -> None:
    decisions = decided(batch(redaction("$q"), click()))
    assert verdicts(decisions) == [("$redaction", Verdict.QUESTION_CLOSED), ("$click", Verdict.QUESTION_CLOSED)]
    assert (decisions.selections, decisions.turns, decisions.deliveries) == ([], [], [])


def test_number_in_the_thread_after_the_redaction_is_an_ordinary_message() -> None:
    decisions = decided(batch(redaction("$q"), message("2", "$typed", thread_id=THREAD)))
    assert decisions.selections == []
    assert [turn.source_event_id for turn in decisions.turns] == ["$typed"]


def test_answer_before_the_redaction_stays() -> None:
    decisions = decided(batch(click(), redaction("$q")))
    assert verdicts(decisions) == [("$click", Verdict.SELECTED)]
    assert [each.question_id for each in decisions.selections] == ["question_q"]
    assert decisions.closed == []


def test_question_is_closed_once_however_often_it_is_redacted() -> None:
    decisions = decided(batch(redaction("$q", "$one"), redaction("$q", "$two")))
    assert verdicts(decisions) == [("$one", Verdict.QUESTION_CLOSED)]
    assert len(decisions.closed) == 1


@pytest.mark.parametrize("state", [State.ANSWERED, State.SUPERSEDED, State.FAILED, State.CLOSED])
def test_redaction_of_a_question_that_is_not_open_changes_nothing(state: State) -> None:
    decisions = decided(batch(redaction("$q")), snapshot(question(state=state)))
    assert (decisions.closed, decisions.verdicts) == ([], [])


def test_redacted_question_that_no_timeline_showed_yet_is_closed() -> None:
    decisions = decided(batch(redaction("$q")), snapshot(unseen(event_id="$q")))
    assert decisions.closed == [Closed(question_id=QuestionId("question_q"), seq=NEXT_SEQ)]


def test_question_that_is_known_by_its_redacted_echo_alone_is_closed() -> None:
    """The send was not answered, and what the sync response shows of the message has no content any more."""
    echo = RoomEvent(event_id=EventId("$q"), sender=HELPER_USER, server_ts=NOON, transaction_id="delivery_q")
    decisions = decided(batch(echo, redaction("$q")), snapshot(unseen()))
    assert [(each.delivery_id, each.event_id) for each in decisions.acknowledged] == [("delivery_q", "$q")]
    assert decisions.closed == [Closed(question_id=QuestionId("question_q"), seq=NEXT_SEQ + 1)]


def test_redaction_of_another_rooms_event_closes_nothing() -> None:
    decisions = decided(batch(redaction("$q")), snapshot(question(room_id=RoomId("!other"))))
    assert (decisions.closed, decisions.verdicts) == ([], [])


def test_redaction_that_another_account_saw_before_the_questions_event_was_known_closes_it_still() -> None:
    known = replace(snapshot(question()), judged=frozenset({EventId("$redaction")}))
    assert verdicts(decided(batch(redaction("$q")), known)) == [("$redaction", Verdict.QUESTION_CLOSED)]


def test_redaction_that_another_account_has_taken_in_closes_nothing_again() -> None:
    event = EventId("$redaction")
    shut = question(state=State.CLOSED, closed_seq=50)
    known = replace(snapshot(shut), judged=frozenset({event}), verdicts=frozenset({event}))
    decisions = decided(batch(redaction("$q")), known)
    assert (decisions.closed, decisions.verdicts) == ([], [])


def test_answers_to_a_closed_question_have_a_verdict_and_are_told_to_nobody() -> None:
    reply = message("2", "$reply", reply_to=EventId("$q"))
    decisions = decided(batch(click(sender=BOB), reply), snapshot(question(state=State.CLOSED, closed_seq=50)))
    assert verdicts(decisions) == [("$click", Verdict.QUESTION_CLOSED), ("$reply", Verdict.QUESTION_CLOSED)]
    assert (decisions.selections, decisions.turns, decisions.deliveries) == ([], [], [])


# Left


def test_room_that_was_left_is_closed_without_words() -> None:
    decisions = decided(batch(left=(ROOM,)))
    assert decisions == Decisions(
        memberships=[Membership(room_id=ROOM, state="left", invited_ts=None)],
        rooms_closed=[RoomClosed(room_id=ROOM, reason="room_left")],
    )


# Upgraded


def upgrade(*, joined_for_it: bool) -> Upgrade:
    """What is to be checked of the tombstone."""
    return Upgrade(event_id=EventId("$tombstone"), room_id=ROOM, replacement=NEW_ROOM, joined_for_it=joined_for_it)


@pytest.mark.parametrize("sender", [ALICE, CRITIC_USER, HELPER_USER])
def test_upgrade_by_someone_who_may_is_followed_and_nothing_is_said_before_it_is_checked(sender: UserId) -> None:
    """A5"""
    decisions = decided(batch(tombstone(sender)))
    assert decisions.memberships == [Membership(room_id=NEW_ROOM, state="accepted", invited_ts=NOON)]
    assert decisions.rooms_closed == [RoomClosed(room_id=ROOM, reason="room_upgraded")]
    assert decisions.upgrades == [upgrade(joined_for_it=True)]
    assert decisions.deliveries == []


@pytest.mark.parametrize("sender", [STRANGER, BOT])
def test_upgrade_by_someone_who_may_not_is_not_followed_but_ends_the_room(sender: UserId) -> None:
    """A5"""
    decisions = decided(batch(tombstone(sender)))
    assert (decisions.memberships, decisions.upgrades) == ([], [])
    assert decisions.rooms_closed == [RoomClosed(room_id=ROOM, reason="room_upgraded")]


@pytest.mark.parametrize("state", ["joined", "accepted"])
def test_new_room_that_the_account_is_in_or_was_invited_to_is_not_joined_for_the_upgrade(
    state: MembershipState,
) -> None:
    """A5"""
    known = snapshot(question(), memberships=(JOINED, Membership(room_id=NEW_ROOM, state=state, invited_ts=None)))
    decisions = decided(batch(tombstone()), known)
    assert decisions.memberships == []
    assert decisions.upgrades == [upgrade(joined_for_it=False)]


@pytest.mark.parametrize("state", ["left", "refused"])
def test_new_room_that_the_account_was_not_to_be_in_is_joined_for_the_upgrade(state: MembershipState) -> None:
    known = snapshot(question(), memberships=(JOINED, Membership(room_id=NEW_ROOM, state=state, invited_ts=None)))
    decisions = decided(batch(tombstone()), known)
    assert [each.state for each in decisions.memberships] == ["accepted"]
    assert decisions.upgrades == [upgrade(joined_for_it=True)]


def test_new_room_is_asked_of_the_journal() -> None:
    assert set(interest_of(batch(tombstone())).rooms) == {ROOM, NEW_ROOM}


def test_click_after_the_upgrade_comes_too_late_and_one_before_it_counts() -> None:
    """A5"""
    known = snapshot(question("q"), question("p", seq=2))
    decisions = decided(batch(click(target="$p", event_id="$before"), tombstone(), click(event_id="$after")), known)
    assert verdicts(decisions) == [("$before", Verdict.SELECTED), ("$after", Verdict.QUESTION_CLOSED)]


def test_upgrade_closes_the_questions_of_the_account_that_sees_it() -> None:
    """A5: each account is shown it, and closes its own."""
    known = snapshot(question(agent=CRITIC))
    assert decided(batch(tombstone()), known).rooms_closed[0].room_id == ROOM
    assert decided(batch(tombstone()), known, CRITIC).rooms_closed[0].room_id == ROOM


def test_upgrade_from_before_the_account_counted_is_history() -> None:
    """A5"""
    decisions = decided(replace(batch(tombstone()), first=True), snapshot(memberships=()))
    assert (decisions.rooms_closed, decisions.upgrades) == ([], [])


# Quiet


@pytest.mark.parametrize(
    ("known", "verdict"),
    [
        (answered(), Verdict.ALREADY_ANSWERED),
        (question(state=State.SUPERSEDED), Verdict.SUPERSEDED),
        (question(requester=BOB), Verdict.NOT_ANSWERER),
    ],
)
def test_quiet_agent_tells_nobody_that_an_answer_was_not_taken(known: Any, verdict: Verdict) -> None:
    settings: dict[str, Any] = {"respond": "always", "questions": {"answerers": "requester"}}
    told = decided(batch(click()), snapshot(known), helper=settings)
    assert [each.kind for each in told.deliveries] == ["notice"]
    settings["questions"]["quiet"] = True
    silent = decided(batch(click()), snapshot(known), helper=settings)
    assert silent.deliveries == []
    assert verdicts(silent) == verdicts(told) == [("$click", verdict)]


def test_quiet_agent_takes_answers_and_closes_their_questions_like_any() -> None:
    quiet: dict[str, Any] = {"respond": "always", "questions": {"quiet": True}}
    assert decided(batch(click()), helper=quiet) == decided(batch(click()))


# Rooms that were left


def test_answer_right_before_the_account_was_removed_counts_and_a_message_starts_no_turn() -> None:
    parting = (room(click(), message("hello")),)
    decisions = decided(batch(left=(ROOM,), parting=parting))
    assert verdicts(decisions) == [("$click", Verdict.SELECTED)]
    assert [turn.kind for turn in decisions.turns] == ["selection"]
    assert decisions.rooms_closed == [RoomClosed(room_id=ROOM, reason="room_left")]


def test_what_happened_in_a_room_that_was_never_joined_counts_for_nothing() -> None:
    declined = snapshot(question(), memberships=(Membership(room_id=ROOM, state="refused", invited_ts=None),))
    decisions = decided(batch(left=(ROOM,), parting=(room(click()),)), declined)
    assert (decisions.sightings, decisions.verdicts) == ([], [])
