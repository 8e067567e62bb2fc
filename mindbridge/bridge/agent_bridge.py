"""One agent's way through: its account's session, what comes in, its turns, what goes out."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator

from mindbridge.agents.backend import Backend
from mindbridge.bridge.delivery import Deliverer
from mindbridge.bridge.intake import Intake
from mindbridge.bridge.pace import growing_delays, now_ms, wait_after
from mindbridge.bridge.roster import Roster
from mindbridge.bridge.turns import TurnRunner
from mindbridge.config.schema import AgentConfig
from mindbridge.ids import AgentName
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.turns import TurnStore
from mindbridge.journal.unread import UnreadStore
from mindbridge.matrix.devices import DeviceFolder
from mindbridge.matrix.errors import Limited, MatrixError, Refused, TokenRejected, Unreachable
from mindbridge.matrix.key_store import KeyFolder
from mindbridge.matrix.session import Session
from mindbridge.matrix.signing_keys import SigningKeyFolder

log = logging.getLogger(__name__)


class AgentBridge:
    """One agent's parts: its account's session, what comes in, its turns, what goes out."""

    def __init__(
        self,
        name: AgentName,
        config: AgentConfig,
        backend: Backend,
        roster: Roster,
        database: Database,
        wake: Callable[[], None],
        *,
        reset_identity: bool,
    ) -> None:
        devices = DeviceFolder(roster.config.journal)
        self.name = name
        self.user_id = config.account.user_id
        self._display_name = config.display_name
        keys = KeyFolder(roster.config.journal)
        self._session = Session(roster.config.homeserver, name, config.account, devices, keys)
        self._identity = self._session.cross_signing(SigningKeyFolder(roster.config.journal))
        self._password = config.account.password
        self._reset_identity = reset_identity
        self.deliverer = Deliverer(self._session, Outbox(database), now_ms)
        self.intake = Intake(
            self._session,
            AdmissionStore(database),
            UnreadStore(database),
            roster,
            config.rooms,
            now_ms,
            wake,
            self.deliverer.lull,
            self.deliverer.note_join,
        )
        turns = TurnStore(database)
        self.turns = TurnRunner(config, backend, self._session, turns, roster, now_ms, self.deliverer.bell.ring)

    def wake(self) -> None:
        """Lets the agent's parts look for new work; turns first, since a send keeps the journal busy for longer."""
        self.turns.bell.ring()
        self.deliverer.bell.ring()

    async def run(self, stop: asyncio.Event) -> None:
        """Runs until `stop`, then drains.

        Raises:
            AccountUnusable: the account can't log in.
            TokenRejected: it was logged out; from its parts in an exception group, as anything else is.
        """
        try:
            if not await unless_stopped(stop, self._open()):
                return
            delays = growing_delays(first=1.0, most=3600.0)
            wait = await self._sign(delays)
            async with asyncio.TaskGroup() as tasks:
                signing = tasks.create_task(self._sign_later(wait, delays))
                intake = tasks.create_task(self.intake.run())
                delivering = tasks.create_task(self._deliver())
                running = tasks.create_task(self.turns.run())
                await stop.wait()
                signing.cancel()
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
                delay = wait_after(error, delays)
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

    async def _sign(self, delays: Iterator[float]) -> float | None:
        """Has the account's identity sign the device, so that other clients trust what it sends.

        Seconds after which to try again; None where there is nothing more to be done.
        """
        try:
            signing = await self._identity.ensure(self._password, reset=self._reset_identity)
        except TokenRejected:
            raise
        except MatrixError as error:
            delay = wait_after(error, delays)
            log.warning("not_signed agent=%s retry_in=%.1fs error=%s", self.name, delay, error)
            return delay
        if not signing.is_signed:
            log.warning("not_signed agent=%s outcome=%s; %s", self.name, signing.outcome, signing.what_to_do)
        return None

    async def _sign_later(self, wait: float | None, delays: Iterator[float]) -> None:
        while wait is not None:
            await asyncio.sleep(wait)
            wait = await self._sign(delays)

    async def _deliver(self) -> None:
        await self.intake.ready.wait()
        await self.deliverer.run()


async def unless_stopped(stop: asyncio.Event, work: Coroutine[None, None, None]) -> bool:
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
