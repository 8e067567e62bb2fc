"""Builds everything from the configuration and runs it: the one place that knows all parts."""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mindbridge.agents.backend import Backend, make_backend
from mindbridge.bridge.agent_bridge import AgentBridge, unless_stopped
from mindbridge.bridge.closing import closing_as_removed
from mindbridge.bridge.pace import growing_delays, now_ms
from mindbridge.bridge.roster import Roster
from mindbridge.config.schema import Config
from mindbridge.ids import AgentName
from mindbridge.journal.closings import close_questions_of_removed
from mindbridge.journal.database import Database, JournalDamaged, JournalError, Ownership
from mindbridge.journal.retention import Retention
from mindbridge.matrix.errors import AccountUnusable, MatrixError

log = logging.getLogger(__name__)

DRAIN_SECONDS = 8.0
_WATCH_SECONDS = 1.0
_SOUND_SECONDS = 300.0
# Journal and event loop hand over to each other at every statement. While another thread computes, for an agent or to
# render a long reply, each hand-over waits for so long: with Python's 5 ms, all agents would all but stand still.
_THREAD_SWITCH_SECONDS = 0.0001


async def run_bridge(
    config: Config, *, reset_identity: str | None = None, on_ready: Callable[[], None] = lambda: None
) -> int:
    """Runs the bridge until SIGTERM or SIGINT.

    Args:
        config: the configuration.
        reset_identity: the agent whose account gets a new cross-signing identity where that is needed.
        on_ready: called once every agent has had its first sync.

    Returns:
        0 after a clean stop, 1 when no agent is left that could run.

    Raises:
        JournalError: the journal can't be used, or another bridge runs on it.
        BackendUnusable: an agent's program can't be used.
    """
    sys.setswitchinterval(_THREAD_SWITCH_SECONDS)
    roster = Roster(config)
    backends = {AgentName(name): make_backend(agent, config.folder) for name, agent in config.agents.items()}
    ownership = Ownership(config.journal)
    try:
        database = await Database.open(config.journal)
        try:
            closed = await close_questions_of_removed(database, set(backends), closing_as_removed, now_ms())
            if closed:
                log.info("questions_closed number=%d reason=agent_removed", closed)
            return await _Bridge(roster, backends, database, reset_identity, on_ready).run()
        finally:
            await database.close()
    finally:
        ownership.release()


