"""What a sync response left out of a room's timeline, read backwards from the room's history."""

import logging
from dataclasses import replace

from mindbridge.events import JoinedRoom, OwnMembership, RoomEvent, SyncBatch
from mindbridge.ids import AgentName
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.records import Membership
from mindbridge.matrix.errors import Refused
from mindbridge.matrix.past import MOST_PAGES, Past

log = logging.getLogger(__name__)


class Gaps:
    """Fills the gaps in one account's sync responses."""

    def __init__(self, agent: AgentName, past: Past, store: AdmissionStore) -> None:
        self._agent = agent
        self._past = past
        self._store = store

    async def fill(self, batch: SyncBatch, since: str | None) -> SyncBatch:
        """The response with whole timelines.

        A room stays `limited` where its gap could not be filled to its end. What is from before the account counted in
        a room is not looked for.

        Args:
            batch: a sync response of the account.
            since: the position before it, None for the account's very first.

        Raises:
            MatrixError: history can't be read now; to be tried again.
        """
        limited = [room for room in batch.joined if room.limited]
        if batch.first or not limited:
            return batch
        known = await self._store.memberships_in(self._agent, [room.room_id for room in limited])
        filled = {room.room_id: await self._fill_room(room, known.get(room.room_id), since) for room in limited}
        return replace(batch, joined=tuple(filled.get(room.room_id, room) for room in batch.joined))

    async def _fill_room(self, room: JoinedRoom, known: Membership | None, since: str | None) -> JoinedRoom:
        if known is None or known.state not in {"joined", "accepted"}:
            return room
        if known.state == "accepted":
            # Its counting begins with the invitation, which is older than the position: the room was not synced yet.
            since = None
        earlier: list[RoomEvent] = []
        before = room.before
        for _ in range(MOST_PAGES):
            if _is_whole([*room.events, *earlier], known):
                break
            try:
                page = await self._past.page(room.room_id, before, since)
            except Refused as error:
                log.error("gap_not_filled agent=%s room_id=%s error=%s", self._agent, room.room_id, error)  # noqa: TRY400 - the server's words say it all
                return room
            earlier += page.events
            before = page.before
            if before is None:
                break
        else:
            log.error(
                "gap_not_filled agent=%s room_id=%s events=%d; older messages of the gap are not read, clicks are",
                self._agent,
                room.room_id,
                len(earlier),
            )
            return replace(room, events=(*reversed(earlier), *room.events))
        log.info("gap_filled agent=%s room_id=%s events=%d", self._agent, room.room_id, len(earlier))
        return replace(room, events=(*reversed(earlier), *room.events), limited=False)


def _is_whole(events: list[RoomEvent], known: Membership) -> bool:
    """Whether events reach back to where the account began to count in a room that it has just joined."""
    if known.state == "joined":
        return False
    return any(
        event.server_ts < (known.invited_ts or 0) or (isinstance(event, OwnMembership) and event.membership == "invite")
        for event in events
    )
