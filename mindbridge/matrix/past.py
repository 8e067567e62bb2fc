"""What a room holds already: its history, the reactions to a message, and the account's own events."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import nio
from nio.api import Api, MessageDirection, RelationshipType
from nio.client.async_client import AsyncClient
from nio.responses import RoomEventRelationsResponse

from mindbridge.events import Reaction, RoomEvent
from mindbridge.ids import DeliveryId, EventId, RoomId, UserId
from mindbridge.matrix.errors import MatrixError, Refused

log = logging.getLogger(__name__)

PAGE_EVENTS = 100
MOST_PAGES = 50

Ask = Callable[[str, Awaitable[Any]], Awaitable[Any]]
Read = Callable[[RoomId, Any], RoomEvent | None]
Clear = Callable[[RoomId, dict[str, Any]], dict[str, Any]]


class TooFarBack(MatrixError):
    """What was looked for was not within `MOST_PAGES` pages, and there is more."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of history, the newest event first; `before`: where the next one begins, None at the end.

    A page without events is not the end: the server may keep to itself all that would stand there.
    """

    events: tuple[RoomEvent, ...]
    before: str | None


@dataclass(frozen=True, slots=True)
class Found:
    """An event of the account's own that was looked for; `server_ts` is the server's time in milliseconds."""

    event_id: EventId
    server_ts: int


class Past:
    """The past of the rooms that an account is in.

    All methods raise `MatrixError` and its kinds.
    """

    def __init__(self, client: AsyncClient, user_id: UserId, ask: Ask, read: Read, clear: Clear) -> None:
        self._client = client
        self._user_id = user_id
        self._ask = ask
        self._read = read
        self._clear = clear

    async def page(self, room_id: RoomId, before: str | None, since: str | None) -> Page:
        """The events right before a position, at most `PAGE_EVENTS`, and none from before `since`."""
        answer = await self._page(room_id, before, since)
        events = tuple(event for each in answer.chunk if (event := self._read(room_id, each.source)) is not None)
        return Page(events, answer.end or None)

    async def reactions(self, room_id: RoomId, event_id: EventId) -> tuple[RoomEvent, ...]:
        """All reactions to an event that were not withdrawn, in the server's order."""
        sources = self._relations(room_id, event_id, RelationshipType.annotation)
        return tuple([event async for source in sources if (event := self._read(room_id, source)) is not None])

    async def sent(
        self, room_id: RoomId, content: dict[str, Any], transaction: DeliveryId, since: str | None
    ) -> list[Found]:
        """The account's events since a position with this transaction id, or else its messages with this content.

        One with the transaction id is the only one given; the server tells it only to the device that sent it.

        Raises:
            TooFarBack: there is more than could be read.
        """
        same: list[Found] = []
        before: str | None = None
        for _ in range(MOST_PAGES):
            answer = await self._page(room_id, before, since)
            for event in answer.chunk:
                own = self._read(room_id, event.source)
                if own is None or own.sender != self._user_id:
                    continue
                found = Found(own.event_id, own.server_ts)
                if own.transaction_id == transaction:
                    return [found]
                if event.source.get("type") == "m.room.message" and event.source.get("content") == content:
                    same.append(found)
            before = answer.end or None
            if before is None:
                return same
        raise TooFarBack(f"{room_id}: more than {MOST_PAGES * PAGE_EVENTS} events came since")

    async def button(self, room_id: RoomId, event_id: EventId, key: str) -> Found | None:
        """The account's own reaction to an event with this key."""
        sources = self._relations(room_id, event_id, RelationshipType.annotation)
        return await self._own(room_id, sources, lambda own, _: isinstance(own, Reaction) and own.key == key)

    async def edit(self, room_id: RoomId, event_id: EventId, content: dict[str, Any]) -> Found | None:
        """The account's own edit of an event with this content."""
        sources = self._relations(room_id, event_id, RelationshipType.replacement)
        new = content["m.new_content"]
        return await self._own(room_id, sources, lambda _, each: each.get("m.new_content") == new)

    async def content(self, room_id: RoomId, event_id: EventId) -> dict[str, Any]:
        """What an event said when it was sent; empty once it was redacted."""
        answer = await self._ask("event", self._client.room_get_event(room_id, event_id))
        content = self._clear(room_id, answer.event.source).get("content")
        return content if isinstance(content, dict) else {}

    async def redaction(self, room_id: RoomId, event_id: EventId) -> Found | None:
        """What withdrew an event, None where nothing did."""
        answer = await self._ask("event", self._client.room_get_event(room_id, event_id))
        unsigned = answer.event.source.get("unsigned")
        because = self._read(room_id, unsigned.get("redacted_because")) if isinstance(unsigned, dict) else None
        return None if because is None else Found(because.event_id, because.server_ts)

    async def predecessor(self, room_id: RoomId) -> RoomId | None:
        """The room that was upgraded to this one, by what its create event says; None where it names none."""
        answer = await self._ask("state", self._client.room_get_state_event(room_id, "m.room.create"))
        predecessor = answer.content.get("predecessor")
        former = predecessor.get("room_id") if isinstance(predecessor, dict) else None
        return RoomId(former) if isinstance(former, str) else None

    async def _own(
        self,
        room_id: RoomId,
        sources: AsyncIterator[dict[str, Any]],
        wanted: Callable[[RoomEvent, dict[str, Any]], bool],
    ) -> Found | None:
        async for source in sources:
            own, content = self._read(room_id, source), source.get("content")
            if own is not None and own.sender == self._user_id and isinstance(content, dict) and wanted(own, content):
                return Found(own.event_id, own.server_ts)
        return None

    async def _page(self, room_id: RoomId, before: str | None, since: str | None) -> nio.RoomMessagesResponse:
        answer: nio.RoomMessagesResponse = await self._ask(
            "messages",
            self._client.room_messages(room_id, before, since, MessageDirection.back, PAGE_EVENTS),
        )
        return answer

    async def _relations(
        self, room_id: RoomId, event_id: EventId, kind: RelationshipType
    ) -> AsyncIterator[dict[str, Any]]:
        """All events of a kind that relate to one, oldest first, as JSON; none where the server doesn't have it.

        Of very many only the first `MOST_PAGES` pages.
        """
        # nio's own walk over the pages ends in an AttributeError when the server refuses one.
        position: str | None = None
        for _ in range(MOST_PAGES):
            method, path = Api.room_get_event_relations(
                self._client.access_token, room_id, event_id, kind, None, MessageDirection.front, position, None, 100
            )
            request = self._client._send(  # noqa: SLF001 - nio offers no page of relations by itself
                RoomEventRelationsResponse, method, path, response_data=(room_id, event_id)
            )
            try:
                answer = await self._ask("relations", request)
            except Refused as error:
                if error.errcode == "M_NOT_FOUND":
                    return
                raise
            for event in answer.events:
                yield self._clear(room_id, event.source)
            position = answer.next_batch
            if position is None:
                return
        log.warning("too_many_relations room_id=%s event_id=%s", room_id, event_id)
