"""From a queued turn to its recorded end: one agent's work, in order within a thread, threads side by side."""

import asyncio
import logging
from collections.abc import Callable

from mindbridge import ids
from mindbridge.agents.backend import AgentFailed, Backend
from mindbridge.bridge import wording
from mindbridge.bridge.pace import Bell
from mindbridge.bridge.replies import latest_in_thread, outcome_of
from mindbridge.bridge.roster import Roster
from mindbridge.bridge.turn_input import turn_input
from mindbridge.config.schema import AgentConfig
from mindbridge.ids import AgentName, EventId, RoomId, UserId
from mindbridge.journal.database import JournalError
from mindbridge.journal.records import NewDelivery, QueuedTurn
from mindbridge.journal.turns import TurnStore
from mindbridge.matrix import content
from mindbridge.matrix.errors import MatrixError
from mindbridge.matrix.session import TYPING_MS, Session
from mindbridge.steps import Step, reached

log = logging.getLogger(__name__)

OFF_LOOP_CHARACTERS = 8 * 1024
TYPING_DELAY_SECONDS = 0.2
FIRST_RETRY_MS = 1_000
RETRY_GROWTH = 4
LONGEST_RETRY_MS = 3_600_000

_Thread = tuple[RoomId, EventId | None]


class TurnRunner:
    """Runs one agent's turns; at most `turns_at_once`, and one at a time in a thread."""

    def __init__(
        self,
        config: AgentConfig,
        backend: Backend,
        session: Session,
        store: TurnStore,
        roster: Roster,
        now: Callable[[], int],
        on_ended: Callable[[], None],
    ) -> None:
        self._config = config
        self._backend = backend
        self._session = session
        self._store = store
        self._roster = roster
        self._now = now
        self._on_ended = on_ended
        self._agent = AgentName(session.agent)
        self._busy: set[_Thread] = set()
        self._stopping = False
        self.bell = Bell()

    async def run(self) -> None:
        """Runs turns until `stop`, then until those that are running have ended."""
        await self._store.requeue_parked(self._agent)
        async with asyncio.TaskGroup() as tasks:
            while not self._stopping:
                wait = await self._start_due(tasks)
                await self.bell.wait(wait)

    def stop(self) -> None:
        """Starts no further turn."""
        self._stopping = True
        self.bell.ring()

    async def _start_due(self, tasks: asyncio.TaskGroup) -> float | None:
        """Starts what may run now; the seconds until the next turn is due, None where none waits for its time."""
        waits: list[int] = []
        for turn, due_at in await self._store.runnable(self._agent):
            thread = (turn.room_id, turn.thread_id)
            if thread in self._busy or self._stopping:
                continue
            wait = due_at - self._now()
            # One that is longer than the turn's delay comes of a clock that was set back.
            if 0 < wait <= _retry_ms(turn.failures):
                waits.append(wait)
            elif len(self._busy) < self._config.turns_at_once:
                self._busy.add(thread)
                tasks.create_task(self._run_one(turn, thread, tasks))
        return min(waits) / 1000 if waits else None

    async def _run_one(self, turn: QueuedTurn, thread: _Thread, tasks: asyncio.TaskGroup) -> None:
        try:
            await self._attempt(turn, tasks)
        except AgentFailed as error:
            await self._fail(turn, str(error))
        except JournalError:
            raise  # not this turn's fault, and nothing could be noted of it
        except Exception as error:
            log.exception("turn_broke turn_id=%s", turn.turn_id)
            await self._fail(turn, f"{type(error).__name__}: {error}")
        finally:
            self._busy.discard(thread)
            self.bell.ring()
            self._on_ended()

    async def _attempt(self, turn: QueuedTurn, tasks: asyncio.TaskGroup) -> None:
        context = await self._store.context(turn)
        log.info("turn_started turn_id=%s agent=%s attempt=%d", turn.turn_id, self._agent, turn.failures + 1)
        worked = asyncio.Event()
        tasks.create_task(self._keep_typing(turn.room_id, worked))
        try:
            reached(Step.CALL_AGENT, "before")
            reply = await self._backend.reply(turn_input(turn, context, self._config, self._roster))
            reached(Step.CALL_AGENT, "after")
        finally:
            worked.set()
        max_options = self._config.questions.max_options
        if len(reply) > OFF_LOOP_CHARACTERS:
            outcome = await asyncio.to_thread(outcome_of, turn, reply, max_options)
        else:
            outcome = outcome_of(turn, reply, max_options)
        for problem in outcome.problems:
            log.warning("reply_problem turn_id=%s code=%s message=%s", turn.turn_id, problem.code, problem.message)
        await self._store.end(turn, UserId(self._config.account.user_id), outcome, self._now())
        log.info("turn_ended turn_id=%s messages=%d", turn.turn_id, len(outcome.parts))

    async def _fail(self, turn: QueuedTurn, error: str) -> None:
        if self._stopping:
            log.warning("turn_interrupted turn_id=%s; it runs again at the next start: %s", turn.turn_id, error)
            return
        failures = turn.failures + 1
        log.warning("turn_failed turn_id=%s attempt=%d error=%s", turn.turn_id, failures, error)
        if failures < self._config.backend.attempts:
            await self._store.delay(turn.turn_id, error, self._now() + _retry_ms(failures))
            return
        about = latest_in_thread(turn)
        notice = NewDelivery(
            delivery_id=ids.delivery_id(turn.turn_id, "parked"),
            agent=self._agent,
            room_id=turn.room_id,
            kind="notice",
            content=content.notice(wording.parked(self._config.display_name or self._agent), turn.thread_id, about),
            turn_id=turn.turn_id,
        )
        await self._store.park(turn.turn_id, error, notice, self._now())
        log.error("turn_parked turn_id=%s; run it again with: mindbridge journal retry %s", turn.turn_id, turn.turn_id)

    async def _keep_typing(self, room_id: RoomId, worked: asyncio.Event) -> None:
        """Shows the typing notice until the agent has worked; work that is done at once shows none."""
        if await _happens(worked, TYPING_DELAY_SECONDS):
            return
        await self._show_typing(room_id, typing=True)
        while not await _happens(worked, TYPING_MS / 2000):
            await self._show_typing(room_id, typing=True)
        await self._show_typing(room_id, typing=False)

    async def _show_typing(self, room_id: RoomId, *, typing: bool) -> None:
        try:
            await self._session.show_typing(room_id, typing=typing)
        except MatrixError as error:
            log.debug("typing_failed room_id=%s error=%s", room_id, error)


def _retry_ms(failures: int) -> int:
    """How long a turn waits after so many failures in a row, in milliseconds."""
    return int(min(FIRST_RETRY_MS * RETRY_GROWTH ** max(failures - 1, 0), LONGEST_RETRY_MS))


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
