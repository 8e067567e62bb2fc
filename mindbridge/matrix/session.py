"""One account's connection to its homeserver."""

import asyncio
import logging
import math
from collections.abc import Awaitable
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import aiohttp
import nio
from nio.client.async_client import AsyncClientConfig

from mindbridge.config.schema import Account
from mindbridge.events import JoinedRoom, RoomEvent, SyncBatch, Unreadable
from mindbridge.ids import AgentName, DeliveryId, EventId, RoomId, UserId
from mindbridge.matrix.client import Client, ErrorAnswer
from mindbridge.matrix.cross_signing import CrossSigning
from mindbridge.matrix.devices import Device, DeviceFolder
from mindbridge.matrix.encryption import EncryptedClient
from mindbridge.matrix.errors import AccountUnusable, Limited, MatrixError, Refused, TokenRejected, Unreachable
from mindbridge.matrix.inbound import read_event, read_invite
from mindbridge.matrix.key_store import KeyFolder, KeysLost, sqlite_error
from mindbridge.matrix.past import Past
from mindbridge.matrix.signing_keys import SigningKeyFolder
from mindbridge.matrix.standing import Standing

log = logging.getLogger(__name__)

DEVICE_NAME = "mindbridge"
REQUEST_SECONDS = 30.0
SYNC_WAIT_MS = 30_000
SYNC_SECONDS = 60.0
FIRST_SYNC_SECONDS = 600.0
TYPING_MS = 30_000
NOT_IN_ROOM = "NOT_IN_ROOM"  # no server's errcode: the account isn't in the room, so that nothing was asked
_RETRY_MS = 5_000
LONGEST_HOLD_MS = 600_000
"""No 429 is taken to ask for more."""

_TIMELINE_LIMIT = 100
_NOT_FOR_GOOD = frozenset({HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY})
_BAD_CREDENTIAL = frozenset({"M_FORBIDDEN", "M_USER_DEACTIVATED", "M_INVALID_USERNAME"})
_FILTER = {
    "presence": {"not_types": ["*"]},
    "account_data": {"not_types": ["*"]},
    "room": {
        "timeline": {"limit": _TIMELINE_LIMIT},
        "ephemeral": {"not_types": ["*"]},
        "account_data": {"not_types": ["*"]},
    },
}


