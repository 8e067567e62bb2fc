"""When one account may send, and what, as its homeserver's limits are known."""

import json
import logging
from collections.abc import Callable
from dataclasses import asdict

from mindbridge.bridge.budget import Budget
from mindbridge.bridge.pace import SetAside
from mindbridge.ids import AgentName, QuestionId, RoomId
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Delivery
from mindbridge.matrix.errors import Limited
from mindbridge.matrix.session import LONGEST_HOLD_MS

log = logging.getLogger(__name__)

RECENT_MS = 5 * 60 * 1000
"""What was sent so long before a start still counts against the account's budget."""
LIMITS_IN_A_ROW = 2
"""So often the same is refused by a limit before others are tried first: once it has waited as long as was asked."""

_WORDS = frozenset({"message", "notice"})


class Limits:
    """One account's limits: its budget, the time for which it has to wait, and what others are tried before.

    A refusal makes the whole account wait. Where the same is refused again and again, the limit may be for that alone:
    a question's buttons, or a room's messages. It then steps behind all that does not depend on it.

    Args:
        agent: whose account it is.
        outbox: keeps what is learned.
        now: the clock, in milliseconds.
    """

    def __init__(self, agent: AgentName, outbox: Outbox, now: Callable[[], int]) -> None:
        self._agent = agent
        self._outbox = outbox
        self._now = now
        self._budget = Budget.unknown()
        self._held_until = 0
        self._behind = SetAside(patience=LIMITS_IN_A_ROW)
        self._before: dict[RoomId | QuestionId, Budget] = {}

    async def remember(self) -> None:
        """Takes up what the journal knows."""
        self._held_until, learned = await self._outbox.limits(self._agent)
        if learned is not None:
            self._budget = Budget(**json.loads(learned))
        recently = max(self._budget.at_ms, self._now() - RECENT_MS)
        for at, kind in await self._outbox.sent_since(self._agent, recently):
            self._budget = self._budget.sent(at, is_message=kind in _WORDS)

    def take_hold(self) -> int:
        """Milliseconds for which the account must not send, 0 or less where it may; told once, to be waited for."""
        held_until, self._held_until = self._held_until, 0
        # The clock may have been set back since the time was noted.
        return min(held_until - self._now(), LONGEST_HOLD_MS)

    def wait_for_extra(self) -> int:
        """Milliseconds until a button, an edit or a redaction may go; 0 is now."""
        return self._budget.wait_for_extra(self._now())

    def behind(self) -> dict[RoomId | QuestionId, int]:
        """What is not to be tried for so many milliseconds: what goes to a room, or belongs to a question."""
        return self._behind.waits(self._now())

    async def limited(self, delivery: Delivery, error: Limited) -> None:
        """The server refused to take the delivery, or to tell of it, for now: the account has to wait."""
        log.info("limited agent=%s retry_after_ms=%d", self._agent, error.retry_after_ms)
        now = self._now()
        self._held_until = now + error.retry_after_ms
        scope = _scope(delivery)
        if self._behind.failed(scope, self._held_until):
            # What is refused for itself says nothing of what the account may send: what it taught is taken back.
            self._budget = self._before.pop(scope, self._budget)
            log.warning("limited_again delivery_id=%s; others are tried first", delivery.delivery_id)
        else:
            self._before[scope] = self._budget
            self._budget = self._budget.limited(now, error.retry_after_ms)
        # Of what was tried before, the server may have refused the look only: it is looked for again.
        untaken = None if delivery.tried_before else delivery.delivery_id
        await self._outbox.hold(self._agent, untaken, self._held_until, self._learned(), now)

    async def sent(self, delivery: Delivery) -> None:
        """The server took the delivery."""
        before = self._budget
        self._budget = before.sent(self._now(), is_message=delivery.kind in _WORDS)
        if (self._budget.burst, self._budget.per_second) != (before.burst, before.per_second):
            await self._outbox.learn(self._agent, self._learned())

    def answered(self, delivery: Delivery) -> None:
        """The server had a word for the delivery that is no limit."""
        scope = _scope(delivery)
        self._behind.succeeded(scope)
        self._before.pop(scope, None)

    def note_join(self) -> None:
        """The account joined a room, which the server counts as an event that it sent."""
        self._budget = self._budget.sent(self._now(), is_message=False)

    def _learned(self) -> str:
        return json.dumps(asdict(self._budget))


def _scope(delivery: Delivery) -> RoomId | QuestionId:
    """What has to wait with a delivery: what is sent for its question, or, behind words, all of their room."""
    if delivery.kind in _WORDS or delivery.question_id is None:
        return delivery.room_id
    return delivery.question_id
