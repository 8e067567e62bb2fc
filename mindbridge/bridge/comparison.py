"""Open questions compared with the server: reactions that no sync response showed count as well."""

import logging
from collections.abc import Callable, Collection

from mindbridge.bridge.admission import decide, interest_of
from mindbridge.bridge.roster import Roster
from mindbridge.events import SyncBatch
from mindbridge.ids import AgentName, EventId, QuestionId, RoomId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.records import Decisions
from mindbridge.matrix.errors import Refused
from mindbridge.matrix.session import Session

log = logging.getLogger(__name__)


class Comparison:
    """Takes in what one account missed on its questions."""

    def __init__(
        self,
        session: Session,
        store: AdmissionStore,
        roster: Roster,
        now: Callable[[], int],
    ) -> None:
        self._session = session
        self._agent = AgentName(session.agent)
        self._store = store
        self._roster = roster
        self._now = now

    async def run(self, upcoming: Collection[EventId] = ()) -> list[Decisions]:
        """Compares the questions that are marked for it.

        Args:
            upcoming: events that are admitted right after, in their own place; a reaction among them is left to that.

        Returns:
            What was decided.

        Raises:
            MatrixError: the server gave no usable answer; to be tried again.
        """
        marked = await self._store.to_compare(self._agent)
        return [await self._compare(*question, upcoming) for question in marked]

    async def _compare(
        self, question: QuestionId, room_id: RoomId, event_id: EventId, upcoming: Collection[EventId]
    ) -> Decisions:
        try:
            reactions = await self._session.past.reactions(room_id, event_id)
        except Refused as error:
            log.warning("not_compared question_id=%s error=%s", question, error)
            reactions = ()
        missed = tuple(event for event in reactions if event.event_id not in upcoming)
        room = self._session.joined_room(room_id, missed)
        batch = SyncBatch(next_batch="", first=False, joined=(room,), invites=(), left=())
        decisions = await self._store.admit(
            self._agent,
            interest_of(batch),
            None,
            lambda snapshot: decide(self._agent, batch, self._roster, snapshot),
            self._now(),
            compared=question,
        )
        log.info("compared question_id=%s reactions=%d new=%d", question, len(missed), len(decisions.sightings))
        return decisions
