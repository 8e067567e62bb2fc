"""What a sync response left out of a room's timeline, read backwards from the room's history."""

import logging
from dataclasses import replace

from mindbridge.events import JoinedRoom, OwnMembership, RoomEvent
from mindbridge.ids import AgentName
from mindbridge.journal.records import Membership
from mindbridge.matrix.errors import Refused
from mindbridge.matrix.past import MOST_PAGES, Past

log = logging.getLogger(__name__)


class Gaps:
    """Fills the gaps in one account's timelines."""

    def __init__(self, agent: AgentName, past: Past) -> None:
        self._agent = agent
        self._past = past

    async def fill(self, room: JoinedRoom, known: Membership, since: str) -> JoinedRoom:
        """The room with its whole timeline.

        It stays `limited` where its gap could not be filled to its end. What is from before the account counted in the
        room is not looked for.

        Args:
            room: a room whose timeline has a gap at its start, which begins at `room.before`, else at the room's end.
            known: what the journal knows of the account in it: joined, or an invitation was accepted.
            since: the position where the gap ends.

        Raises:
            MatrixError: history can't be read now; to be tried again.
        """
        # An invitation is older than the position: the room was not synced yet when it came.
        upto = None if known.state == "accepted" else since
        earlier: list[RoomEvent] = []
        before = room.before
        for _ in range(MOST_PAGES):
            if _is_whole([*room.events, *earlier], known):
                break
            try:
                page = await self._past.page(room.room_id, before, upto)
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
