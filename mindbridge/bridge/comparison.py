"""Open questions compared with the server: reactions that no sync response showed count as well."""

import logging
from collections.abc import Callable, Collection

from mindbridge.bridge.admission import decide, interest_of
from mindbridge.bridge.pace import Bell, SetAside
from mindbridge.bridge.roster import Roster
from mindbridge.events import Redaction, RoomEvent, SyncBatch
from mindbridge.ids import EventId, RoomId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.records import Comparable, Decisions
from mindbridge.matrix.content import QUESTION_KEY, question_metadata
from mindbridge.matrix.errors import MatrixError, Refused, TokenRejected
from mindbridge.matrix.session import Session
from mindbridge.questions.lifecycle import State
from mindbridge.questions.render import part_from_json

log = logging.getLogger(__name__)


class Comparison:
    """Takes in what one account missed on its questions; `on_decided` is told what that meant."""

    def __init__(
        self,
        session: Session,
        store: AdmissionStore,
        roster: Roster,
        now: Callable[[], int],
        on_decided: Callable[[Decisions], None],
    ) -> None:
        self._session = session
        self._store = store
        self._roster = roster
        self._now = now
        self._on_decided = on_decided
        self._readings: list[set[EventId]] = []
        self._bell = Bell()

    def note(self, batch: SyncBatch) -> None:
        """Notes a response right before it is admitted: its redactions may be newer than what is being read."""
        events = (event for room in batch.joined for event in room.events)
        withdrawn = {event.target for event in events if isinstance(event, Redaction)}
        for reading in self._readings:
            reading.update(withdrawn)

    def wake(self) -> None:
        """Lets `run` look for questions that are to be compared."""
        self._bell.ring()

    async def run(self, is_behind: Callable[[RoomId], bool]) -> None:
        """Compares the questions that are marked for it, until cancelled; those in rooms that are behind come later.

        Raises:
            TokenRejected: the account was logged out.
        """
        failing = SetAside()
        while True:
            waits = failing.waits(self._now()).values()
            await self._bell.wait(min(waits) / 1000 if waits else None)
            for question in await self._store.to_compare(self._session.agent):
                room_id = question.room_id
                if is_behind(room_id) or room_id in failing.waits(self._now()):
                    continue
                try:
                    await self._compare(question, ())
                except TokenRejected:
                    raise
                except MatrixError as error:
                    failing.failed(room_id, self._now())
                    log.warning("comparison_failed question_id=%s error=%s", question.question_id, error)
                else:
                    failing.succeeded(room_id)

    async def compare_room(self, room_id: RoomId, upcoming: Collection[EventId]) -> None:
        """Compares the questions of a room that are marked for it.

        Args:
            room_id: the room.
            upcoming: events that are admitted right after, in their own place; a reaction among them is left to that.

        Raises:
            MatrixError: the server gave no usable answer; to be tried again.
        """
        for question in await self._store.to_compare(self._session.agent):
            if question.room_id == room_id:
                await self._compare(question, upcoming)

    async def _compare(self, question: Comparable, upcoming: Collection[EventId]) -> None:
        withdrawn = set[EventId]()
        self._readings.append(withdrawn)
        try:
            if not await self._is_as_posted(question):
                return
            reactions = await self._reactions(question)
            missed = tuple(event for event in reactions if event.event_id not in withdrawn | {*upcoming})
            await self._admit(question, missed)
        finally:
            self._readings.remove(withdrawn)

    async def _reactions(self, question: Comparable) -> tuple[RoomEvent, ...]:
        try:
            return await self._session.past.reactions(question.room_id, question.event_id)
        except Refused as error:
            log.warning("not_compared question_id=%s error=%s", question.question_id, error)
            return ()

    async def _admit(self, question: Comparable, missed: tuple[RoomEvent, ...]) -> None:
        room = self._session.joined_room(question.room_id, missed)
        batch = SyncBatch(next_batch="", first=False, joined=(room,), invites=(), left=())
        decisions = await self._store.admit(
            self._session.agent,
            interest_of(batch),
            None,
            lambda snapshot: decide(self._session.agent, batch, self._roster, snapshot),
            self._now(),
            compared=question.question_id,
        )
        new = len(decisions.sightings)
        log.info("compared question_id=%s reactions=%d new=%d", question.question_id, len(missed), new)
        self._on_decided(decisions)

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
        if not content:
            log.info("question_redacted question_id=%s; it is closed", question.question_id)
            await self._store.close_compared(question.question_id, "question_redacted", self._now())
            return False
        posted = content.get(QUESTION_KEY)
        if asked is None or posted is None:
            return True
        if posted == question_metadata(question.question_id, asked, State.OPEN):
            return True
        log.warning("question_posted_otherwise question_id=%s; it is closed", question.question_id)
        await self._store.close_compared(question.question_id, "posted_otherwise", self._now())
        return False
