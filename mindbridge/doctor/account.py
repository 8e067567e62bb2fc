"""Whether an agent's account can log in, and with which device."""

import asyncio
from pathlib import Path

from mindbridge.config.schema import AgentConfig
from mindbridge.doctor.encryption import encryption_check
from mindbridge.doctor.findings import Finding, Status, told
from mindbridge.doctor.rooms import room_checks
from mindbridge.ids import AgentName, UserId
from mindbridge.matrix.devices import Device, DeviceFolder
from mindbridge.matrix.errors import AccountUnusable, Limited, MatrixError
from mindbridge.matrix.session import Session

LOGIN_SECONDS = 8.0
_AGAIN = "look into the homeserver's log, and try again"
_SEE_TO_JOURNAL = "see to the journal's folder first: a new login could not be kept there"


class Account:
    """An agent's account, looked at beside a bridge that may run with it.

    Args:
        homeserver: its homeserver's address.
        agent: whose account it is.
        config: the agent's configuration.
        home: the data home, where its device is kept.
    """

    def __init__(self, homeserver: str, agent: AgentName, config: AgentConfig, home: Path) -> None:
        self._homeserver = homeserver
        self._agent = agent
        self._config = config
        self._home = home
        self._devices = DeviceFolder(home)
        self._has_token = config.account.access_token is not None

    async def checks(self, *, may_log_in: bool) -> tuple[Finding, ...]:
        """Logs in as `mindbridge run` does, and looks at the account; it stays logged in.

        Args:
            may_log_in: whether a device that is made by a login can be kept as well.
        """
        try:
            kept = self._kept()
            if kept is None and not self._has_token:
                if not may_log_in:
                    return (self._failed("it has no device yet, and logging in was not tried", _SEE_TO_JOURNAL),)
                self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except AccountUnusable as error:
            return (told("login", self._agent, error),)
        except OSError as error:
            return (self._failed(f"{self._home} can't be made: {error.strerror}", _SEE_TO_JOURNAL),)
        account = self._config.account
        if not may_log_in:
            account = account.model_copy(update={"password": None})  # each login would leave a device at the server
        session = Session(self._homeserver, self._agent, account, self._devices)
        try:
            fault = await self._opened(session, may_log_in=may_log_in)
            if fault is not None:
                return (fault,)
            how = "with the configured access token" if self._has_token else "with a device of its own"
            login = Finding("login", self._agent, Status.OK, f"{session.user_id} is logged in {how}")
            device = self._device_check(session.standing.device_id, kept)
            encryption = await encryption_check(self._agent, session, self._home)
            return login, device, encryption, *await room_checks(self._agent, self._config, session)
        finally:
            await session.close()

    async def _opened(self, session: Session, *, may_log_in: bool) -> Finding | None:
        """Logs in; what kept it from that."""
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                await session.open()
        except AccountUnusable as error:
            if may_log_in or self._has_token:
                return told("login", self._agent, error)
            return self._failed("its device is logged out, and logging in again was not tried", _SEE_TO_JOURNAL)
        except Limited as error:
            return Finding("login", self._agent, Status.WARN, str(error), "wait some minutes, and try again")
        except MatrixError as error:
            return self._failed(str(error), _AGAIN)
        except TimeoutError:
            return self._failed(f"no answer within {LOGIN_SECONDS:g} s", _AGAIN)
        return None

    def _kept(self) -> Device | None:
        """The device that the data home holds; none counts where an access token is configured."""
        return None if self._has_token else self._devices.load(self._agent, UserId(self._config.account.user_id))

    def _failed(self, found: str, advice: str) -> Finding:
        return Finding("login", self._agent, Status.FAIL, found, advice)

    def _device_check(self, device_id: str, before: Device | None) -> Finding:
        """Tells of the device that is logged in now; `before` is the one that was kept until now."""
        now = self._kept()
        if self._has_token:
            found = f"{device_id}, that of the access token"
        elif before is None:
            found = f"{device_id}, new: logged in by password just now"
        elif now is not None and now.access_token != before.access_token:
            found = f"{device_id}, logged in by password again: the homeserver had logged it out"
        else:
            found = f"{device_id}, kept in {self._home / 'devices'}"
        return Finding("device", self._agent, Status.OK, found)
