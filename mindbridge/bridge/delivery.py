"""From the journal to the homeserver: one account's deliveries, one after the other, in their order."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from mindbridge.bridge.pace import Bell, growing_delays
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Acknowledged, Delivery
from mindbridge.matrix.content import with_target
from mindbridge.matrix.errors import Limited, MatrixError, Refused, TokenRejected
from mindbridge.matrix.session import Session

log = logging.getLogger(__name__)

LULL_SECONDS = 0.25

_EVENT_TYPES = {
    "message": "m.room.message",
    "notice": "m.room.message",
    "edit": "m.room.message",
    "button": "m.reaction",
}


class Deliverer:
    """Sends what the journal holds for one account.

    An event is noted as attempted before it is sent and settled after the server's word; a crash in between sends it
    again with the same transaction id, which the server takes for the same event.
    """

    def __init__(self, session: Session, outbox: Outbox, now: Callable[[], int]) -> None:
        self._session = session
        self._outbox = outbox
        self._now = now
        self._stopping = False
        self._resting = asyncio.Event()
        self._resting.set()
        self.bell = Bell()

    async def run(self) -> None:
        """Sends until `stop`, then what is due.

        Raises:
            TokenRejected: the account can't be used any more.
        """
        delays = growing_delays()
        held_until = await self._outbox.held_until(self._session.agent)
        sent: Acknowledged | None = None
        while True:
            if (held_for := held_until - self._now()) > 0:
                await self._rest(asyncio.sleep(held_for / 1000))
            delivery = await self._outbox.claim_next(self._session.agent, self._now(), sent)
            sent = None
            if delivery is None:
                if self._stopping:
                    return
                await self._rest(self.bell.wait())
                continue
            try:
                sent = await self._deliver(delivery)
            except Limited as error:
                log.info("limited agent=%s retry_after_ms=%d", self._session.agent, error.retry_after_ms)
                held_until = self._now() + error.retry_after_ms
                await self._outbox.hold(self._session.agent, held_until)
            except TokenRejected:
                raise
            except MatrixError as error:
                delay = next(delays)
                log.warning("send_failed delivery_id=%s retry_in=%.1fs error=%s", delivery.delivery_id, delay, error)
                await self._rest(asyncio.sleep(delay))
            else:
                delays = growing_delays()

    async def lull(self) -> None:
        """Waits until nothing is being sent, at most `LULL_SECONDS`.

        What is sent comes back in a sync response. One response for a question and its buttons costs the homeserver far
        less than one for each of them, and they are sent the sooner.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LULL_SECONDS):
                await self._resting.wait()

    async def _rest(self, pause: Awaitable[None]) -> None:
        self._resting.set()
        await pause
        self._resting.clear()

    def stop(self) -> None:
        """Lets `run` end when nothing is due any more."""
        self._stopping = True
        self.bell.ring()

    async def _deliver(self, delivery: Delivery) -> Acknowledged | None:
        """Sends a delivery; what is still to be noted of it."""
        try:
            if delivery.kind == "redaction":
                if delivery.target_event is None:
                    raise ValueError(f"{delivery.delivery_id}: a redaction without a target was claimed")
                event_id = await self._session.redact(delivery.room_id, delivery.target_event, delivery.delivery_id)
            else:
                content = with_target(delivery.content, delivery.target_event)
                event_type = _EVENT_TYPES[delivery.kind]
                event_id = await self._session.send(delivery.room_id, event_type, content, delivery.delivery_id)
        except Refused as error:
            if delivery.kind == "button" and error.errcode == "M_DUPLICATE_ANNOTATION":
                await self._outbox.acknowledge(delivery.delivery_id, None, self._now())
                return None
            log.warning("refused delivery_id=%s kind=%s error=%s", delivery.delivery_id, delivery.kind, error)
            await self._outbox.refuse(delivery.delivery_id, str(error), self._now())
            return None
        log.info("sent delivery_id=%s kind=%s event_id=%s", delivery.delivery_id, delivery.kind, event_id)
        return Acknowledged(delivery_id=delivery.delivery_id, event_id=event_id)