class _Bridge:
    """All agents of one configuration, each on its own: the trouble of one does not stop the others."""

    def __init__(
        self,
        roster: Roster,
        backends: dict[AgentName, Backend],
        database: Database,
        reset_identity: str | None,
        on_ready: Callable[[], None],
    ) -> None:
        self._roster = roster
        self._backends = backends
        self._database = database
        self._reset_identity = reset_identity
        self._on_ready = on_ready
        self._retention = Retention(database, roster.config.keep, now_ms)
        self._synced = {name: asyncio.Event() for name in backends}
        self._agents = {name: self._make(name) for name in backends}
        self._stop = asyncio.Event()

    def _make(self, name: AgentName) -> AgentBridge:
        config = self._roster.config.agents[name]
        return AgentBridge(
            name,
            config,
            self._backends[name],
            self._roster,
            self._database,
            lambda: self._admitted(name),
            reset_identity=name == self._reset_identity,
        )

    def _admitted(self, name: AgentName) -> None:
        self._synced[name].set()
        self._wake()

    def _wake(self) -> None:
        for agent in self._agents.values():
            agent.wake()

    async def run(self) -> int:
        """Runs until told to stop; 1 when no agent was left before that, else 0.

        Raises:
            JournalDamaged: the journal's file broke meanwhile.
        """
        try:
            with _stopped_by_signals(self._stop):
                results = await self._run_all()
        except ExceptionGroup as faults:
            if (damage := _damage(faults)) is not None:
                raise damage from None
            raise
        log.info("stopped")
        return 0 if self._stop.is_set() or any(results) else 1

    async def _run_all(self) -> list[bool]:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._supervise(name)) for name in self._backends]
            others = [tasks.create_task(work) for work in (self._watch(), self._tell_ready(running))]
            others.append(tasks.create_task(self._enforce_deadline(running)))
            others.append(tasks.create_task(self._retention.run()))
            results = await asyncio.gather(*running)
            for task in others:
                task.cancel()
        return results

    async def _supervise(self, name: AgentName) -> bool:
        """Runs one agent, again after a fault; False when its account can't be used."""
        delays = growing_delays(first=1.0)
        loop = asyncio.get_running_loop()
        while True:
            started_at = loop.time()
            try:
                await self._agents[name].run(self._stop)
            except AccountUnusable as error:
                log.error("agent_stopped agent=%s error=%s", name, error)  # noqa: TRY400 - the error says all
                return False
            except asyncio.CancelledError:
                log.warning("drain_unfinished agent=%s; what is not done yet goes on at the next start", name)
                return True
            except Exception as error:  # noqa: BLE001 - whatever an agent breaks of, the others go on
                if loop.time() - started_at > _SOUND_SECONDS:
                    delays = growing_delays(first=1.0)
                delay = next(delays)
                _tell(name, error, delay)
            else:
                return True
            await unless_stopped(self._stop, asyncio.sleep(delay))
            if self._stop.is_set():
                return True
            self._agents[name] = self._make(name)

    async def _enforce_deadline(self, running: list[asyncio.Task[bool]]) -> None:
        await self._stop.wait()
        await asyncio.sleep(DRAIN_SECONDS)
        for task in running:
            task.cancel()

    async def _watch(self) -> None:
        """Notices what `mindbridge journal retry` writes from another process."""
        version: int | None = None
        while True:
            try:
                newer = await self._database.changes_by_others()
            except JournalDamaged:
                raise
            except JournalError as error:
                log.debug("watch_failed error=%s", error)  # the agents tell it as well
            else:
                if version is not None and newer != version:
                    self._wake()
                version = newer
            await asyncio.sleep(_WATCH_SECONDS)

    async def _tell_ready(self, running: list[asyncio.Task[bool]]) -> None:
        """Tells when each agent has had its first sync or can't be used."""
        for name, task in zip(self._backends, running, strict=True):
            ready = asyncio.ensure_future(self._synced[name].wait())
            await asyncio.wait({ready, task}, return_when=asyncio.FIRST_COMPLETED)
            ready.cancel()
        log.info("ready agents=%d", sum(not task.done() for task in running))
        self._on_ready()


def _tell(name: AgentName, fault: Exception, delay: float) -> None:
    """Logs why an agent is started again: a fault that is foreseen in a line, any other with its traceback.

    Raises:
        JournalDamaged: that is why, and starting again does not help.
    """
    if (damage := _damage(fault)) is not None:
        raise damage
    errors = list(_leaves(fault))
    error = errors[0]
    if all(isinstance(each, JournalError) for each in errors):
        log.error("journal_failed agent=%s retry_in=%.1fs error=%s", name, delay, error)
    elif all(isinstance(each, MatrixError) for each in errors):
        log.warning("agent_interrupted agent=%s retry_in=%.1fs error=%s", name, delay, error)
    else:
        log.error("agent_broke agent=%s retry_in=%.1fs", name, delay, exc_info=fault)


def _leaves(fault: Exception) -> Iterator[Exception]:
    if isinstance(fault, ExceptionGroup):
        for each in fault.exceptions:
            yield from _leaves(each)
    else:
        yield fault


def _damage(fault: Exception) -> JournalDamaged | None:
    return next((each for each in _leaves(fault) if isinstance(each, JournalDamaged)), None)


@contextmanager
def _stopped_by_signals(stop: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for each in signals:
        loop.add_signal_handler(each, stop.set)
    try:
        yield
    finally:
        for each in signals:
            loop.remove_signal_handler(each)
