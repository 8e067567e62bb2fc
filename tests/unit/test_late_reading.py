"""What is unread is tried again when keys come; who sent it is told when none came for long, once in a room."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from mindbridge.bridge.late_reading import PATIENCE_MS, LateReading
from mindbridge.events import JoinedRoom, RoomEvent, SyncBatch
from mindbridge.ids import EventId, RoomId, UserId
from mindbridge.journal.database import Database
from mindbridge.journal.records import Unread
from mindbridge.journal.unread import UnreadStore
from tests.journal.sample_rows import ALICE, HELPER, NOW, ROOM, admit, rows, sighting
from tests.unit.sample_room import message

OTHER_ROOM, BOB = RoomId("!other"), UserId("@bob:example.org")


class Reader:
    """A session that can read some events."""

    agent = HELPER

    def __init__(self) -> None:
        self.readable: set[EventId] = set()

    def read_again(self, _room: RoomId, source: dict[str, Any]) -> RoomEvent | None:
        return message("hello", source["event_id"]) if source["event_id"] in self.readable else None

    def joined_room(self, room_id: RoomId, events: tuple[RoomEvent, ...]) -> JoinedRoom:
        return JoinedRoom(room_id, frozenset({ALICE}), limited=False, events=events)

    def name_of(self, _room: RoomId, user: UserId) -> str:
        return user


class Stage:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.session = Reader()
        self.now = NOW
        self.admitted: list[tuple[RoomId, Sequence[EventId]]] = []
        self.reading = LateReading(cast("Any", self.session), UnreadStore(database), lambda: self.now, self._admit)

    async def _admit(self, batch: SyncBatch, events: Sequence[EventId]) -> None:
        self.admitted.append((batch.joined[0].room_id, events))
        await admit(self.database, withdrawn=list(events))

    async def wake(self) -> None:
        """Lets it do once what it does when it is woken."""
        self.reading.wake()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await self.reading.run()

    def notices(self) -> list[tuple[str, str]]:
        return rows(self.database, "SELECT room_id, json_extract(content, '$.body') FROM deliveries ORDER BY seq")


@pytest.fixture
async def stage(tmp_path: Path) -> Any:
    database = await Database.open(tmp_path)
    try:
        hidden = [("$1", ROOM, ALICE), ("$2", OTHER_ROOM, ALICE), ("$3", ROOM, BOB), ("$4", ROOM, ALICE)]
        unread = [
            Unread(
                event_id=EventId(event_id),
                room_id=room_id,
                thread_id=None,
                sender=sender,
                source=f'{{"event_id": "{event_id}"}}',
                seq=seq,
            )
            for seq, (event_id, room_id, sender) in enumerate(hidden, start=1)
        ]
        sightings = [sighting(each.event_id, each.seq, judged=False) for each in unread]
        await admit(database, sightings=sightings, unread=unread)
        yield Stage(database)
    finally:
        await database.close()


async def test_what_can_be_read_now_is_admitted_room_by_room_in_its_order(stage: Stage) -> None:
    stage.session.readable = {EventId("$1"), EventId("$2"), EventId("$4")}
    await stage.wake()
    assert stage.admitted == [(OTHER_ROOM, ["$2"]), (ROOM, ["$1", "$4"])]
    assert [each.event_id for each in await UnreadStore(stage.database).unread(HELPER)] == ["$3"]


async def test_nobody_is_told_before_a_key_had_its_time(stage: Stage) -> None:
    """A2"""
    stage.now = NOW + PATIENCE_MS - 1_000
    await stage.wake()
    assert stage.notices() == []


async def test_sender_is_told_once_in_each_room_and_later_ones_too(stage: Stage) -> None:
    stage.now = NOW + PATIENCE_MS
    for _ in range(2):
        await stage.wake()
    told = [(room, body.partition(":")[0]) for room, body in stage.notices()]
    assert sorted(told) == sorted([(ROOM, "@alice"), (ROOM, "@bob"), (OTHER_ROOM, "@alice")])


async def test_waiting_ends_when_the_time_is_over_without_being_woken(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mindbridge.bridge.late_reading.PATIENCE_MS", 50)
    reading = asyncio.create_task(stage.reading.run())
    stage.reading.wake()
    async with asyncio.timeout(10):
        while not stage.notices():
            await asyncio.sleep(0.01)
            stage.now += 10
    reading.cancel()
