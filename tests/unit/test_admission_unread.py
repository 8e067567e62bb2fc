"""Encrypted events: kept until they can be read, then judged in their place."""

import pytest

from mindbridge.bridge.admission import decide
from mindbridge.events import RoomEvent, Unreadable
from mindbridge.ids import EventId, UserId
from mindbridge.journal.records import Decisions, Sighting, Snapshot, Unread
from tests.unit.sample_questions import NEXT_SEQ, THREAD, batch, question, redaction, snapshot
from tests.unit.sample_room import ALICE, CRITIC_USER, HELPER, NOON, ROOM, STRANGER, message, roster

HIDDEN = EventId("$hidden")


def unreadable(sender: UserId = ALICE) -> Unreadable:
    return Unreadable(event_id=HIDDEN, sender=sender, server_ts=NOON, source="{}", thread_id=THREAD)


def decided(*events: RoomEvent, known: Snapshot | None = None) -> Decisions:
    return decide(HELPER, batch(*events), roster(helper={"respond": "always"}), known or snapshot())


def test_event_that_cannot_be_read_is_kept_in_its_place_and_not_judged() -> None:
    assert decided(unreadable()) == Decisions(
        sightings=[Sighting(seq=NEXT_SEQ, event_id=HIDDEN, server_ts=NOON, judged=False)],
        unread=[
            Unread(event_id=HIDDEN, room_id=ROOM, thread_id=THREAD, sender=ALICE, source="{}", seq=NEXT_SEQ),
        ],
    )


@pytest.mark.parametrize("sender", [STRANGER, CRITIC_USER])
def test_what_others_have_encrypted_is_not_kept(sender: UserId) -> None:
    assert decided(unreadable(sender)).unread == []


def test_what_was_withdrawn_is_not_kept_and_not_waited_for() -> None:
    decisions = decided(unreadable(), redaction(HIDDEN))
    assert decisions.unread == []
    assert decided(redaction(HIDDEN)).withdrawn == [HIDDEN]


def test_event_that_can_be_read_later_is_judged_in_its_place_and_the_next_ones_after_all_others() -> None:
    known = snapshot(places={HIDDEN: 42})
    decisions = decided(message("hello", HIDDEN), message("more"), known=known)
    assert [(each.event_id, each.seq, each.judged) for each in decisions.sightings] == [
        (HIDDEN, 42, True),
        ("$message", NEXT_SEQ, True),
    ]
    assert [turn.text for turn in decisions.turns] == ["hello", "more"]


def test_number_that_can_be_read_later_means_no_question_that_was_asked_after_it() -> None:
    older, newer = question("older", seq=1), question("newer", seq=5)
    typed = message("2", HIDDEN, thread_id=THREAD)
    between = decided(typed, known=snapshot(older, newer, places={HIDDEN: 42}))
    assert [each.question_id for each in between.selections] == ["question_older"]
    before = decided(typed, known=snapshot(older, newer, places={HIDDEN: 5}))
    assert (before.selections, [turn.text for turn in before.turns]) == ([], ["2"])
