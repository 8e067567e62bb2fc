"""Encrypted events in the journal: kept, taken up once when they can be read, forgotten when they need not be."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mindbridge import ids
from mindbridge.ids import EventId, RoomId, TurnId, UserId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.records import Decisions, RoomClosed, Snapshot, Unread, UnreadNow
from mindbridge.journal.reports import Reports
from mindbridge.journal.retention import Retention
from mindbridge.journal.unread import UnreadStore
from tests.journal.sample_rows import ALICE, CRITIC, HELPER, NOTHING, NOW, ROOM, admit, delivery, rows, sighting

HIDDEN = EventId("$hidden")


def unread(event_id: str = HIDDEN, seq: int = 3, **changes: Any) -> Unread:
    fields: dict[str, Any] = {"room_id": ROOM, "thread_id": None, "sender": ALICE, "source": json.dumps({"a": 1})}
    return Unread(event_id=EventId(event_id), seq=seq, **(fields | changes))


@pytest.fixture
async def store(database: Database) -> UnreadStore:
    await admit(database, sightings=[sighting(HIDDEN, 3, judged=False), sighting("$next", 4)], unread=[unread()])
    return UnreadStore(database)


async def test_what_is_unread_is_the_accounts_own_in_its_order(store: UnreadStore, database: Database) -> None:
    await admit(database, sightings=[sighting("$other", 5, judged=False)], unread=[unread("$other", 5)])
    first, second = await store.unread(HELPER)
    assert first == UnreadNow(
        event_id=HIDDEN,
        room_id=ROOM,
        thread_id=None,
        sender=ALICE,
        source='{"a": 1}',
        seq=3,
        seen_at=NOW,
        told=False,
    )
    assert second.event_id == "$other"
    assert await store.unread(CRITIC) == []


async def test_what_is_unread_is_told_of_an_event(store: UnreadStore, database: Database) -> None:
    await admit(database, sightings=[sighting("$old", 6, judged=False)])
    reports = Reports(database.path.parent)
    assert "key" in reports.why(HIDDEN)["reason"]
    assert "before the account counted" in reports.why("$old")["reason"]
    [unread_now] = await store.unread(HELPER)
    assert reports.status()["unread"] == [
        {"agent": HELPER, "room_id": ROOM, "event_id": unread_now.event_id, "sender": ALICE}
    ]


async def test_event_that_is_read_late_is_as_if_it_had_not_been_shown_but_has_its_place(
    store: UnreadStore, database: Database
) -> None:
    given: list[Snapshot] = []

    def read(known: Snapshot) -> Decisions:
        given.append(known)
        return Decisions(sightings=[sighting(HIDDEN, known.places[HIDDEN])])

    await AdmissionStore(database).admit(HELPER, NOTHING, None, read, NOW, read_late=[HIDDEN])

    assert given[0].places == {HIDDEN: 3}
    assert given[0].next_seq == 5
    assert rows(database, "SELECT seq, event_id, judged FROM sightings ORDER BY seq") == [
        (3, HIDDEN, 1),
        (4, "$next", 1),
    ]
    assert await store.unread(HELPER) == []


@pytest.mark.usefixtures("store")
async def test_event_that_was_read_meanwhile_is_not_read_again(database: Database) -> None:
    known: list[Snapshot] = []

    def read(seen: Snapshot) -> Decisions:
        known.append(seen)
        return Decisions()

    for _ in range(2):
        await AdmissionStore(database).admit(HELPER, NOTHING, None, read, NOW, read_late=[HIDDEN])
    assert [each.places for each in known] == [{HIDDEN: 3}, {}]


async def test_event_that_was_withdrawn_is_not_waited_for(store: UnreadStore, database: Database) -> None:
    await admit(database, CRITIC, withdrawn=[HIDDEN])
    assert len(await store.unread(HELPER)) == 1
    await admit(database, withdrawn=[HIDDEN])
    assert await store.unread(HELPER) == []


async def test_room_that_was_left_has_nothing_unread(store: UnreadStore, database: Database) -> None:
    await admit(database, rooms_closed=[RoomClosed(room_id=RoomId("!other"), reason="room_left")])
    assert len(await store.unread(HELPER)) == 1
    await admit(database, rooms_closed=[RoomClosed(room_id=ROOM, reason="room_left")])
    assert await store.unread(HELPER) == []


async def test_sender_is_told_once_in_a_room(store: UnreadStore, database: Database) -> None:
    bob = UserId("@bob:example.org")
    later = [unread("$more", 5), unread("$of bob", 6, sender=bob)]
    await admit(database, sightings=[sighting(each.event_id, each.seq, judged=False) for each in later], unread=later)
    notice = delivery(ids.delivery_id(TurnId("turn"), "unreadable"), "notice")
    await store.tell(ROOM, ALICE, notice, NOW)
    assert [(each.event_id, each.told) for each in await store.unread(HELPER)] == [
        (HIDDEN, True),
        ("$more", True),
        ("$of bob", False),
    ]
    await store.tell(ROOM, ALICE, notice, NOW)
    assert rows(database, "SELECT kind, state FROM deliveries") == [("notice", "pending")]


async def test_what_never_could_be_read_goes_with_the_texts_that_are_kept_no_longer(
    store: UnreadStore, database: Database
) -> None:
    for seq, (days, number) in enumerate(((1, 1), (3, 0)), start=5):
        then = NOW + days * 24 * 3600 * 1000
        await admit(database, sightings=[replace(sighting(f"$now {days}", seq), server_ts=then)])
        await Retention(database, timedelta(days=2), lambda then=then: then).forget()  # type: ignore[misc]
        assert len(await store.unread(HELPER)) == number
