"""Waiting: bells that ring when there is work, and delays that grow."""

import asyncio
import random
import time
from collections.abc import Iterator

from mindbridge.ids import QuestionId, RoomId
from mindbridge.matrix.errors import Limited, MatrixError


def now_ms() -> int:
    """The bridge's clock: milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Bell:
    """Rung when there may be work. A ring during the work is heard by the next wait."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Ends the current or the next wait."""
        self._rung.set()

    async def wait(self, seconds: float | None = None) -> None:
        """Waits for a ring, at most so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return
        finally:
            self._rung.clear()


LONGEST_DELAY_SECONDS = 60.0


class SetAside:
    """Rooms and questions for which something failed, each left alone for a growing while. The others go on.

    Args:
        patience: how many failures in a row it takes.
    """

    def __init__(self, patience: int = 1) -> None:
        self._patience = patience
        self._failures: dict[RoomId | QuestionId, int] = {}
        self._until: dict[RoomId | QuestionId, int] = {}
        self._delays: dict[RoomId | QuestionId, Iterator[float]] = {}

    def failed(self, key: RoomId | QuestionId, now: int) -> bool:
        """Notes a failure at `now` in milliseconds; whether it is set aside from then on."""
        self._failures[key] = self._failures.get(key, 0) + 1
        if self._failures[key] < self._patience:
            return False
        delays = self._delays.setdefault(key, growing_delays())
        self._until[key] = now + round(next(delays) * 1000)
        return True

    def succeeded(self, key: RoomId | QuestionId) -> None:
        """It is as good as any other again."""
        self._failures.pop(key, None)
        self._until.pop(key, None)
        self._delays.pop(key, None)

    def holds_others(self, key: RoomId | QuestionId) -> bool:
        """Whether there is trouble with anything else as well, since it last succeeded."""
        return bool(self._failures.keys() - {key})

    def waits(self, now: int) -> dict[RoomId | QuestionId, int]:
        """What is set aside at `now`, with the milliseconds until it isn't."""
        waits = {key: until - now for key, until in self._until.items()}
        # One that is longer than any delay comes of a clock that was set back.
        return {key: wait for key, wait in waits.items() if 0 < wait <= LONGEST_DELAY_SECONDS * 1000}


def growing_delays(first: float = 0.5, most: float = LONGEST_DELAY_SECONDS) -> Iterator[float]:
    """Seconds to wait after each failure in a row: doubling up to `most`, each shortened at random by up to a half."""
    delay = first
    while True:
        yield delay * random.uniform(0.5, 1.0)  # noqa: S311 - spreads requests, protects nothing
        delay = min(delay * 2, most)


def wait_after(error: MatrixError, delays: Iterator[float]) -> float:
    """Seconds to wait after a failure: the next of `delays`, and not less than the server asked for."""
    asked_for = error.retry_after_ms / 1000 if isinstance(error, Limited) else 0.0
    return max(next(delays), asked_for)