class Session:
    """One account on its homeserver; all methods raise `MatrixError` and its kinds."""

    def __init__(
        self, homeserver: str, agent: AgentName, account: Account, devices: DeviceFolder, keys: KeyFolder | None = None
    ) -> None:
        """A session that is still to be opened; without `keys` it neither encrypts nor reads what is encrypted."""
        self.agent = agent
        self.user_id = UserId(account.user_id)
        self._account = account
        self._devices = devices
        config = AsyncClientConfig(
            max_limit_exceeded=0,
            max_timeouts=0,
            request_timeout=REQUEST_SECONDS,
            store_sync_tokens=False,
            encryption_enabled=keys is not None,
        )
        self._encrypted = None if keys is None else EncryptedClient(homeserver, account.user_id, keys, config)
        self._client = self._encrypted or Client(homeserver, account.user_id, config=config)
        self._has_state = False
        self._unsaved: Device | None = None
        self.past = Past(self._client, self.user_id, self._ask, self._read, self._clear)
        self.standing = Standing(self._client, self.user_id, self._ask)

    async def open(self) -> None:
        """Logs in: with the device kept in the data home, else by token, else by password as a new device.

        Raises:
            AccountUnusable: not before the configuration, or the file of the account's device, is another.
            Unreachable: whatever else the server answers.
            Limited: the account logs in too often.
        """
        try:
            await self._log_in_with_keys()
        except TokenRejected as error:
            raise AccountUnusable(f"{error}; configure a new access token of this account, or its password") from error
        except Refused as error:
            # No homeserver says so of a login as such: something else stands in its place, or it isn't set up yet.
            raise Unreachable(str(error)) from error

    async def _log_in_with_keys(self) -> None:
        try:
            await self._open()
            await self._check_keys()
        except KeysLost as error:
            if self._account.password is None:
                advice = "configure the token of a new device, or the account's password to have one made"
                raise AccountUnusable(f"{error}; {advice}") from error
            log.error("keys_lost agent=%s error=%s; logging in as a new device", self.agent, error)  # noqa: TRY400 - the error says all
            await self._take_new_device(None)
            await self._check_keys()

    async def _check_keys(self) -> None:
        if self._encrypted is not None:
            await self._ask("device keys", self._encrypted.check_device())
            await self.keep_keys()

    async def keep_keys(self) -> None:
        """Does for other devices' keys, and for its own, what the last sync response asked for.

        To be called once the response is admitted, so that no key is used up that the journal knows nothing of.

        Raises:
            KeysLost: the server has other keys for this device; `open` makes a new one.
        """
        if self._encrypted is not None:
            await self._ask("keys", self._encrypted.keep_keys())

    def cross_signing(self, folder: SigningKeyFolder) -> CrossSigning:
        """The account's identity, which signs the device; `folder` holds the identity's keys."""
        return CrossSigning(self._client, self.user_id, folder, self._ask)

    async def _open(self) -> None:
        if self._account.access_token is not None:
            await self._use_token(self._account.access_token.get_secret_value(), self._account.device_id)
            return
        device = self._devices.load(self.agent, self.user_id)
        if device is not None:
            try:
                await self._use_token(device.access_token, device.device_id)
            except TokenRejected:
                log.warning("token_rejected agent=%s device_id=%s; logging in again", self.agent, device.device_id)
            else:
                return
        await self._take_new_device(None if device is None else device.device_id)

    async def _take_new_device(self, device_id: str | None) -> None:
        """Logs in by password, as a device that was there before or as a new one."""
        # Kept until it is written: with a full disk, say, each try would else leave one more device at the server.
        if self._unsaved is None:
            self._unsaved = await self._log_in(device_id)
        device = self._unsaved
        self._devices.save(self.agent, device)
        self._unsaved = None
        self._client.restore_login(device.user_id, device.device_id, device.access_token)

    async def _use_token(self, token: str, device_id: str | None) -> None:
        self._client.access_token = token
        answer = await self._ask("whoami", self._client.whoami())
        if answer.user_id != self.user_id:
            raise TokenRejected(f"{self.user_id}: the access token belongs to {answer.user_id:.200}")
        if device_id is not None and answer.device_id not in {None, device_id}:
            raise TokenRejected(
                f"{self.user_id}: the access token belongs to device {answer.device_id:.200}, not {device_id}"
            )
        device = answer.device_id or device_id
        if not device:
            raise TokenRejected(f"{self.user_id}: the access token belongs to no device, which encryption needs")
        self._client.restore_login(self.user_id, device, token)

    async def _log_in(self, device_id: str | None) -> Device:
        password = self._account.password
        if password is None:
            raise TokenRejected(f"{self.user_id}: has no password to log in with")
        self._client.access_token = ""
        self._client.device_id = device_id
        try:
            answer = await self._ask("login", self._client.login(password.get_secret_value(), device_name=DEVICE_NAME))
        except Refused as error:
            if error.errcode in _BAD_CREDENTIAL:
                raise AccountUnusable(f"{error}; check the account's password") from error
            raise
        if answer.user_id != self.user_id:
            raise AccountUnusable(
                f"{self.user_id}: the server calls it {answer.user_id:.200}; configure it with that name"
            )
        log.info("logged_in agent=%s user_id=%s device_id=%.200s", self.agent, self.user_id, answer.device_id)
        return Device(user_id=UserId(answer.user_id), device_id=answer.device_id, access_token=answer.access_token)

    async def sync(self, since: str | None, *, wait: bool) -> SyncBatch:
        """The next sync response after `since`; with `wait` the server holds it back until something happens."""
        # nio passes over a response whose position it has had already: also where it broke off in the middle of it, and
        # also a first one, with the state of all rooms, where nothing is new since the bridge ended.
        self._client.next_batch = ""
        answer = await self._ask(
            "sync",
            self._client.sync(
                timeout=SYNC_WAIT_MS if wait and self._has_state else 0,
                sync_filter=_FILTER,
                since=since,
                full_state=not self._has_state,
            ),
            SYNC_SECONDS if self._has_state else FIRST_SYNC_SECONDS,
        )
        self._has_state = True
        return SyncBatch(
            next_batch=answer.next_batch,
            first=since is None,
            joined=tuple(self._joined_room(RoomId(room_id), room) for room_id, room in answer.rooms.join.items()),
            invites=tuple(
                invite
                for room_id, room in answer.rooms.invite.items()
                if (invite := read_invite(RoomId(room_id), (event.source for event in room.invite_state), self.user_id))
                is not None
            ),
            left=tuple(RoomId(room_id) for room_id in answer.rooms.leave),
            keys_came=bool(EncryptedClient.new_keys(answer)),
            parting=tuple(self._joined_room(RoomId(room_id), room) for room_id, room in answer.rooms.leave.items()),
        )

    def _joined_room(self, room_id: RoomId, room: Any) -> JoinedRoom:
        read = (self._read(room_id, event.source) for event in room.timeline.events)
        events = tuple(event for event in read if event is not None)
        before = room.timeline.prev_batch
        return replace(self.joined_room(room_id, events), limited=bool(room.timeline.limited), before=before)

    def _read(self, room_id: RoomId, source: object) -> RoomEvent | None:
        event = self._clear(room_id, source) if isinstance(source, dict) else source
        return read_event(event, self.user_id, lambda user: self.name_of(room_id, user))

    def _clear(self, room_id: RoomId, source: dict[str, Any]) -> dict[str, Any]:
        """An event's JSON in the clear, as far as it can be read."""
        if self._encrypted is None or source.get("type") != "m.room.encrypted":
            return source
        return self._encrypted.read_encrypted(room_id, source) or source

    def read_again(self, room_id: RoomId, source: dict[str, Any]) -> RoomEvent | None:
        """Reads an event that was unreadable; None where it still is."""
        event = self._read(room_id, source)
        return None if isinstance(event, Unreadable) else event

    def name_of(self, room_id: RoomId, user: UserId) -> str:
        """The display name of someone in a room, else the user id."""
        known = self._client.rooms.get(room_id)
        return (known.user_name(user) if known else None) or user

    def joined_room(self, room_id: RoomId, events: tuple[RoomEvent, ...]) -> JoinedRoom:
        """A room as it is now, with these events as its timeline."""
        known = self._client.rooms.get(room_id)
        members = [] if known is None else [user for user in known.users if user not in known.invited_users]
        return JoinedRoom(room_id, frozenset(UserId(user) for user in members), limited=False, events=events)

    async def send(self, room_id: RoomId, event_type: str, content: dict[str, Any], transaction: DeliveryId) -> EventId:
        """Sends an event; the same transaction id again gives the same event."""
        sending = self._client.room_send(
            room_id, event_type, content, tx_id=transaction, ignore_unverified_devices=True
        )
        return EventId((await self._ask("send", sending)).event_id)

    async def redact(self, room_id: RoomId, event_id: EventId, transaction: DeliveryId) -> EventId:
        """Withdraws an event; gives the redaction's own id."""
        return EventId(
            (await self._ask("redact", self._client.room_redact(room_id, event_id, tx_id=transaction))).event_id
        )

    async def join(self, room: str) -> RoomId:
        """Joins a room by id or alias."""
        return RoomId((await self._ask(f"join {room}", self._client.join(room))).room_id)

    async def leave(self, room_id: RoomId) -> None:
        """Leaves a room, or declines an invitation to it."""
        await self._ask("leave", self._client.room_leave(room_id))

    async def show_typing(self, room_id: RoomId, *, typing: bool) -> None:
        """Shows or ends the typing notice; a shown one ends by itself after `TYPING_MS`."""
        await self._ask("typing", self._client.room_typing(room_id, typing, timeout=TYPING_MS))

    async def set_display_name(self, name: str) -> None:
        """Sets the account's display name where it is another."""
        answer = await self._ask("displayname", self._client.get_displayname())
        if answer.displayname != name:
            await self._ask("displayname", self._client.set_displayname(name))

    async def close(self) -> None:
        """Closes the connection; the device stays logged in."""
        await self._client.close()  # type: ignore[no-untyped-call]

    async def _ask(self, what: str, request: Awaitable[Any], seconds: float | None = None) -> Any:
        """What nio gives for its request, within `REQUEST_SECONDS` where no seconds are given."""
        try:
            async with asyncio.timeout(REQUEST_SECONDS if seconds is None else seconds):
                answer = await request
        except ErrorAnswer as error:
            raise self._translated(what, error) from error
        except MatrixError:
            raise
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"{self.user_id}: {what}: {str(error) or type(error).__name__:.200}") from error
        except nio.LocalProtocolError as error:
            raise Refused(f"{self.user_id}: {what}: {error}", NOT_IN_ROOM) from error
        except Exception as error:
            if sqlite_error(error) is not None:
                raise Unreachable(f"{self.user_id}: {what}: keys can't be kept: {error}; is the disk full?") from error
            # What nio stumbles over in an answer that isn't what it should be can be of any kind.
            raise Unreachable(f"{self.user_id}: {what}: an answer that can't be read: {error!r:.200}") from error
        if isinstance(answer, nio.ErrorResponse):
            raise Unreachable(f"{self.user_id}: {what}: an answer that isn't what it should be: {answer.message:.200}")
        return answer

    def _translated(self, what: str, error: ErrorAnswer) -> MatrixError:
        message = f"{self.user_id}: {what}: {error.errcode or error.status} {error.words}"
        if error.status == HTTPStatus.TOO_MANY_REQUESTS or error.errcode == "M_LIMIT_EXCEEDED":
            asked_ms = min(max(error.asked_ms or _RETRY_MS, 1), LONGEST_HOLD_MS)
            return Limited(message, math.ceil(asked_ms))
        if error.errcode in {"M_UNKNOWN_TOKEN", "M_MISSING_TOKEN"}:
            return TokenRejected(message)
        # A proxy before the homeserver that finds none says 404 or so, in words of its own, but means it of a size.
        if error.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return Refused(message, error.errcode or f"HTTP {error.status}")
        # One that asks the wrong server, or one that only starts, gets a Matrix error: there is no such request.
        is_elsewhere = error.status == HTTPStatus.NOT_FOUND and error.errcode == "M_UNRECOGNIZED"
        is_for_good = error.status < HTTPStatus.INTERNAL_SERVER_ERROR and error.status not in _NOT_FOR_GOOD
        if error.errcode is None or is_elsewhere or not is_for_good:
            return Unreachable(message)
        return Refused(message, error.errcode)
