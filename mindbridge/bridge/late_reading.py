"""Encrypted events whose keys come late are admitted then, in their place; if none comes, the sender is told."""

import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby

from mindbridge import ids
from mindbridge.bridge import wording
from mindbridge.bridge.pace import Bell
from mindbridge.events import RoomEvent, SyncBatch
from mindbridge.ids import AgentName, EventId, TurnId
from mindbridge.journal.records import NewDelivery, UnreadNow
from mindbridge.journal.unread import UnreadStore
from mindbridge.matrix import content
from mindbridge.matrix.session import Session

log = logging.getLogger(__name__)

PATIENCE_MS = 60_000
"""A key that takes longer is worth a notice."""

AdmitRead = Callable[[SyncBatch, Sequence[EventId]], Awaitable[None]]


class LateReading:
    """Reads what one account could not read before; `admit` takes what it can read now."""

    def __init__(self, session: Session, store: UnreadStore, now: Callable[[], int], admit: AdmitRead) -> None:
        self._session = session
        self._agent = AgentName(session.agent)
        self._store = store
        self._now = now
        self._admit = admit
        self._bell = Bell()

    def wake(self) -> None:
        """Lets `run` try again: keys may have come, or there is something new to be read."""
        self._bell.ring()

    async def run(self) -> None:
        """Tries to read what is unread whenever it is woken, and tells senders, until cancelled."""
        wait: float | None = None
        while True:
            await self._bell.wait(wait)
            left = await self._read()
            wait = await self._tell(left)

    async def _read(self) -> list[UnreadNow]:
        """Admits what can be read now, gives what can't."""
        unread = await self._store.unread(self._agent)
        left: list[UnreadNow] = []
        for room_id, of_room in groupby(sorted(unread, key=lambda each: each.room_id), key=lambda each: each.room_id):
            events: list[RoomEvent] = []
            for each in of_room:
                event = self._session.read_again(each.room_id, json.loads(each.source))
                if event is None:
                    left.append(each)
                else:
                    events.append(event)
            if events:
                room = self._session.joined_room(room_id, tuple(events))
                batch = SyncBatch(next_batch="", first=False, joined=(room,), invites=(), left=())
                await self._admit(batch, [event.event_id for event in events])
                log.info("read_late agent=%s room_id=%s events=%d", self._agent, room_id, len(events))
        return left

    async def _tell(self, unread: list[UnreadNow]) -> float | None:
        """Tells the senders who are to be told now; seconds until the next is, None where there is none."""
        waits: list[int] = []
        told: set[tuple[str, str]] = set()
        for each in unread:
            whose = (each.room_id, each.sender)
            wait = each.seen_at + PATIENCE_MS - self._now()
            if each.told or whose in told:
                continue
            if wait > 0:
                waits.append(wait)
                continue
            told.add(whose)
            log.warning("unreadable agent=%s room_id=%s sender=%s", self._agent, each.room_id, each.sender)
            await self._store.tell(each.room_id, each.sender, self._notice(each), self._now())
        return min(waits) / 1000 if waits else None

    def _notice(self, unread: UnreadNow) -> NewDelivery:
        text = wording.unreadable(self._session.name_of(unread.room_id, unread.sender))
        return NewDelivery(
            # Not of this event: one notice for each sender and room.
            delivery_id=ids.delivery_id(TurnId(f"{self._agent} {unread.room_id}"), f"unreadable from {unread.sender}"),
            agent=self._agent,
            room_id=unread.room_id,
            kind="notice",
            content=content.notice(text, unread.thread_id, unread.event_id, (unread.sender,)),
        )
