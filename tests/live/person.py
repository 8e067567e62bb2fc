"""A person with a plain Matrix client: HTTP and nothing of the bridge's own code."""

import asyncio
import json
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar
from urllib.parse import quote

import aiohttp
from yarl import URL

Event = dict[str, Any]  # an event as the server tells it, in JSON
Found = TypeVar("Found")

_SYNC_FILTER = json.dumps({"room": {"timeline": {"limit": 1000}}, "presence": {"not_types": ["*"]}})
_LONG_POLL_MS = 30_000


class RefusedError(Exception):
    """The server answered with an error."""

    def __init__(self, status: int, answer: Event) -> None:
        super().__init__(f"{status} {answer}")
        self.status = status
        self.errcode: str | None = answer.get("errcode")


@dataclass(eq=False)
class Person:
    """A Matrix user and one device. `close` it, or use it as a context."""

    user_id: str
    access_token: str = field(repr=False)
    session: aiohttp.ClientSession = field(repr=False)
    _since: str | None = None
    _timelines: defaultdict[str, dict[str, Event]] = field(default_factory=lambda: defaultdict(dict), repr=False)
    _ephemeral: defaultdict[str, list[Event]] = field(default_factory=lambda: defaultdict(list), repr=False)
    _one_sync: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    @classmethod
    def with_token(cls, url: str, user_id: str, access_token: str) -> Self:
        return cls(user_id, access_token, aiohttp.ClientSession(url))

    @classmethod
    async def log_in(cls, url: str, user_id: str, password: str) -> Self:
        person = cls.with_token(url, user_id, "")
        login = {"type": "m.login.password", "identifier": {"type": "m.id.user", "user": user_id}, "password": password}
        answer = await person.call("POST", "login", json=login)
        person.access_token = answer["access_token"]
        return person

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self.session.close()

    async def call(self, method: str, *path: str, version: str = "v3", **request: Any) -> Event:
        """Any call of the client-server API; RefusedError for any but a good answer."""
        url = URL("/".join(("/_matrix/client", version, *(quote(part, safe="") for part in path))), encoded=True)
        headers = {"Authorization": f"Bearer {self.access_token}"} if self.access_token else {}
        async with self.session.request(method, url, headers=headers, **request) as response:
            answer: Event = await response.json()
            if not response.ok:
                raise RefusedError(response.status, answer)
            return answer

    # Rooms

    async def create_room(
        self, *, invite: Iterable[str] = (), direct: bool = False, name: str | None = None, **more: Any
    ) -> str:
        """A private room; gives its id. `more` goes into the request as it is."""
        request = {"preset": "private_chat", "invite": list(invite), "is_direct": direct, **more}
        if name is not None:
            request["name"] = name
        answer = await self.call("POST", "createRoom", json=request)
        return str(answer["room_id"])

    async def join(self, room: str) -> None:
        await self.call("POST", "join", room, json={})

    async def leave(self, room: str) -> None:
        await self.call("POST", "rooms", room, "leave", json={})

    async def invite(self, room: str, user_id: str) -> None:
        await self.call("POST", "rooms", room, "invite", json={"user_id": user_id})

    async def members(self, room: str) -> dict[str, str | None]:
        """Who has joined, with display names."""
        joined = (await self.call("GET", "rooms", room, "joined_members"))["joined"]
        return {user_id: profile.get("display_name") for user_id, profile in joined.items()}

    async def state(self, room: str, event_type: str, key: str = "") -> Event:
        """The content of a state event."""
        return await self.call("GET", "rooms", room, "state", event_type, key)

    # Sending; each gives the new event's id

    async def send(self, room: str, event_type: str, content: Event) -> str:
        answer = await self.call("PUT", "rooms", room, "send", event_type, _transaction(), json=content)
        return str(answer["event_id"])

    async def send_text(
        self,
        room: str,
        body: str,
        *,
        thread: str | None = None,
        reply_to: str | None = None,
        falling_back: bool | None = None,
        mentions: Iterable[str] | None = (),
        msgtype: str = "m.text",
        **more: Any,
    ) -> str:
        """A message as clients send it: `reply_to` alone is a reply, `thread` a message in the thread of that root.

        In a thread, `reply_to` makes it a real reply; without it there is only the fallback, to the root.
        `falling_back` says otherwise than these. `mentions` None leaves `m.mentions` out, as old clients do.
        """
        content: Event = {"msgtype": msgtype, "body": body, **more}
        if mentions is not None:
            users = list(mentions)
            content["m.mentions"] = {"user_ids": users} if users else {}
        if thread is not None:
            content["m.relates_to"] = {
                "rel_type": "m.thread",
                "event_id": thread,
                "m.in_reply_to": {"event_id": reply_to or thread},
                "is_falling_back": reply_to is None if falling_back is None else falling_back,
            }
        elif reply_to is not None:
            content["m.relates_to"] = {"m.in_reply_to": {"event_id": reply_to}}
        return await self.send(room, "m.room.message", content)

    async def react(self, room: str, event_id: str, key: str) -> str:
        relation = {"rel_type": "m.annotation", "event_id": event_id, "key": key}
        return await self.send(room, "m.reaction", {"m.relates_to": relation})

    async def edit(self, room: str, event_id: str, body: str) -> str:
        new: Event = {"msgtype": "m.text", "body": body, "m.mentions": {}}
        relation = {"rel_type": "m.replace", "event_id": event_id}
        content = {**new, "body": f"* {body}", "m.new_content": new, "m.relates_to": relation}
        return await self.send(room, "m.room.message", content)

    async def redact(self, room: str, event_id: str) -> str:
        answer = await self.call("PUT", "rooms", room, "redact", event_id, _transaction(), json={})
        return str(answer["event_id"])

    # Seeing

    async def event(self, room: str, event_id: str) -> Event:
        """The event as the server has it now."""
        return await self.call("GET", "rooms", room, "event", event_id)

    async def relations(self, room: str, event_id: str, rel_type: str | None = None) -> list[Event]:
        """All events that relate to this one, oldest first."""
        path = ["rooms", room, "relations", event_id, *([rel_type] if rel_type else [])]
        query = {"dir": "f", "limit": "100"}
        events: list[Event] = []
        while True:
            page = await self.call("GET", *path, version="v1", params=query)
            events += page["chunk"]
            if "next_batch" not in page:
                return events
            query["from"] = page["next_batch"]

    def timeline(self, room: str) -> list[Event]:
        """All that was seen in the room up to now, state included, in the server's order."""
        return list(self._timelines[room].values())

    async def wait_for(
        self,
        room: str,
        wanted: Callable[[Event], bool],
        *,
        after: str | None = None,
        seconds: float = 20,
    ) -> Event:
        """The first event of the room's timeline that is wanted, seen already or still to come.

        Of those behind the event `after`, where it is given. An AssertionError with what was seen where none comes.
        """

        def find() -> Event | None:
            seen = self.timeline(room)
            if after is not None:
                ids = [event["event_id"] for event in seen]
                seen = seen[ids.index(after) + 1 :] if after in ids else []
            return next((event for event in seen if wanted(event)), None)

        return await self._sync_until(find, room, seconds)

    async def wait_for_typing(self, room: str, user_id: str, *, typing: bool = True, seconds: float = 20) -> None:
        """Until the user was seen typing, since this person first looked; without `typing`, until that ended."""

        def find() -> bool | None:
            seen = [
                user_id in each["content"]["user_ids"] for each in self._ephemeral[room] if each["type"] == "m.typing"
            ]
            return (any(seen) if typing else True in seen and not seen[-1]) or None

        await self._sync_until(find, room, seconds)

    async def catch_up(self) -> None:
        """See all that the server has already, waiting for nothing."""
        async with self._one_sync:
            await self._sync(0)

    async def _sync_until(self, find: Callable[[], Found | None], room: str, seconds: float) -> Found:
        try:
            async with asyncio.timeout(seconds):
                while True:
                    async with self._one_sync:
                        if (found := find()) is not None:
                            return found
                        await self._sync(_LONG_POLL_MS)
        except TimeoutError:
            seen = "\n".join(
                f"  {event['sender']} {event['type']} {json.dumps(event['content'], ensure_ascii=False)}"
                for event in self.timeline(room)
            )
            raise AssertionError(f"not seen by {self.user_id} within {seconds} s; seen:\n{seen}") from None

    async def _sync(self, wait_ms: int) -> None:
        query = {"timeout": str(wait_ms), "filter": _SYNC_FILTER, **({"since": self._since} if self._since else {})}
        answer = await self.call("GET", "sync", params=query)
        rooms = answer.get("rooms", {})
        for room, news in (*rooms.get("join", {}).items(), *rooms.get("leave", {}).items()):
            for event in news["timeline"]["events"]:
                self._timelines[room].setdefault(event["event_id"], event)
            self._ephemeral[room] += news.get("ephemeral", {}).get("events", [])
        self._since = answer["next_batch"]


def _transaction() -> str:
    return secrets.token_hex(8)
