"""A Matrix client for one room: keeps up with it, shows what comes, and tells when something has come."""

import asyncio
from collections.abc import Callable

from mindbridge.demo.conversation import Conversation
from mindbridge.demo.person import LONG_POLL_SECONDS, Person
from mindbridge.demo.timeline import Seen
from mindbridge.ids import RoomId


class NotSeenError(Exception):
    """Something that had to come did not; the message says what."""


class Client:
    """`keep_up` runs beside the calls of `wait_until`.

    Args:
        person: whose client it is.
        room_id: the room that it shows.
        show: called for each event, once, in order, after the conversation knows it.
    """

    def __init__(self, person: Person, room_id: RoomId, show: Callable[[Seen, Conversation], None]) -> None:
        self.person = person
        self.room_id = room_id
        self.conversation = Conversation()
        self._show = show
        self._news = asyncio.Condition()

    async def keep_up(self) -> None:
        """Sync for ever.

        Raises:
            HomeserverError: the homeserver is gone.
        """
        while True:
            await self.catch_up(wait_seconds=LONG_POLL_SECONDS)

    async def catch_up(self, *, wait_seconds: float = 0) -> None:
        """Sync once: all that the server has now, or, with `wait_seconds`, what comes next.

        Raises:
            HomeserverError: the homeserver is gone.
        """
        for event in await self.person.sync(self.room_id, wait_seconds=wait_seconds):
            if self.conversation.add(event):
                self._show(event, self.conversation)
        async with self._news:
            self._news.notify_all()

    async def wait_until(self, holds: Callable[[Conversation], bool], what: str, *, seconds: float) -> None:
        """Wait until the conversation is so.

        Args:
            holds: asked now, and again whenever something came.
            what: what is waited for, in words.
            seconds: how long at most.

        Raises:
            NotSeenError: it did not become so in time.
        """
        try:
            async with asyncio.timeout(seconds), self._news:
                await self._news.wait_for(lambda: holds(self.conversation))
        except TimeoutError:
            raise NotSeenError(f"waited {seconds:.0f} s in vain for {what}") from None
