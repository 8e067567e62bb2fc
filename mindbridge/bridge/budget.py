"""What one Matrix account may send, learned from the server's answers.

A homeserver limits an account over all its rooms. The model is Synapse's leaky bucket: an event is taken while the
bucket has room for it, the bucket leaks all the time, and a refused attempt adds nothing. Messages and notices never
ask; buttons, edits and redactions ("extras") ask, and leave some room for the messages.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

DEFAULT_BURST, DEFAULT_PER_SECOND = 10.0, 0.2
QUIET_MS = 1_000
"""Without a message for so long, a bridge that knows of no limit tries extras beyond its assumptions."""
LEARNED_FOR_MS = 24 * 60 * 60 * 1_000
"""A refusal is remembered for so long; after that the limits may have been lifted."""

_RESERVE_SHARE, _RESERVE_MOST = 0.3, 3.0
_PER_SECOND_LEAST, _PER_SECOND_MOST = 1 / 60, 1_000.0
_BURST_MOST, _FLOAT_ERROR = 1e12, 1e-6


@dataclass(frozen=True, slots=True)
class Budget:
    """A bucket of events; all fields are plain numbers, so `Budget(**row)` restores what `asdict` gave.

    Args:
        level: how full the bucket was at `at_ms`, in events.
        at_ms: when `level` was right.
        burst: how many events the bucket holds.
        per_second: how many events leak out in a second.
        limited_at_ms: when the server last refused an event; None if never, or forgotten.
        full_at_ms: the same, None once the bucket ran empty since. Until then an unexpected answer means that the rate
            is wrong, since the bucket is known to have been full; afterwards it means that the burst is.
        last_message_ms: when a message was last sent, None before the first.
    """

    level: float
    at_ms: int
    burst: float
    per_second: float
    limited_at_ms: int | None
    full_at_ms: int | None
    last_message_ms: int | None

    @classmethod
    def unknown(cls) -> Self:
        """An account of which nothing is known: Synapse's default limits, an empty bucket."""
        return cls(0.0, 0, DEFAULT_BURST, DEFAULT_PER_SECOND, None, None, None)

    def sent(self, now_ms: int, *, is_message: bool) -> Self:
        """The server took an event at `now_ms`. Where the bucket had no room for it, the server is more generous.

        While no refusal is known, each event over the default burst doubles it: soon nothing waits where no limit is.
        """
        now = self._at(now_ms)
        level, burst, per_second = now.level + 1, now.burst, now.per_second
        if now.limited_at_ms is None:
            if level > DEFAULT_BURST + 1:
                burst = min(burst * 2, _BURST_MOST)
        elif level > burst + 1:
            if now.full_at_ms is None:
                burst = level
            else:
                per_second += (level - burst) / max(_seconds(now.full_at_ms, now_ms), 1.0)
                level = burst
        return replace(
            now,
            level=level,
            burst=burst,
            per_second=per_second,
            last_message_ms=now_ms if is_message else now.last_message_ms,
        )

    def limited(self, now_ms: int, retry_after_ms: int) -> Self:
        """The server refused an event at `now_ms`: it has room for one after `retry_after_ms` (429), absurd or not.

        An event leaks out in that time at least, so the rate is at most its inverse.
        """
        now = self._at(now_ms)
        wait = min(max(retry_after_ms / 1_000, 1 / _PER_SECOND_MOST), 1 / _PER_SECOND_LEAST)
        burst, per_second = now.burst, now.per_second
        if now.full_at_ms is not None:
            passed = _seconds(now.full_at_ms, now_ms)
            if passed + wait >= 1:  # over shorter times the answers' delays would count
                per_second = (passed * per_second + now.level - (burst - 1)) / (passed + wait)
        per_second = max(min(per_second, 1 / wait), _PER_SECOND_LEAST)
        if now.full_at_ms is None:
            burst = max(1.0, now.level + 1 - wait * per_second)
        level = burst - 1 + wait * per_second
        return replace(now, level=level, burst=burst, per_second=per_second, limited_at_ms=now_ms, full_at_ms=now_ms)

    def wait_for_extra(self, now_ms: int) -> int:
        """Milliseconds until a button, an edit or a redaction may go if nothing else is sent; 0 is now."""
        now = self._at(now_ms)
        reserve = min(_RESERVE_MOST, _RESERVE_SHARE * now.burst, now.burst - 1)
        missing = now.level + 1 + reserve - now.burst
        wait = max(0, math.ceil((missing - _FLOAT_ERROR) / now.per_second * 1_000))
        if now.limited_at_ms is None:
            quiet = QUIET_MS if now.last_message_ms is None else abs(now_ms - now.last_message_ms)
            wait = min(wait, max(0, QUIET_MS - quiet))
        return wait

    def _at(self, now_ms: int) -> Self:
        """The same at another time: some has leaked out; an old refusal and what it taught are forgotten."""
        level = max(0.0, self.level - _seconds(self.at_ms, now_ms) * self.per_second)
        now = replace(self, level=level, at_ms=now_ms, full_at_ms=self.full_at_ms if level > 0 else None)
        if self.limited_at_ms is None or abs(now_ms - self.limited_at_ms) <= LEARNED_FOR_MS:
            return now
        return replace(now, burst=DEFAULT_BURST, per_second=DEFAULT_PER_SECOND, limited_at_ms=None, full_at_ms=None)


def _seconds(since_ms: int, now_ms: int) -> float:
    """Seconds between. A clock that was set back counts as that much time gone by, so that nothing waits for it."""
    return abs(now_ms - since_ms) / 1_000
