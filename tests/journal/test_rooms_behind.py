"""Rooms of which an account has missed something, until it has caught up."""

import pytest

from mindbridge.ids import RoomId, UserId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.records import Decisions, Membership, RoomClosed
from tests.journal.sample_rows import CRITIC, HELPER, HELPER_USER, NOTHING, NOW, ROOM, admit

JOINED = Membership(room_id=ROOM, state="joined", invited_ts=None)


@pytest.fixture
async def store(database: Database) -> AdmissionStore:
    store = AdmissionStore(database)
    await store.record_account(HELPER, HELPER_USER, NOW)
    await store.record_membership(HELPER, JOINED)
    await store.admit(HELPER, NOTHING, "s2", lambda _: Decisions(), NOW, behind={ROOM: "s1"})
    return store


async def test_room_is_behind_since_the_first_position_until_it_has_caught_up(store: AdmissionStore) -> None:
    await store.admit(HELPER, NOTHING, "s3", lambda _: Decisions(), NOW, behind={ROOM: "s2"})
    assert await store.rooms_behind(HELPER) == [(JOINED, "s1")]
    assert await store.rooms_behind(CRITIC) == []

    await store.admit(HELPER, NOTHING, None, lambda _: Decisions(), NOW, caught_up=ROOM)
    assert await store.rooms_behind(HELPER) == []
    assert await store.record_account(HELPER, HELPER_USER, NOW) == "s3"


async def test_room_that_was_left_is_not_behind(store: AdmissionStore, database: Database) -> None:
    closed = RoomClosed(room_id=RoomId("!other"), reason="room_left")
    await admit(database, rooms_closed=[closed])
    assert await store.rooms_behind(HELPER) == [(JOINED, "s1")]
    await admit(database, rooms_closed=[RoomClosed(room_id=ROOM, reason="room_left")])
    assert await store.rooms_behind(HELPER) == []


async def test_rooms_of_an_agents_former_account_are_not_behind(store: AdmissionStore) -> None:
    await store.record_account(HELPER, UserId("@successor:example.org"), NOW)
    await store.record_membership(HELPER, JOINED)
    assert await store.rooms_behind(HELPER) == []
