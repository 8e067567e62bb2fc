"""What is left alone for a while."""

from mindbridge.bridge.pace import LONGEST_DELAY_SECONDS, SetAside
from mindbridge.ids import RoomId

ROOM, NOW = RoomId("!room"), 1_800_000_000_000


def test_room_is_set_aside_for_a_growing_while_and_as_good_as_new_after_a_success() -> None:
    aside, waits = SetAside(), []
    for _ in range(20):
        aside.failed(ROOM, NOW)
        waits.append(aside.waits(NOW)[ROOM])
    assert 250 <= waits[0] <= 500
    assert LONGEST_DELAY_SECONDS * 500 <= waits[-1] <= LONGEST_DELAY_SECONDS * 1000
    assert aside.waits(NOW + waits[-1]) == {}
    aside.succeeded(ROOM)
    assert aside.waits(NOW) == {}
    aside.failed(ROOM, NOW)
    assert aside.waits(NOW)[ROOM] <= 500


def test_clock_that_is_set_back_ends_the_wait() -> None:
    aside = SetAside()
    aside.failed(ROOM, NOW)
    assert aside.waits(NOW - 24 * 60 * 60 * 1000) == {}


def test_it_takes_as_many_failures_in_a_row_as_there_is_patience() -> None:
    aside = SetAside(patience=3)
    assert [aside.failed(ROOM, NOW) for _ in range(2)] == [False, False]
    assert aside.waits(NOW) == {}
    aside.succeeded(ROOM)
    assert [aside.failed(ROOM, NOW) for _ in range(4)] == [False, False, True, True]
    assert set(aside.waits(NOW)) == {ROOM}
