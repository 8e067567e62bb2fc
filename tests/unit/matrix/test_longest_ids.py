"""Ids that are too long, or empty, are none."""

from typing import Any

import pytest

from mindbridge.events import Invite, RoomEvent
from mindbridge.ids import EventId, RoomId, UserId
from mindbridge.matrix.inbound import read_event, read_invite

OWN, ROOM = UserId("@assistant:example.org"), RoomId("!room:example.org")
LONGEST = "x" * 255


def read(**changes: Any) -> RoomEvent | None:
    source = {"type": "m.weird", "event_id": "$event", "sender": "@alice:x", "origin_server_ts": 5, "content": {}}
    return read_event(source | changes, OWN, str)


def test_event_with_the_longest_ids_is_one() -> None:
    read_as = read(event_id=LONGEST, sender=LONGEST)
    assert read_as == RoomEvent(event_id=EventId(LONGEST), sender=UserId(LONGEST), server_ts=5)


@pytest.mark.parametrize("name", ["event_id", "sender"])
@pytest.mark.parametrize("value", [LONGEST + "x", ""], ids=["too long", "empty"])
def test_event_with_an_id_or_sender_that_is_too_long_or_empty_is_none(name: str, value: str) -> None:
    assert read(**{name: value}) is None


def test_invitation_by_a_sender_that_is_too_long_is_passed_over_for_the_next_one() -> None:
    by = [
        {"type": "m.room.member", "state_key": OWN, "sender": sender, "content": {"membership": "invite"}}
        for sender in (LONGEST + "x", "@alice:x")
    ]
    assert read_invite(ROOM, [5, None, "x", *by], OWN) == Invite(ROOM, UserId("@alice:x"), 0)
