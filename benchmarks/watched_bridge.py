"""The real bridge in this process, with a note of when each sync response came and each event was sent."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import StringIO
from typing import Any
from unittest.mock import patch

from stage import until

from mindbridge.app import run_bridge
from mindbridge.cli.logs import set_up_logging
from mindbridge.config.schema import Config
from mindbridge.events import SyncBatch
from mindbridge.ids import DeliveryId, EventId, RoomId
from mindbridge.matrix.session import Session

_QUIET_SECONDS = 0.1


class _Nowhere(StringIO):
    """A text file that forgets what is written to it."""

    def write(self, text: str) -> int:
        """Forgets it."""
        return len(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """An event that the bridge sent: when it began to, and when the server had acknowledged it."""

    room_id: RoomId
    event_type: str
    content: dict[str, Any]
    began: float
    acknowledged: float


@dataclass(slots=True)
class Watch:
    """What happened, by `time.monotonic`."""

    synced: dict[EventId, float] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)
    latest: float = 0.0

    async def quiet(self, *, sent: int) -> None:
        """Waits until so many events were sent and then nothing happened any more.

        Raises:
            TimeoutError: it did not come so far.
        """
        await until(lambda: len(self.sent) >= sent and time.monotonic() - self.latest >= _QUIET_SECONDS)


@asynccontextmanager
async def watched_bridge(config: Config) -> AsyncIterator[Watch]:
    """Runs the bridge from its agents' first sync to the end of the context."""
    watch = Watch()
    sync, send, redact = Session.sync, Session.send, Session.redact

    async def watched_sync(session: Session, since: str | None, *, wait: bool) -> SyncBatch:
        batch = await sync(session, since, wait=wait)
        watch.latest = time.monotonic()
        for room in batch.joined:
            for event in room.events:
                watch.synced.setdefault(event.event_id, watch.latest)
        return batch

    async def watched_send(
        session: Session, room_id: RoomId, event_type: str, content: dict[str, Any], transaction: DeliveryId
    ) -> EventId:
        began = time.monotonic()
        event_id = await send(session, room_id, event_type, content, transaction)
        watch.latest = time.monotonic()
        watch.sent.append(
            Sent(room_id=room_id, event_type=event_type, content=content, began=began, acknowledged=watch.latest)
        )
        return event_id

    async def watched_redact(session: Session, room_id: RoomId, event_id: EventId, transaction: DeliveryId) -> EventId:
        redaction = await redact(session, room_id, event_id, transaction)
        watch.latest = time.monotonic()
        return redaction

    ready = asyncio.Event()
    set_up_logging(_Nowhere())  # in the form and of the level that a real run has
    with (
        patch.object(Session, "sync", watched_sync),
        patch.object(Session, "send", watched_send),
        patch.object(Session, "redact", watched_redact),
    ):
        running = asyncio.create_task(run_bridge(config, on_ready=ready.set))
        getting_ready = asyncio.create_task(ready.wait())
        await asyncio.wait({running, getting_ready}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            getting_ready.cancel()
            raise RuntimeError(f"the bridge ended with status {running.result()} before its agents were there")
        try:
            yield watch
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            await running
