"""Open questions compared with the server: reactions that no sync response showed count as well."""

import logging
from collections.abc import Callable, Collection

from mindbridge.bridge.admission import decide, interest_of
from mindbridge.bridge.roster import Roster
from mindbridge.events import SyncBatch
from mindbridge.ids import AgentName, EventId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.records import Comparable, Decisions
from mindbridge.matrix.content import QUESTION_KEY, question_metadata
from mindbridge.matrix.errors import Refused
from mindbridge.matrix.session import Session
from mindbridge.questions.lifecycle import State
from mindbridge.questions.render import part_from_json

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
        return [await self._compare(question, upcoming) for question in marked if await self._is_as_posted(question)]

    async def _is_as_posted(self, question: Comparable) -> bool:
        """Whether the message in the room offers what the journal holds; if not, the question is closed.

        After a backup was put back, an agent that is asked again may ask otherwise than it did.
        """
        asked = part_from_json(question.part).question
        try:
            content = await self._session.past.content(question.room_id, question.event_id)
        except Refused as error:
            log.warning("not_compared question_id=%s error=%s", question.question_id, error)
            return True
        posted = content.get(QUESTION_KEY)
        if asked is None or posted is None:
            return True
        if posted == question_metadata(question.question_id, asked, State.OPEN):
            return True
        log.warning("question_posted_otherwise question_id=%s; it is closed", question.question_id)
        await self._store.close_posted_otherwise(question.question_id, self._now())
        return False

    async def _compare(self, question: Comparable, upcoming: Collection[EventId]) -> Decisions:
        room_id = question.room_id
        try:
            reactions = await self._session.past.reactions(room_id, question.event_id)
        except Refused as error:
            log.warning("not_compared question_id=%s error=%s", question.question_id, error)
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
            compared=question.question_id,
        )
        new = len(decisions.sightings)
        log.info("compared question_id=%s reactions=%d new=%d", question.question_id, len(missed), new)
        return decisions
