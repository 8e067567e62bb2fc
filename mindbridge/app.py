"""Builds everything from the configuration and runs it: the one place that knows all parts."""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager

from mindbridge.agents.backend import Backend, make_backend
from mindbridge.bridge.delivery import Deliverer
from mindbridge.bridge.intake import Intake
from mindbridge.bridge.pace import Bell, growing_delays, now_ms
from mindbridge.bridge.roster import Roster
from mindbridge.bridge.turns import TurnRunner
from mindbridge.config.schema import AgentConfig, Config
from mindbridge.ids import AgentName
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database, Ownership
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.turns import TurnStore
from mindbridge.matrix.devices import DeviceFolder
from mindbridge.matrix.errors import Limited, MatrixError, Refused, Unreachable
from mindbridge.matrix.session import Session

log = logging.getLogger(__name__)

DRAIN_SECONDS = 8.0
_WATCH_SECONDS = 1.0


class _Agent:
    """One agent's parts: its account's session, what comes in, its turns, what goes out."""

    def __init__(
        self,
        name: AgentName,
        config: AgentConfig,
        backend: Backend,
        roster: Roster,
        database: Database,
        wake: Callable[[], None],
    ) -> None:
        devices = DeviceFolder(roster.config.journal)
        self.name = name
        self.user_id = config.account.user_id
        self._display_name = config.display_name
        self._session = Session(roster.config.homeserver, name, config.account, devices)
        self.deliverer = Deliverer(self._session, Outbox(database), now_ms)
        self.intake = Intake(self._session, AdmissionStore(database), roster, config.rooms, now_ms, wake)
        turns = TurnStore(database)
        self.turns = TurnRunner(config, backend, self._session, turns, roster, now_ms, self.deliverer.bell.ring)

    async def run(self, stop: asyncio.Event) -> None:
        """Runs until `stop`, then drains.

        Raises:
            MatrixError: the account can't be used.
        """
        try:
            if not await _unless_stopped(stop, self._open()):
                return
            async with asyncio.TaskGroup() as tasks:
                intake = tasks.create_task(self.intake.run())
                delivering = tasks.create_task(self._deliver())
                running = tasks.create_task(self.turns.run())
                await stop.wait()
                intake.cancel()
                self.turns.stop()
                await running
                self.deliverer.stop()
                if not self.intake.ready.is_set():
                    delivering.cancel()
        finally:
            await self._session.close()

    async def _open(self) -> None:
        delays = growing_delays()
        while True:
            try:
                await self._session.open()
                await self._show_display_name()
            except (Unreachable, Limited) as error:
                delay = next(delays)
                log.warning("homeserver_unreachable agent=%s retry_in=%.1fs error=%s", self.name, delay, error)
                await asyncio.sleep(delay)
            else:
                return

    async def _show_display_name(self) -> None:
        if self._display_name is None:
            return
        try:
            await self._session.set_display_name(self._display_name)
        except Refused as error:
            log.warning("display_name_refused agent=%s error=%s", self.name, error)

    async def _deliver(self) -> None:
        await self.intake.ready.wait()
        await self.deliverer.run()


async def _unless_stopped(stop: asyncio.Event, work: Coroutine[None, None, None]) -> bool:
    """Whether `work` was done before `stop`; if not, it is cancelled."""
    working = asyncio.create_task(work)
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
            return True
        return False
    finally:
        working.cancel()
        stopping.cancel()


async def run_bridge(config: Config, *, on_ready: Callable[[], None] = lambda: None) -> int:
    """Runs the bridge until SIGTERM or SIGINT.

    Args:
        config: the configuration.
        on_ready: called once every agent has had its first sync.

    Returns:
        0 after a clean stop, 1 when no agent is left that could run.

    Raises:
        JournalError: the journal can't be used, or another bridge runs on it.
        BackendUnusable: an agent's program can't be used.
    """
    roster = Roster(config)
    backends = {name: make_backend(agent, config.folder) for name, agent in config.agents.items()}
    ownership = Ownership(config.journal)
    try:
        database = await Database.open(config.journal)
        try:
            return await _run_agents(roster, backends, database, on_ready)
        finally:
            await database.close()
    finally:
        ownership.release()


async def _run_agents(
    roster: Roster, backends: dict[str, Backend], database: Database, on_ready: Callable[[], None]
) -> int:
    agents: list[_Agent] = []
    bells: list[Bell] = []

    def wake() -> None:
        for bell in bells:
            bell.ring()

    for name, config in roster.config.agents.items():
        agent = _Agent(AgentName(name), config, backends[name], roster, database, wake)
        agents.append(agent)
        bells += [agent.deliverer.bell, agent.turns.bell]

    stop = asyncio.Event()
    with _stopped_by_signals(stop):
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(_supervise(agent, stop)) for agent in agents]
            helpers = [tasks.create_task(_watch(database, wake)), tasks.create_task(_tell_ready(agents, on_ready))]
            deadline = tasks.create_task(_enforce_deadline(stop, running))
            results = await asyncio.gather(*running)
            for helper in (*helpers, deadline):
                helper.cancel()
    log.info("stopped")
    return 0 if stop.is_set() or any(results) else 1


async def _supervise(agent: _Agent, stop: asyncio.Event) -> bool:
    """Runs one agent; False when its account can't be used. The other agents go on."""
    usable = True
    try:
        await agent.run(stop)
    except* MatrixError as errors:
        usable = False
        for error in errors.exceptions:
            log.error("agent_stopped agent=%s error=%s", agent.name, error)  # noqa: TRY400 - the error says all
    except* asyncio.CancelledError:
        log.warning("drain_unfinished agent=%s; what is not done yet goes on at the next start", agent.name)
    return usable


async def _enforce_deadline(stop: asyncio.Event, running: list[asyncio.Task[bool]]) -> None:
    await stop.wait()
    await asyncio.sleep(DRAIN_SECONDS)
    for task in running:
        task.cancel()


async def _watch(database: Database, wake: Callable[[], None]) -> None:
    """Notices what `mindbridge journal retry` writes from another process."""
    version = await database.changes_by_others()
    while True:
        await asyncio.sleep(_WATCH_SECONDS)
        if (newer := await database.changes_by_others()) != version:
            version = newer
            wake()


async def _tell_ready(agents: list[_Agent], on_ready: Callable[[], None]) -> None:
    for agent in agents:
        await agent.intake.ready.wait()
    log.info("ready agents=%d", len(agents))
    on_ready()


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
