"""What an account is on its homeserver and in its rooms. Only looks; changes nothing."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from nio.api import Api
from nio.client.async_client import AsyncClient
from nio.responses import RoomGetStateEventResponse
from pydantic import BaseModel, ValidationError

from mindbridge.ids import RoomId, UserId
from mindbridge.matrix.errors import Refused, Unreachable

Ask = Callable[[str, Awaitable[Any]], Awaitable[Any]]

_NOT_FOUND = "M_NOT_FOUND"
_CREATORS_SINCE = 12  # the first room version whose creators may do all


@dataclass(frozen=True, slots=True)
class Power:
    """The account's power in a room, and what is needed there to send messages, buttons and redactions of its own."""

    own: float
    messages: int
    buttons: int
    redactions: int


class _PowerLevels(BaseModel):
    """The content of `m.room.power_levels`; older rooms may hold numbers as text."""

    users: dict[str, int] = {}
    users_default: int = 0
    events: dict[str, int] = {}
    events_default: int = 0


class _Creation(BaseModel):
    sender: str
    content: dict[str, Any] = {}


class Standing:
    """One account as the server knows it; all methods raise `MatrixError` and its kinds."""

    def __init__(self, client: AsyncClient, user_id: UserId, ask: Ask) -> None:
        self._client = client
        self._user_id = user_id
        self._ask = ask

    @property
    def device_id(self) -> str:
        """The device that the session is logged in with."""
        return str(self._client.device_id or "")

    async def display_name(self) -> str | None:
        """The account's display name, None where it has none."""
        try:
            answer = await self._ask("displayname", self._client.get_displayname(self._user_id))
        except Refused as error:
            if error.errcode == _NOT_FOUND:
                return None
            raise
        return None if answer.displayname is None else str(answer.displayname)

    async def joined_rooms(self) -> tuple[RoomId, ...]:
        """All rooms that it is in."""
        return tuple(RoomId(room) for room in (await self._ask("joined_rooms", self._client.joined_rooms())).rooms)

    async def resolve(self, room: str) -> RoomId | None:
        """The id of a room that is given by id or alias; None where no room has that alias."""
        if not room.startswith("#"):
            return RoomId(room)
        try:
            answer = await self._ask(f"resolve {room}", self._client.room_resolve_alias(room))
        except Refused as error:
            if error.errcode == _NOT_FOUND:
                return None
            raise
        return RoomId(answer.room_id)

    async def room_name(self, room_id: RoomId) -> str | None:
        """The name that a room has been given."""
        name = (await self._state(room_id, "m.room.name")).get("name")
        return name if isinstance(name, str) and name else None

    async def power(self, room_id: RoomId) -> Power:
        """The account's power in a room that it is in (client-server API, `m.room.power_levels`)."""
        content = await self._state(room_id, "m.room.power_levels")
        try:
            power = power_in(content, self._user_id)
        except ValidationError as error:
            raise Unreachable(f"{room_id}: its power levels can't be read") from error
        if power.own < max(power.messages, power.buttons, power.redactions) and await self._is_creator(room_id):
            return Power(math.inf, power.messages, power.buttons, power.redactions)
        return power

    async def _is_creator(self, room_id: RoomId) -> bool:
        """Whether the account may do all in the room, since it made it."""
        path = Api._build_path(["rooms", room_id, "state", "m.room.create", ""], {"format": "event"})  # noqa: SLF001 - nio asks for the content alone
        request = self._client._send(  # noqa: SLF001 - likewise
            RoomGetStateEventResponse, "GET", path, response_data=("m.room.create", "", room_id)
        )
        try:
            creation = _Creation.model_validate((await self._ask("state", request)).content)
        except ValidationError:
            return False
        version = str(creation.content.get("room_version", "1"))
        additional = creation.content.get("additional_creators")
        return (
            version.isdecimal()
            and int(version) >= _CREATORS_SINCE
            and self._user_id in {creation.sender, *(additional if isinstance(additional, list) else ())}
        )

    async def _state(self, room_id: RoomId, event_type: str) -> dict[str, Any]:
        """The content of a state event, empty where there is none."""
        try:
            answer = await self._ask("state", self._client.room_get_state_event(room_id, event_type))
        except Refused as error:
            if error.errcode == _NOT_FOUND:
                return {}
            raise
        return answer.content if isinstance(answer.content, dict) else {}


def power_in(content: dict[str, Any], user_id: UserId) -> Power:
    """Reads `m.room.power_levels` for one user; what it does not name has the specification's default.

    Raises:
        ValidationError: it has another shape.
    """
    levels = _PowerLevels.model_validate(content)

    def needed(event_type: str) -> int:
        return levels.events.get(event_type, levels.events_default)

    return Power(
        own=levels.users.get(user_id, levels.users_default),
        messages=needed("m.room.message"),
        buttons=needed("m.reaction"),
        redactions=needed("m.room.redaction"),
    )
