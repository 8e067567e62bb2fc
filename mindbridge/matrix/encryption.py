"""nio's client, for rooms that are encrypted or may become so."""

import asyncio
from http import HTTPStatus
from typing import Any
from uuid import UUID, uuid4

import nio
from nio.api import Api
from nio.client.async_client import AsyncClientConfig
from nio.events import Event, MegolmEvent, RoomKeyEvent
from nio.responses import KeysQueryResponse
from nio.rooms import MatrixRoom

from mindbridge.ids import RoomId, UserId
from mindbridge.matrix.client import Client, ErrorAnswer
from mindbridge.matrix.errors import Unreachable
from mindbridge.matrix.key_store import KeyFolder, KeysLost, KeyStore
from mindbridge.matrix.machine import Machine
from mindbridge.matrix.sharing import Sharing, good

# As all clients send them: a server can then count them.
_NEVER_ENCRYPTED = frozenset({"m.reaction"})


class EncryptedClient(Client):
    """A client that logs in with keys kept in a folder; `ErrorAnswer` where a server gives an error.

    Once the session's position is kept, `keep_keys` has to follow each `sync`.
    """

    store: KeyStore | None
    olm: Machine | None

    def __init__(self, homeserver: str, user_id: str, keys: KeyFolder, config: AsyncClientConfig) -> None:
        super().__init__(homeserver, user_id, config=config)
        self._keys = keys
        self._one_share = asyncio.Lock()
        self._sharing: Sharing | None = None
        self._is_checked = False

    # The device's own keys

    def load_store(self) -> None:
        """Opens the keys of the account and device that were logged in.

        Raises:
            KeysLost: they are damaged.
            Unreachable: they can't be used now.
        """
        if self.store is not None and (self.store.user_id, self.store.device_id) == (self.user_id, self.device_id):
            return
        self._close_store()
        if not self.device_id:
            raise Unreachable(f"{self.user_id}: the server does not say which device this is")
        store = self._keys.open(UserId(self.user_id), self.device_id)
        try:
            self.olm = Machine(self.user_id, self.device_id, store)
        except ValueError as error:  # what vodozemac raises for keys that it can't read
            store.close()
            raise KeysLost(f"{store.database_path}: is damaged: {error}") from error
        self.store = store
        self._sharing = Sharing(self, self.olm)
        self.encrypted_rooms = store.load_encrypted_rooms()

    def _close_store(self) -> None:
        if self.store is not None:
            self.store.close()
        self.store = self.olm = self._sharing = None
        self._is_checked = False

    async def close(self) -> None:
        """Closes the connections to the server and to the keys."""
        await super().close()  # type: ignore[no-untyped-call]
        self._close_store()

    async def check_device(self) -> None:
        """To be called after the login: whether the server knows this device by the keys that are here.

        Raises:
            KeysLost: it knows it by others, so that nobody can speak to it any more.
        """
        machine = self._machine
        method, path, data = Api.keys_query(self.access_token, {self.user_id})
        answer = good("keys of this account", await self._send(KeysQueryResponse, method, path, data))
        known = answer.device_keys.get(self.user_id, {}).get(self.device_id)
        here = {f"{name}:{self.device_id}": key for name, key in machine.account.identity_keys.items()}
        if known is None:
            # The device is new, or was logged out in between and is known by its name only.
            machine.account.shared = False
        elif known["keys"] != here:
            raise KeysLost(f"{self.user_id}: the keys of device {self.device_id} are lost: {self._key_path}")
        self._is_checked = True

    async def keep_keys(self) -> None:
        """Does what a sync response asked for: new one-time keys, new sessions with devices, requests for room keys.

        What fails is done with the next call.

        Raises:
            KeysLost: as `check_device`, or the server has other one-time keys in the place of the device's.
        """
        if not self._is_checked:
            # An upload would put the new keys in the place of those that are known, also where it is then refused.
            await self.check_device()
        await self._shares.send_queued()
        if self.should_upload_keys:
            try:
                good("keys upload", await self.keys_upload())
            except ErrorAnswer as error:
                if error.status == HTTPStatus.BAD_REQUEST:
                    lost = f"{self.user_id}: the server refuses the keys of device {self.device_id}"
                    raise KeysLost(f"{lost}: {error.words}: {self._key_path}") from error
                raise
        await self._shares.mend()

    @property
    def _machine(self) -> Machine:
        if self.olm is None:
            raise nio.LocalProtocolError("not logged in")
        return self.olm

    @property
    def _shares(self) -> Sharing:
        if self._sharing is None:
            raise nio.LocalProtocolError("not logged in")
        return self._sharing

    @property
    def _key_path(self) -> str:
        return str(self._keys.path(UserId(self.user_id), self.device_id or ""))

    async def _handle_sync(self, response: nio.SyncResponse) -> None:
        await super()._handle_sync(response)
        if self.olm is not None:
            # nio takes no notice of a count of none, nor of a response that brings nothing else. What is not listed
            # is none left, see `device_one_time_keys_count` in the Matrix specification.
            self.olm.uploaded_key_count = response.device_key_count.signed_curve25519 or 0
            # nio goes on believing what it knew of people who were in no encrypted room for a while.
            self.olm.tracked_users -= {*response.device_list.changed, *response.device_list.left}

    # Reading

    @staticmethod
    def new_keys(response: nio.SyncResponse) -> frozenset[tuple[RoomId, str]]:
        """The rooms and session ids of the keys that came with a sync response: what they encrypt can be read now."""
        keys = (event for event in response.to_device_events if isinstance(event, RoomKeyEvent))
        return frozenset((RoomId(key.room_id), key.session_id) for key in keys)

    def decrypt_event(self, event: MegolmEvent) -> Event:
        """nio's, which it uses for an event that was asked for by itself."""
        decrypted = self._machine._decrypt_megolm_no_error(event)  # noqa: SLF001 - nio's one place for it
        if decrypted is None:
            raise nio.EncryptionError(f"{event.event_id}: can't be read yet")
        return decrypted

    def read_encrypted(self, room_id: RoomId, source: dict[str, Any]) -> dict[str, Any] | None:
        """The JSON of an encrypted event in the clear; None while its key isn't there, or where it isn't encrypted."""
        event = Event.parse_event(source)
        if not isinstance(event, MegolmEvent):
            return None
        decrypted = self._machine._decrypt_megolm_no_error(event, room_id)  # noqa: SLF001 - nio's one place for it
        return None if decrypted is None else decrypted.source

    # Sending

    async def is_encrypted(self, room_id: str) -> bool:
        """Whether a room is encrypted: asks the server each time until it is, and then never again.

        A room that was once encrypted counts as such for ever, whatever the server says later.
        """
        room = self._room(room_id)
        if not room.encrypted:
            try:
                good("state", await self.room_get_state_event(room_id, "m.room.encryption"))
            except ErrorAnswer as error:
                if error.status == HTTPStatus.NOT_FOUND and error.errcode == "M_NOT_FOUND":
                    return room.encrypted  # it may have come with a sync response meanwhile
                raise
            room.encrypted = True
            self.encrypted_rooms.add(room_id)
            if self.store is not None:
                self.store.save_encrypted_rooms({room_id})
        return True

    async def room_send(
        self,
        room_id: str,
        message_type: str,
        content: dict[Any, Any],
        tx_id: str | None = None,
        ignore_unverified_devices: bool = True,  # noqa: ARG002, FBT001, FBT002 - nio's; there is no verification
    ) -> nio.RoomSendResponse | nio.RoomSendError:
        """Sends an event, encrypted where the room is, to all devices of all members; reactions never are."""
        uuid: str | UUID = tx_id or uuid4()
        self._room(room_id)
        if message_type not in _NEVER_ENCRYPTED and await self.is_encrypted(room_id):
            # A session that is being shared must not be used, or made anew, by another send.
            async with self._one_share:
                await self._shares.share(self._room(room_id))
                message_type, content = self.encrypt(room_id, message_type, content)
        method, path, data = Api.room_send(self.access_token, room_id, message_type, content, uuid)
        answer: nio.RoomSendResponse | nio.RoomSendError = await self._send(
            nio.RoomSendResponse, method, path, data, (room_id,)
        )
        return answer

    def _room(self, room_id: str) -> MatrixRoom:
        try:
            return self.rooms[room_id]
        except KeyError:
            raise nio.LocalProtocolError(f"No such room with id {room_id} found.") from None
