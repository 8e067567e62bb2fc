"""From the journal to the homeserver: one account's deliveries, one after the other, in their order."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from mindbridge.bridge.closing import edit_without_buttons
from mindbridge.bridge.finding import CantTell, find
from mindbridge.bridge.limits import Limits
from mindbridge.bridge.pace import Bell, SetAside, growing_delays
from mindbridge.ids import EventId
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Acknowledged, Delivery
from mindbridge.matrix.content import with_target
from mindbridge.matrix.errors import Limited, MatrixError, Refused, TokenRejected
from mindbridge.matrix.session import Session
from mindbridge.steps import Step, reached

log = logging.getLogger(__name__)

LULL_SECONDS = 0.25

_STEPS = {
    "message": Step.SEND_MESSAGE,
    "notice": Step.SEND_NOTICE,
    "button": Step.SEND_BUTTON,
    "edit": Step.SEND_EDIT,
    "redaction": Step.SEND_REDACTION,
}


class Deliverer:
    """Sends what the journal holds for one account.

    An event is noted as attempted before it is sent and settled after the server's word. Where that word is lost, by a
    crash or on the way, the event is looked for in the room before it is sent again with the same transaction id.
    """

    def __init__(self, session: Session, outbox: Outbox, now: Callable[[], int]) -> None:
        self._session = session
        self._outbox = outbox
        self._now = now
        self._limits = Limits(session.agent, outbox, now)
        self._failing = SetAside()
        self._stopping = asyncio.Event()
        self._resting = asyncio.Event()
        self._resting.set()
        self.bell = Bell()

    async def run(self) -> None:
        """Sends until `stop`, then what is due.

        Raises:
            TokenRejected: the account can't be used any more.
        """
        delays = growing_delays()
        await self._limits.remember()
        sent: Acknowledged | None = None
        while True:
            held_for = self._limits.take_hold()
            if held_for > 0 and await self._stops_within(held_for / 1000):
                return
            # At a stop no more messages come for which something would have to be left.
            extras_in = 0 if self._stopping.is_set() else self._limits.wait_for_extra()
            now = self._now()
            failing, behind = self._failing.waits(now), self._limits.behind()
            delivery = await self._outbox.claim_next(
                self._session.agent, now, sent, messages_only=extras_in > 0, set_aside=failing.keys() | behind.keys()
            )
            sent = None
            if delivery is None:
                if self._stopping.is_set() and not failing:
                    return
                waits = [wait for wait in (extras_in, *failing.values(), *behind.values()) if wait > 0]
                await self._rest(self.bell.wait(min(waits) / 1000 if waits else None))
                continue
            try:
                sent = await self._deliver(delivery)
            except Limited as error:
                await self._limits.limited(delivery, error)
            except TokenRejected:
                raise
            except MatrixError as error:
                self._failing.failed(delivery.room_id, self._now())
                log.warning("send_failed delivery_id=%s error=%s; it is tried again", delivery.delivery_id, error)
                # A room with which something is wrong holds up no other; where it is not the only one, it may be the
                # server that is in trouble.
                if self._failing.holds_others(delivery.room_id):
                    await self._rest(self.bell.wait(next(delays)))
            else:
                delays = growing_delays()
                self._failing.succeeded(delivery.room_id)
                self._limits.answered(delivery)

    async def lull(self) -> None:
        """Waits until nothing is being sent, at most `LULL_SECONDS`.

        What is sent comes back in a sync response. One response for a question and its buttons costs the homeserver far
        less than one for each of them, and they are sent the sooner.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LULL_SECONDS):
                await self._resting.wait()

    def note_join(self) -> None:
        """The account joined a room, which the server counts as an event that it sent."""
        self._limits.note_join()

    async def _rest(self, pause: Awaitable[object]) -> None:
        self._resting.set()
        await pause
        self._resting.clear()

    async def _stops_within(self, seconds: float) -> bool:
        """Waits until the account may send again; whether it was told to stop before that."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rest(self._stopping.wait())
        self._resting.clear()
        return self._stopping.is_set()

    def stop(self) -> None:
        """Lets `run` end when nothing is due any more, or the account must not send."""
        self._stopping.set()
        self.bell.ring()

    async def _deliver(self, delivery: Delivery) -> Acknowledged | None:
        """Sends a delivery; what is still to be noted of it."""
        try:
            if delivery.tried_before and await self._settle_by_looking(delivery):
                return None
            event_id = await self._send(delivery)
        except Refused as error:
            await self._refused(delivery, error)
            return None
        await self._limits.sent(delivery)
        log.info("sent delivery_id=%s kind=%s event_id=%s", delivery.delivery_id, delivery.kind, event_id)
        return Acknowledged(delivery_id=delivery.delivery_id, event_id=event_id)

    async def _send(self, delivery: Delivery) -> EventId:
        step = _STEPS[delivery.kind]
        reached(step, "before")
        if delivery.kind == "redaction":
            if delivery.target_event is None:
                raise ValueError(f"{delivery.delivery_id}: a redaction without a target was claimed")
            event_id = await self._session.redact(delivery.room_id, delivery.target_event, delivery.delivery_id)
        else:
            content = with_target(delivery.content, delivery.target_event)
            event_type = "m.reaction" if delivery.kind == "button" else "m.room.message"
            event_id = await self._session.send(delivery.room_id, event_type, content, delivery.delivery_id)
        reached(step, "after")
        return event_id

    async def _settle_by_looking(self, delivery: Delivery) -> bool:
        """Whether a delivery that was tried before is settled by what the room holds, or by its silence."""
        try:
            found = await find(self._session.past, self._outbox, delivery)
        except CantTell as error:
            log.error(  # noqa: TRY400 - the reason says it all
                "uncertain delivery_id=%s kind=%s; it is not sent again: %s", delivery.delivery_id, delivery.kind, error
            )
            await self._outbox.give_up(delivery.delivery_id, str(error), self._now())
            return True
        if found is None:
            return False
        log.info("found delivery_id=%s kind=%s event_id=%s", delivery.delivery_id, delivery.kind, found.event_id)
        await self._outbox.found(delivery.delivery_id, found.event_id, found.server_ts, self._now())
        return True

    async def _acknowledge_duplicate(self, delivery: Delivery) -> None:
        """The button is there already: all the same which event it is, but for its redaction."""
        try:
            found = await find(self._session.past, self._outbox, delivery)
        except CantTell:
            found = None
        event_id = None if found is None else found.event_id
        await self._outbox.acknowledge(delivery.delivery_id, event_id, self._now())

    async def _refused(self, delivery: Delivery, error: Refused) -> None:
        if delivery.kind == "button" and error.errcode == "M_DUPLICATE_ANNOTATION":
            await self._acknowledge_duplicate(delivery)
            return
        log.warning("refused delivery_id=%s kind=%s error=%s", delivery.delivery_id, delivery.kind, error)
        await self._outbox.refuse(delivery.delivery_id, str(error), self._now(), edit_without_buttons)
        self.bell.ring()
