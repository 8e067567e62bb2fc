"""One timeline from what was read of a room at one time and what was shown of it before and after."""

import pytest

from mindbridge.bridge.catchup import joined_timeline
from mindbridge.events import RoomEvent
from tests.unit.sample_room import ALICE, message


def events(names: str) -> tuple[RoomEvent, ...]:
    return tuple(message(name, f"${name}", ALICE) for name in names)


@pytest.mark.parametrize(
    ("read", "shown", "whole"),
    [
        ("abcd", "", "abcd"),
        ("", "cd", "cd"),
        ("abcd", "cd", "abcd"),
        ("abcd", "cdef", "abcdef"),
        ("abcd", "ef", "abcdef"),
        ("cd", "abcdef", "abcdef"),
        ("cd", "bcde", "bcde"),
    ],
)
def test_timeline_holds_each_event_once_in_its_place(read: str, shown: str, whole: str) -> None:
    assert joined_timeline(events(read), list(events(shown))) == events(whole)
