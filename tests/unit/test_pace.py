"""Rooms that are left alone for a while."""

from mindbridge.bridge.pace import LONGEST_DELAY_SECONDS, SetAside
from mindbridge.ids import RoomId

ROOM, NOW = RoomId("!room"), 1_800_000_000_000


def test_room_is_set_aside_for_a_growing_while_and_as_good_as_new_after_a_success() -> None:
    aside, waits = SetAside(), []
    for _ in range(20):
        aside.failed(ROOM, NOW)
        waits.append(aside.rooms(NOW)[ROOM])
    assert 250 <= waits[0] <= 500
    assert LONGEST_DELAY_SECONDS * 500 <= waits[-1] <= LONGEST_DELAY_SECONDS * 1000
    assert aside.rooms(NOW + waits[-1]) == {}
    aside.succeeded(ROOM)
    assert aside.rooms(NOW) == {}
    aside.failed(ROOM, NOW)
    assert aside.rooms(NOW)[ROOM] <= 500


def test_clock_that_is_set_back_ends_the_wait() -> None:
    aside = SetAside()
    aside.failed(ROOM, NOW)
    assert aside.rooms(NOW - 24 * 60 * 60 * 1000) == {}
