"""From the homeserver into the journal: one account's sync, driven by the position that the journal holds."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from mindbridge.bridge.admission import decide, interest_of
from mindbridge.bridge.catchup import Catchup
from mindbridge.bridge.comparison import Comparison
from mindbridge.bridge.late_reading import LateReading
from mindbridge.bridge.pace import growing_delays, wait_after
from mindbridge.bridge.roster import Roster
from mindbridge.bridge.upgrades import Upgrades
from mindbridge.events import SyncBatch
from mindbridge.ids import EventId, RoomId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.records import Decisions, Membership
from mindbridge.journal.unread import UnreadStore
from mindbridge.matrix.errors import MatrixError, Refused, TokenRejected
from mindbridge.matrix.key_store import KeysLost
from mindbridge.matrix.session import Session
from mindbridge.questions.answers import Verdict

log = logging.getLogger(__name__)

HELD_BACK_SECONDS = 1.0


class Intake:
    """Takes one account's sync responses into the journal, for ever; waits for a `lull` before it asks for the next."""

    def __init__(
        self,
        session: Session,
        store: AdmissionStore,
        unread: UnreadStore,
        roster: Roster,
        rooms: Sequence[str],
        now: Callable[[], int],
        on_admitted: Callable[[], None],
        lull: Callable[[], Awaitable[None]],
        on_joined: Callable[[], None],
    ) -> None:
        self._session = session
        self._store = store
        self._roster = roster
        self._rooms_to_join = list(rooms)
        self._now = now
        self._on_admitted = on_admitted
        self._lull = lull
        self._on_joined = on_joined
        self._comparison = Comparison(session, store, roster, now, self._take_notice)
        self._catchup = Catchup(session, store, self._comparison, self._admit_late)
        self._late_reading = LateReading(session, unread, now, self._admit_read)
        self._upgrades = Upgrades(session, store, now, on_admitted)
        self._memberships_due = True
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Syncs until cancelled.

        Raises:
            ExceptionGroup: of `TokenRejected`, the account was logged out; and whatever the journal raises.
        """
        since = await self._store.record_account(self._session.agent, self._session.user_id, self._now())
        await self._catchup.load()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._catchup.run())
            tasks.create_task(self._comparison.run(self._catchup.is_behind))
            tasks.create_task(self._late_reading.run())
            await self._sync(since)

    async def _sync(self, since: str | None) -> None:
        delays, pauses = growing_delays(), _pauses()
        loop = asyncio.get_running_loop()
        while True:
            asked_at = loop.time()
            try:
                batch = await self._session.sync(since, wait=True)
            except TokenRejected:
                raise
            except MatrixError as error:
                delay = wait_after(error, delays)
                log.warning("sync_failed agent=%s retry_in=%.1fs error=%s", self._session.agent, delay, error)
                await asyncio.sleep(delay)
                continue
            delays = growing_delays()
            is_idle = loop.time() - asked_at < HELD_BACK_SECONDS and not _tells_something(batch, since)
            async with self._catchup.whole(batch, since) as (whole, behind):
                self._comparison.note(whole)
                await self._admit(whole, batch.next_batch, behind=behind)
            since = batch.next_batch
            self._comparison.wake()
            if batch.keys_came or not self.ready.is_set():
                self._late_reading.wake()
            self.ready.set()
            await self._keep_keys()
            await self._settle_memberships()
            await self._lull()
            if is_idle:
                await asyncio.sleep(next(pauses))
            else:
                pauses = _pauses()

    async def _keep_keys(self) -> None:
        """Does what fails here after the next response; a device whose keys are lost starts anew."""
        try:
            await self._session.keep_keys()
        except (TokenRejected, KeysLost):
            raise
        except MatrixError as error:
            log.warning("keys_not_kept agent=%s error=%s", self._session.agent, error)

    async def _admit(
        self,
        batch: SyncBatch,
        next_batch: str | None,
        *,
        behind: Mapping[RoomId, str] | None = None,
        caught_up: RoomId | None = None,
        read_late: Sequence[EventId] = (),
    ) -> None:
        """Commits what a response means, then lets the others know."""
        agent = self._session.agent
        decisions = await self._store.admit(
            agent,
            interest_of(batch),
            next_batch,
            lambda snapshot: decide(agent, batch, self._roster, snapshot),
            self._now(),
            behind=behind,
            caught_up=caught_up,
            read_late=read_late,
        )
        self._memberships_due = self._memberships_due or bool(decisions.memberships or decisions.upgrades)
        if decisions.unread:
            self._late_reading.wake()
        self._take_notice(decisions)

    async def _admit_late(self, batch: SyncBatch, room_id: RoomId) -> None:
        self._comparison.note(batch)
        await self._admit(batch, None, caught_up=room_id)

    async def _admit_read(self, batch: SyncBatch, events: Sequence[EventId]) -> None:
        self._comparison.note(batch)
        await self._admit(batch, None, read_late=events)

    def _take_notice(self, decisions: Decisions) -> None:
        _log(decisions)
        self._on_admitted()

    async def _settle_memberships(self) -> None:
        """Joins and declines what was decided; what the server was not there for is tried after the next response."""
        if not self._memberships_due:
            return
        agent = self._session.agent
        later = [room for room in self._rooms_to_join if not await self._try(self._session.join(room), f"join {room}")]
        self._rooms_to_join = later
        settled = not later
        for membership in await self._store.memberships(agent, "accepted"):
            settled &= await self._try(self._accept(membership.room_id), "accept the invitation", membership)
        for membership in await self._store.memberships(agent, "refused"):
            settled &= await self._try(self._session.leave(membership.room_id), "decline the invitation", membership)
        settled &= await self._upgrades.settle()
        self._memberships_due = not settled

    async def _accept(self, room_id: RoomId) -> None:
        await self._session.join(room_id)
        self._on_joined()

    async def _try(self, request: Awaitable[object], what: str, invited: Membership | None = None) -> bool:
        """Whether a request is settled: done, or refused for good."""
        agent = self._session.agent
        try:
            await request
        except Refused as error:
            log.error("refused agent=%s what=%r error=%s; invite the account to the room again", agent, what, error)  # noqa: TRY400 - the server's words say it all
        except TokenRejected:
            raise
        except MatrixError as error:
            log.warning("failed agent=%s what=%r error=%s", agent, what, error)
            return False
        else:
            if invited is None or invited.state == "accepted":
                return True
        if invited is not None:
            await self._store.record_membership(agent, replace(invited, state="left"))
        return True


def _tells_something(batch: SyncBatch, since: str | None) -> bool:
    is_news = any(room.events for room in batch.joined) or bool(batch.invites or batch.left)
    return is_news and batch.next_batch != since


def _pauses() -> Iterator[float]:
    """Seconds to wait after each response in a row that told nothing and was not held back until there was something.

    A server gives a few of these now and then, and a broken one nothing else.
    """
    return growing_delays(first=0.05, most=5.0)


def _log(decisions: Decisions) -> None:
    for judged in decisions.verdicts:
        log.log(
            logging.DEBUG if judged.verdict is Verdict.UNKNOWN_QUESTION else logging.INFO,
            "answer_judged event_id=%s question_id=%s verdict=%s",
            judged.event_id,
            judged.question_id,
            judged.verdict,
        )
    for turn in decisions.turns:
        log.info(
            "turn_queued agent=%s turn_id=%s kind=%s event_id=%s",
            turn.agent,
            turn.turn_id,
            turn.kind,
            turn.source_event_id,
        )
    for membership in decisions.memberships:
        log.info("membership room_id=%s state=%s", membership.room_id, membership.state)
