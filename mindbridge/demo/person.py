"""The person at the terminal, as a small Matrix client of their own: plain HTTP, none of the bridge's code."""

import json
import secrets
from collections.abc import Iterable, Mapping
from typing import Self
from urllib.parse import quote

import aiohttp
from pydantic import BaseModel, ValidationError
from yarl import URL

from mindbridge.demo.homeserver import HomeserverError, Registered
from mindbridge.demo.timeline import Seen, read_event
from mindbridge.ids import EventId, RoomId, UserId

LONG_POLL_SECONDS = 30

_TIMEOUT = aiohttp.ClientTimeout(total=2 * LONG_POLL_SECONDS)
_TIMELINE_LIMIT = 1000


class NotAcceptedError(HomeserverError):
    """The homeserver is there and said no."""


class _Refusal(BaseModel):
    error: str


class _Room(BaseModel):
    room_id: RoomId


class _Sent(BaseModel):
    event_id: EventId


class _Timeline(BaseModel):
    events: tuple[dict[str, object], ...] = ()


class _JoinedRoom(BaseModel):
    timeline: _Timeline = _Timeline()


class _Rooms(BaseModel):
    join: dict[RoomId, _JoinedRoom] = {}


class _Sync(BaseModel):
    next_batch: str
    rooms: _Rooms = _Rooms()


class Person:
    """A logged-in account that talks in rooms; a context that ends with its connections closed.

    Every method raises HomeserverError where the homeserver is out of reach, NotAcceptedError where it refuses.
    """

    def __init__(self, url: str, account: Registered) -> None:
        self.user_id = UserId(account.user_id)
        self._url = URL(url)
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {account.access_token}"}, timeout=_TIMEOUT
        )
        self._since: str | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def create_room(self, name: str, invited: Iterable[UserId]) -> RoomId:
        """Make a private room and invite users to it."""
        request = {"name": name, "preset": "private_chat", "invite": list(invited)}
        answer = await self._ask("POST", ("createRoom",), request)
        return _Room.model_validate_json(answer).room_id

    async def say(
        self, room_id: RoomId, text: str, *, thread: EventId | None = None, mentioned: Iterable[UserId] = ()
    ) -> EventId:
        """Send a message, into the thread with the root `thread` where that is given."""
        users = list(mentioned)
        content: dict[str, object] = {
            "msgtype": "m.text",
            "body": text,
            "m.mentions": {"user_ids": users} if users else {},
        }
        if thread is not None:
            content["m.relates_to"] = {
                "rel_type": "m.thread",
                "event_id": thread,
                "is_falling_back": True,
                "m.in_reply_to": {"event_id": thread},
            }
        return await self._send(room_id, "m.room.message", content)

    async def react(self, room_id: RoomId, target: EventId, key: str) -> EventId:
        """Click a button, or react with anything else."""
        relation = {"rel_type": "m.annotation", "event_id": target, "key": key}
        return await self._send(room_id, "m.reaction", {"m.relates_to": relation})

    async def sync(self, room_id: RoomId, *, wait_seconds: float) -> list[Seen]:
        """What is new in the room since the last call, in the server's order; waits so long for anything to come."""
        room_filter = {"rooms": [room_id], "timeline": {"limit": _TIMELINE_LIMIT}}
        query = {
            "timeout": str(int(wait_seconds * 1000)),
            "filter": json.dumps({"room": room_filter}),
            **({"since": self._since} if self._since else {}),
        }
        answer = _Sync.model_validate_json(await self._ask("GET", ("sync",), query=query))
        self._since = answer.next_batch
        room = answer.rooms.join.get(room_id, _JoinedRoom())
        return [seen for event in room.timeline.events if (seen := read_event(event)) is not None]

    async def _send(self, room_id: RoomId, event_type: str, content: Mapping[str, object]) -> EventId:
        path = ("rooms", room_id, "send", event_type, secrets.token_hex(8))
        return _Sent.model_validate_json(await self._ask("PUT", path, content)).event_id

    async def _ask(
        self,
        method: str,
        path: tuple[str, ...],
        request: Mapping[str, object] | None = None,
        *,
        query: Mapping[str, str] | None = None,
    ) -> str:
        url = self._url.join(
            URL("/".join(("/_matrix/client/v3", *(quote(part, safe="") for part in path))), encoded=True)
        )
        try:
            async with self._session.request(method, url, json=request, params=query) as response:
                text = await response.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise HomeserverError(f"The homeserver at {self._url} can't be reached: {error}") from error
        if not response.ok:
            raise NotAcceptedError(f"The homeserver said no ({response.status}): {_reason(text)}")
        return text


def _reason(answer: str) -> str:
    try:
        return _Refusal.model_validate_json(answer).error
    except ValidationError:
        return answer
