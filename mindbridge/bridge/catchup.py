"""Whole timelines: a room whose history can't be read for now is behind, and follows later; all others go on."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from mindbridge.bridge.comparison import Comparison
from mindbridge.bridge.gaps import Gaps
from mindbridge.bridge.pace import Bell, growing_delays, wait_after
from mindbridge.events import JoinedRoom, RoomEvent, SyncBatch
from mindbridge.ids import RoomId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.records import Membership
from mindbridge.matrix.errors import MatrixError, TokenRejected
from mindbridge.matrix.session import Session

log = logging.getLogger(__name__)

FILL_SECONDS = 10.0
"""For so long a sync response waits for the history of its rooms; a room that takes longer is behind."""

_AT_ONCE = 8
_MOST_SHOWN = 1000

AdmitLate = Callable[[SyncBatch, RoomId], Awaitable[None]]


@dataclass(slots=True)
class _Behind:
    """A room that is behind since a position; `shown`: the newest of what sync responses have shown of it since."""

    known: Membership
    since: str
    shown: list[RoomEvent] = field(default_factory=list)
    has_new_gap: bool = False
    is_tended: bool = False

    def add(self, room: JoinedRoom) -> None:
        self.shown = [*self.shown, *room.events][-_MOST_SHOWN:]
        self.has_new_gap |= room.limited


class Catchup:
    """Makes the timelines of one account whole: at once, or else later, and then `admit` takes what was missed."""

    def __init__(self, session: Session, store: AdmissionStore, comparison: Comparison, admit: AdmitLate) -> None:
        self._session = session
        self._store = store
        self._comparison = comparison
        self._admit = admit
        self._gaps = Gaps(session.agent, session.past)
        self._behind: dict[RoomId, _Behind] = {}
        self._one_at_a_time = asyncio.Lock()
        self._few_at_once = asyncio.Semaphore(_AT_ONCE)
        self._bell = Bell()

    async def load(self) -> None:
        """Takes up the rooms that were behind when the bridge ended."""
        behind = await self._store.rooms_behind(self._session.agent)
        self._behind = {known.room_id: _Behind(known, since) for known, since in behind}

    def is_behind(self, room_id: RoomId) -> bool:
        """Whether more has happened in a room than was admitted."""
        return room_id in self._behind

    @asynccontextmanager
    async def whole(self, batch: SyncBatch, since: str | None) -> AsyncIterator[tuple[SyncBatch, Mapping[RoomId, str]]]:
        """What of a sync response can be admitted now, within the block, and the rooms that are behind from now on.

        Args:
            batch: a sync response of the account.
            since: the position before it, None for the account's very first.

        Raises:
            TokenRejected: the account was logged out.
        """
        async with self._one_at_a_time:
            for room_id in batch.left:
                self._behind.pop(room_id, None)
            now, late = await self._divide(batch, since)
            new = {room_id: each.since for room_id, each in late.items() if room_id not in self._behind}
            yield replace(batch, joined=tuple(now)), new
            self._behind |= late
        self._bell.ring()

    async def _divide(self, batch: SyncBatch, since: str | None) -> tuple[list[JoinedRoom], dict[RoomId, _Behind]]:
        now, late = list[JoinedRoom](), dict[RoomId, _Behind]()
        limited = [room.room_id for room in batch.joined if room.limited]
        known = await self._store.memberships_in(self._session.agent, limited) if limited else {}
        deadline = asyncio.get_running_loop().time() + FILL_SECONDS
        for room in batch.joined:
            behind, membership = self._behind.get(room.room_id), known.get(room.room_id)
            if behind is not None:
                behind.add(room)
            elif since is None or membership is None or membership.state not in {"joined", "accepted"}:
                now.append(room)
            else:
                try:
                    async with asyncio.timeout_at(deadline):
                        now.append(await self._fill(room, membership, since))
                except TokenRejected:
                    raise
                except (MatrixError, TimeoutError) as error:
                    reason = str(error) or f"its history takes longer than {FILL_SECONDS:.0f} s"
                    log.warning("room_behind agent=%s room_id=%s error=%s", self._session.agent, room.room_id, reason)
                    late[room.room_id] = _Behind(membership, since, list(room.events))
        return now, late

    async def _fill(
        self, room: JoinedRoom, known: Membership, since: str, shown: Collection[RoomEvent] = ()
    ) -> JoinedRoom:
        """The room with its gap filled; where that can't be had, clicks that were missed are taken in first."""
        filled = await self._gaps.fill(room, known, since)
        if filled.limited:
            await self._store.mark_gap(self._session.agent, room.room_id)
            await self._comparison.compare_room(room.room_id, {each.event_id for each in (*filled.events, *shown)})
        return filled

    async def run(self) -> None:
        """Lets rooms that are behind catch up, until cancelled.

        Raises:
            ExceptionGroup: of `TokenRejected`, the account was logged out; and whatever the journal raises.
        """
        async with asyncio.TaskGroup() as tasks:
            while True:
                # The first ring comes with the first sync response: before that no members are known.
                await self._bell.wait()
                for room_id, behind in self._behind.items():
                    if not behind.is_tended:
                        behind.is_tended = True
                        tasks.create_task(self._tend(room_id, behind))

    async def _tend(self, room_id: RoomId, behind: _Behind) -> None:
        delays = growing_delays()
        while self._behind.get(room_id) is behind:
            try:
                async with self._few_at_once:
                    await self._catch_up(room_id, behind)
            except TokenRejected:
                raise
            except MatrixError as error:
                wait = wait_after(error, delays)
                agent = self._session.agent
                log.warning("room_behind agent=%s room_id=%s retry_in=%.1fs error=%s", agent, room_id, wait, error)
                await asyncio.sleep(wait)

    async def _catch_up(self, room_id: RoomId, behind: _Behind) -> None:
        behind.has_new_gap = False
        room = replace(self._session.joined_room(room_id, ()), limited=True)
        filled = await self._fill(room, behind.known, behind.since, behind.shown)
        async with self._one_at_a_time:
            if behind.has_new_gap or self._behind.get(room_id) is not behind:
                return
            events = joined_timeline(filled.events, behind.shown)
            whole = replace(self._session.joined_room(room_id, events), limited=filled.limited)
            batch = SyncBatch(next_batch="", first=False, joined=(whole,), invites=(), left=())
            await self._admit(batch, room_id)
            del self._behind[room_id]
        log.info("room_caught_up agent=%s room_id=%s events=%d", self._session.agent, room_id, len(events))


def joined_timeline(read: tuple[RoomEvent, ...], shown: list[RoomEvent]) -> tuple[RoomEvent, ...]:
    """One timeline of what was read of it at one time, and of what was shown of it before and after that."""
    known = {event.event_id for event in read}
    last = max((place for place, event in enumerate(shown) if event.event_id in known), default=-1)
    before = [event for event in shown[: last + 1] if event.event_id not in known]
    return (*before, *read, *shown[last + 1 :])
