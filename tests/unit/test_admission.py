"""Rooms, history and ordinary messages in a sync response (contract, sections 2, 4 and 7)."""

from dataclasses import replace
from typing import Any

import pytest

from mindbridge import ids
from mindbridge.bridge.admission import decide
from mindbridge.events import JoinedRoom, RoomEvent, SyncBatch
from mindbridge.ids import DeliveryId, EventId, RoomId, TurnId, UserId
from mindbridge.journal.records import (
    Acknowledged,
    Decisions,
    Membership,
    NewTurn,
    Opened,
    RoomClosed,
    Said,
    Sighting,
    Snapshot,
    Utterance,
)
from mindbridge.questions.answers import Verdict
from tests.unit.sample_questions import (
    JOINED,
    NEXT_SEQ,
    THREAD,
    answered,
    batch,
    click,
    edit,
    invite,
    own_membership,
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

TO_HELPER: dict[str, Any] = {"mentions": frozenset({HELPER_USER})}
TO_BOTH: dict[str, Any] = {"mentions": frozenset({HELPER_USER, CRITIC_USER})}


def decided(shown: SyncBatch, known: Snapshot | None = None, agent: Any = HELPER, **who: Any) -> Decisions:
    return decide(agent, shown, roster(**who), snapshot() if known is None else known)


def sources(decisions: Decisions) -> list[str]:
    return [turn.source_event_id for turn in decisions.turns]


# Invitations


@pytest.mark.parametrize(
    ("inviter", "state"),
    [
        (ALICE, "accepted"),
        (STRANGER, "refused"),
        (BOT, "refused"),
        (CRITIC_USER, "refused"),
        (UserId("not a user"), "refused"),
        (UserId(""), "refused"),
    ],
)
def test_only_invitations_of_allowed_people_are_accepted(inviter: UserId, state: str) -> None:
    """A1"""
    decisions = decided(batch(invites=(invite(inviter, "!new"),)), snapshot(memberships=()))
    assert decisions == Decisions(
        memberships=[Membership(room_id=RoomId("!new"), state=state, invited_ts=NOON)]  # type: ignore[arg-type] # one of the states
    )


def test_invitation_that_is_shown_again_changes_nothing() -> None:
    known = snapshot(memberships=(Membership(room_id=ROOM, state="accepted", invited_ts=NOON),))
    assert decided(batch(invites=(invite(ALICE),)), known) == Decisions()


def test_invitation_after_a_refusal_or_a_leave_is_judged_anew() -> None:
    """A1"""
    for state in ("refused", "left"):
        before = Membership(room_id=ROOM, state=state, invited_ts=NOON - 1)
        decisions = decided(batch(invites=(invite(ALICE),)), snapshot(memberships=(before,)))
        assert [each.state for each in decisions.memberships] == ["accepted"]


def test_room_that_was_left_is_left() -> None:
    left = Membership(room_id=ROOM, state="left", invited_ts=None)
    closed = RoomClosed(room_id=ROOM, reason="room_left")
    assert decided(batch(left=(ROOM,))) == Decisions(memberships=[left], rooms_closed=[closed])
    assert decided(batch(left=(ROOM,)), snapshot(memberships=(left,))) == Decisions(rooms_closed=[closed])


# Where counting starts


def shown_first(*events: RoomEvent, membership: Membership | None = None, first: bool = False) -> Decisions:
    """The room's first timeline."""
    known = snapshot(memberships=() if membership is None else (membership,))
    return decided(batch(*events, first=first), known, helper={"respond": "always"})


OLD, HELLO, LATER = message("old", "$old"), message("hello", "$hello"), message("later", "$later")
INVITED, JOIN = own_membership("invite", "$invite"), own_membership("join", "$join", HELPER_USER)
ACCEPTED = Membership(room_id=ROOM, state="accepted", invited_ts=NOON)


def test_very_first_sync_starts_no_turn() -> None:
    decisions = shown_first(OLD, INVITED, HELLO, JOIN, LATER, first=True)
    assert decisions.turns == []
    assert decisions.memberships == [JOINED]
    assert [(each.event_id, each.judged) for each in decisions.sightings] == [
        (each.event_id, False) for each in (OLD, INVITED, HELLO, JOIN, LATER)
    ]


def test_what_was_said_before_a_join_does_not_count() -> None:
    """S1"""
    decisions = shown_first(OLD, click(), JOIN, HELLO)
    assert sources(decisions) == ["$hello"]
    assert decisions.verdicts == []
    assert decisions.memberships == [JOINED]
    assert [each.judged for each in decisions.sightings] == [False, False, False, True]


def test_hello_between_an_accepted_invitation_and_the_join_counts() -> None:
    assert sources(shown_first(OLD, INVITED, HELLO, JOIN, LATER, membership=ACCEPTED)) == ["$hello", "$later"]


def test_of_several_invitations_the_last_one_counts() -> None:
    again = own_membership("invite", "$again")
    left = own_membership("leave", "$left", HELPER_USER)
    assert sources(shown_first(INVITED, OLD, left, again, HELLO, JOIN, membership=ACCEPTED)) == ["$hello"]


def test_invitation_that_the_timeline_does_not_show_counts_from_its_time() -> None:
    before, at, after = (message(name, f"${name}", server_ts=NOON + ms) for name, ms in (("b", -1), ("a", 0), ("c", 1)))
    assert sources(shown_first(before, at, after, membership=ACCEPTED)) == ["$a", "$c"]
    assert sources(shown_first(before, membership=ACCEPTED)) == []


def test_refused_invitation_gives_no_right_to_what_was_said_before_the_join() -> None:
    """A1"""
    refused = replace(ACCEPTED, state="refused")
    assert sources(shown_first(OLD, INVITED, HELLO, JOIN, LATER, membership=refused)) == ["$later"]


def test_everything_counts_in_a_room_that_the_account_is_in() -> None:
    assert sources(shown_first(OLD, HELLO, membership=JOINED)) == ["$old", "$hello"]


def test_first_timeline_with_a_gap_after_the_join_counts_whole() -> None:
    timeline = replace(room(HELLO, LATER), limited=True)
    decisions = decided(batch(joined=(timeline,)), snapshot(memberships=()), helper={"respond": "always"})
    assert sources(decisions) == ["$hello", "$later"]


def test_room_joined_again_counts_from_the_new_join() -> None:
    left = Membership(room_id=ROOM, state="left", invited_ts=None)
    assert sources(shown_first(OLD, JOIN, HELLO, membership=left)) == ["$hello"]


# Sightings


def test_events_are_sighted_in_order_and_only_once() -> None:
    decisions = decided(batch(HELLO, LATER, HELLO), snapshot(sighted=frozenset({"$later"})))
    assert decisions.sightings == [
        Sighting(seq=NEXT_SEQ, event_id=EventId("$hello"), server_ts=NOON, judged=True),
    ]


def test_sightings_number_all_events_of_all_rooms() -> None:
    other = JoinedRoom(RoomId("!other"), frozenset(), limited=False, events=(LATER,))
    known = snapshot(memberships=(JOINED, replace(JOINED, room_id=RoomId("!other"))))
    decisions = decided(batch(joined=(room(OLD, HELLO), other)), known)
    assert [(each.event_id, each.seq) for each in decisions.sightings] == [
        ("$old", NEXT_SEQ),
        ("$hello", NEXT_SEQ + 1),
        ("$later", NEXT_SEQ + 2),
    ]


def test_event_that_was_sighted_has_no_further_effect() -> None:
    known = snapshot(question(), sighted=frozenset({"$message", "$click"}))
    assert decided(batch(message("hello", **TO_HELPER), click()), known) == Decisions()


def test_own_events_acknowledge_their_deliveries() -> None:
    own = message("hi", "$mine", HELPER_USER, transaction_id="delivery_1")
    assert decided(batch(own)).acknowledged == [
        Acknowledged(delivery_id=DeliveryId("delivery_1"), event_id=EventId("$mine"))
    ]


# Ordinary messages


def test_message_to_an_agent_is_a_turn_in_the_thread_that_it_starts() -> None:
    decisions = decided(batch(message("hello", "$hello", **TO_HELPER)))
    assert decisions.turns == [
        NewTurn(
            turn_id=ids.turn_id(HELPER, EventId("$hello")),
            agent=HELPER,
            kind="message",
            room_id=ROOM,
            thread_id=EventId("$hello"),
            source_event_id=EventId("$hello"),
            sender=ALICE,
            sender_name="Alice",
            text="hello",
        )
    ]
    assert decisions.said == [
        Said(room_id=ROOM, thread_id=None, event_id=EventId("$hello"), sender=ALICE, text="hello")
    ]


def test_message_in_a_thread_is_a_turn_in_that_thread() -> None:
    (turn,) = decided(batch(message("go on", thread_id=THREAD))).turns
    assert turn.thread_id == THREAD


def test_agent_without_threads_takes_its_turn_in_the_main_timeline() -> None:
    decisions = decided(batch(message("hello", **TO_HELPER)), helper={"threads": False})
    assert [turn.thread_id for turn in decisions.turns] == [None]


def test_message_that_starts_a_turn_makes_its_agent_part_of_the_thread_at_once() -> None:
    hello, more = message("hello", "$hello", **TO_HELPER), message("more", "$more", thread_id=EventId("$hello"))
    assert sources(decided(batch(hello, more))) == ["$hello", "$more"]


@pytest.mark.parametrize("sender", [STRANGER, BOT, CRITIC_USER, HELPER_USER])
def test_strangers_bots_and_agents_start_no_turn(sender: UserId) -> None:
    """S5"""
    decisions = decided(batch(message("hello", sender=sender, **TO_BOTH)), helper={"respond": "always"})
    assert (decisions.turns, decisions.said, decisions.deliveries) == ([], [], [])


def test_notice_starts_no_turn() -> None:
    """S5"""
    decisions = decided(batch(message("hello", is_notice=True, **TO_HELPER)), helper={"respond": "always"})
    assert (decisions.turns, decisions.said) == ([], [])


@pytest.mark.parametrize("text", ["hello", "2", "Careful"])
def test_edit_starts_no_turn_and_answers_nothing(text: str) -> None:
    """S4"""
    decisions = decided(batch(edit(text)), snapshot(question()), helper={"respond": "always"})
    assert (decisions.turns, decisions.said, decisions.selections, decisions.deliveries) == ([], [], [], [])


def test_edit_to_a_number_has_a_verdict_where_a_question_could_have_been_meant() -> None:
    """S4"""
    assert [each.verdict for each in decided(batch(edit("2")), snapshot(question())).verdicts] == [Verdict.EDITED]
    assert decided(batch(edit("2"))).verdicts == []
    assert decided(batch(edit("two words")), snapshot(question())).verdicts == []


def test_message_that_was_taken_back_in_the_same_response_starts_no_turn() -> None:
    decisions = decided(batch(message("hello", **TO_HELPER), redaction("$message")))
    assert (decisions.turns, decisions.said) == ([], [])


def test_message_to_two_agents_is_a_turn_of_each_by_its_own_account() -> None:
    hello = message("hello", "$hello", **TO_BOTH)
    assert [turn.agent for turn in decided(batch(hello)).turns] == [HELPER]
    after_helper = snapshot(judged=frozenset({"$hello"}))
    assert [turn.agent for turn in decided(batch(hello), after_helper, CRITIC).turns] == [CRITIC]


def test_agent_that_is_not_configured_takes_no_turn() -> None:
    assert decided(batch(message("hello", **TO_HELPER)), agent="former").turns == []


# What agents say, and questions that are seen


def asked_event(event_id: str = "$q", sender: UserId = HELPER_USER, **changes: Any) -> RoomEvent:
    fields: dict[str, Any] = {"thread_id": THREAD, "question_id": "question_q"}
    return message("q?", event_id, sender, **(fields | changes))


OPENED = Opened(question_id=unseen().question_id, event_id=EventId("$q"), asked_ts=NOON, seq=NEXT_SEQ)
UTTERED = Utterance(
    agent=HELPER, room_id=ROOM, thread_id=THREAD, event_id=EventId("$q"), turn_id=TurnId("turn_q"), seq=NEXT_SEQ
)


@pytest.mark.parametrize("agent", [HELPER, CRITIC])
@pytest.mark.parametrize("event_id", [None, "$q"])
def test_question_is_open_once_any_account_has_seen_it(agent: str, event_id: str | None) -> None:
    """R11"""
    decisions = decided(batch(asked_event()), snapshot(unseen(event_id=event_id)), agent)
    assert (decisions.opened, decisions.utterances) == ([OPENED], [UTTERED])


def test_question_that_was_looked_up_has_its_true_place_once_it_is_shown() -> None:
    assert decided(batch(asked_event()), snapshot(question(opened_seq=3))).opened == [OPENED]


def test_question_that_another_account_was_shown_keeps_its_place() -> None:
    after_helper = snapshot(question(), judged=frozenset({"$q"}))
    assert decided(batch(asked_event()), after_helper, CRITIC) == Decisions(
        sightings=[Sighting(seq=NEXT_SEQ, event_id=EventId("$q"), server_ts=NOON, judged=True)]
    )


@pytest.mark.parametrize("sender", [ALICE, STRANGER, BOT, CRITIC_USER])
def test_question_claimed_by_anyone_but_its_agent_is_inert(sender: UserId) -> None:
    """R12"""
    decisions = decided(batch(asked_event(sender=sender)), snapshot(unseen()))
    assert (decisions.opened, decisions.selections, decisions.verdicts) == ([], [], [])


@pytest.mark.parametrize("claim", ["question_other", "", "x" * 10_000])
def test_claim_of_a_question_that_is_not_recorded_is_inert(claim: str) -> None:
    """R12"""
    assert decided(batch(asked_event(question_id=claim)), snapshot(unseen())).opened == []


def test_question_claimed_in_another_room_is_not_seen() -> None:
    """R12"""
    elsewhere = unseen(room_id=RoomId("!other"))
    assert decided(batch(asked_event()), snapshot(elsewhere)).opened == []


def test_question_whose_event_is_known_is_not_seen_in_another_one() -> None:
    decisions = decided(batch(asked_event("$copy")), snapshot(unseen(event_id="$q")))
    assert decisions.opened == []


def test_what_an_agent_says_is_known_for_its_turn() -> None:
    by_transaction = message("part 2", "$part2", HELPER_USER, thread_id=THREAD, transaction_id="delivery_2")
    by_event = message("part 3", "$part3", HELPER_USER, thread_id=THREAD)
    unknown = message("part 4", "$part4", HELPER_USER, thread_id=THREAD)
    known = snapshot(turns_of_events={"delivery_2": TurnId("turn_a"), "$part3": TurnId("turn_b")})
    decisions = decided(batch(by_transaction, by_event, unknown), known)
    assert [(each.event_id, each.turn_id) for each in decisions.utterances] == [
        ("$part2", "turn_a"),
        ("$part3", "turn_b"),
        ("$part4", None),
    ]


def test_bridges_own_notices_are_nothing_that_an_agent_says() -> None:
    assert decided(batch(message("note", "$note", HELPER_USER, is_notice=True))).utterances == []


def test_what_people_and_bots_say_is_nothing_that_an_agent_says() -> None:
    assert decided(batch(message("hm"), message("hm", "$2", BOB), message("rain", "$3", BOT))).utterances == []


# Gaps


def with_gap(*events: RoomEvent) -> SyncBatch:
    return batch(joined=(room(*events, limited=True),))


def test_question_that_the_server_has_and_a_gap_may_hide_counts_as_seen() -> None:
    """S2"""
    decisions = decided(with_gap(click()), snapshot(unseen(event_id="$q")))
    assert decisions.opened == [replace(OPENED, asked_ts=unseen().recorded_at)]
    assert [selected.question_id for selected in decisions.selections] == ["question_q"]


def test_question_that_the_timeline_shows_behind_a_gap_is_opened_by_its_own_event() -> None:
    decisions = decided(with_gap(message("hm"), asked_event()), snapshot(unseen(event_id="$q")))
    assert decisions.opened == [replace(OPENED, seq=NEXT_SEQ + 1)]


def test_gap_opens_nothing_that_was_not_posted_or_was_seen_before() -> None:
    known = snapshot(unseen("a"), question("b"), answered("c"), unseen("d", event_id="$d", room_id=RoomId("!other")))
    assert decided(with_gap(message("hm")), known).opened == []
