"""Room keys on their way out: to whom, and over which sessions between devices."""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, TypeVar
from uuid import uuid4

import nio
from nio.api import Api
from nio.client.async_client import AsyncClient
from nio.responses import KeysClaimResponse, KeysQueryResponse, ShareGroupSessionResponse
from nio.rooms import MatrixRoom

from mindbridge.matrix.client import ErrorAnswer
from mindbridge.matrix.errors import Unreachable
from mindbridge.matrix.machine import Machine

log = logging.getLogger(__name__)

AGAIN_SECONDS = 60.0
"""After so long is asked once more for what another server did not give: a person's devices, a device's key."""

_NEVER_TO_BE_SENT = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND})

Answer = TypeVar("Answer")
Part = tuple[set[tuple[str, str]], dict[str, Any]]


def good(what: str, answer: Answer) -> Answer:
    """The answer, unless nio could make nothing of it.

    Raises:
        Unreachable: it could not.
    """
    if isinstance(answer, nio.ErrorResponse):
        raise Unreachable(f"{what}: an answer that isn't what it should be: {answer.message:.200}")
    return answer


class Sharing:
    """What one device sends to other devices; `ErrorAnswer` where the server gives an error."""

    def __init__(self, client: AsyncClient, machine: Machine) -> None:
        self._client = client
        self._machine = machine
        self._not_before: dict[object, float] = {}

    async def share(self, room: MatrixRoom) -> None:
        """Has every device of every member know the key of the next message, as far as the device can be reached.

        nio's own does not: it takes a key that did not arrive for one that did, and waits for ever after an error.
        """
        machine = self._machine
        if not room.members_synced:
            good("members", await self._client.joined_members(room.room_id))
        machine.update_tracked_users(room)  # type: ignore[no-untyped-call]
        await self._ask_for_devices()
        await self._claim(machine.get_missing_sessions(list(room.users)))
        session = machine.outbound_group_sessions.get(room.room_id)
        if session is None or session.expired:
            machine.create_outbound_group_session(room.room_id)
            session = machine.outbound_group_sessions[room.room_id]
        if session.shared and not self._lacks_key(room, session.users_shared_with):
            return
        session.shared = False  # nio would make a new one, for everybody
        parts = machine.share_group_session_parallel(room.room_id, list(room.users), ignore_unverified_devices=True)
        while (part := self._next(parts)) is not None:
            shared_with, messages = part
            method, path, data = Api.to_device(self._client.access_token, "m.room.encrypted", messages, uuid4())
            request = self._client._send(  # noqa: SLF001 - as nio sends them
                ShareGroupSessionResponse, method, path, data, (room.room_id, shared_with)
            )
            good("room key", await request)
        session.shared = True

    async def send_queued(self) -> None:
        """Sends what waits for other devices; what the server will never take is dropped."""
        for message in tuple(self._machine.outgoing_to_device_messages):
            try:
                good("to device", await self._client.to_device(message))
            except ErrorAnswer as error:
                if error.status not in _NEVER_TO_BE_SENT:
                    raise
                log.warning("device_message_refused recipient=%.255r error=%s", message.recipient, error)
                self._machine.outgoing_to_device_messages.remove(message)

    async def mend(self) -> None:
        """Makes new sessions with devices whose messages could not be read."""
        await self._ask_for_devices()
        broken = self._machine.wedged_devices
        if broken:
            devices: dict[str, list[str]] = {}
            for device in broken:
                devices.setdefault(device.user_id, []).append(device.id)
            await self._claim(devices)
            await self.send_queued()

    def _lacks_key(self, room: MatrixRoom, shared_with: set[tuple[str, str]]) -> bool:
        """Whether a device that can be reached hasn't the room's key yet."""
        machine = self._machine
        return any(
            (user, device.id) not in shared_with
            and device.id != machine.device_id
            and machine.session_store.get(device.curve25519) is not None
            for user in room.users
            for device in machine.device_store.active_user_devices(user)
        )

    def _next(self, parts: Iterator[Part]) -> Part | None:
        # Each of its devices is a write of its own; waiting for the disk once is enough.
        with self._machine.store.database.atomic():
            return next(parts, None)

    async def _ask_for_devices(self) -> None:
        users = self._due(self._machine.users_for_key_query)
        if users:
            method, path, data = Api.keys_query(self._client.access_token, users)
            good("keys query", await self._client._send(KeysQueryResponse, method, path, data))  # noqa: SLF001 - nio asks for all
            self._put_off(users & self._machine.users_for_key_query)

    async def _claim(self, devices: Mapping[str, Iterable[str]]) -> None:
        wanted = self._due((user, device) for user, ids in devices.items() for device in ids)
        if wanted:
            claims: dict[str, list[str]] = {}
            for user, device in wanted:
                claims.setdefault(user, []).append(device)
            answer: KeysClaimResponse = good("keys claim", await self._client.keys_claim(claims))
            given = {(user, device) for user, keys in answer.one_time_keys.items() for device in keys}
            self._put_off(wanted - given)

    def _due(self, wanted: Iterable[Answer]) -> set[Answer]:
        now = asyncio.get_running_loop().time()
        return {each for each in wanted if self._not_before.get(each, now) <= now}

    def _put_off(self, missed: Iterable[object]) -> None:
        self._not_before.update(dict.fromkeys(missed, asyncio.get_running_loop().time() + AGAIN_SECONDS))
