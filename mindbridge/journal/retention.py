"""Forgetting: texts of settled things after `keep`, and the things themselves when nothing needs them any more."""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import takewhile

from mindbridge.journal.database import Database, JournalDamaged, JournalError, Transaction
from mindbridge.questions.render import Part, Text, part_to_json
from mindbridge.steps import Step

log = logging.getLogger(__name__)

EVERY_SECONDS = 3600.0
MOST_ROWS = 500
"""How many things are forgotten in one transaction, so that nobody waits for long."""

KEPT_AS_IDS = timedelta(days=90)
"""For how long at least it is known what was there: it protects against repeats."""

_EMPTY_PART = part_to_json(Part(Text("", "")))


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of things: the query that gives the oldest to forget, and what is done to those it gave."""

    name: str
    find: str
    then: tuple[str, ...]


_TEXTS = (
    _Kind("turns_emptied", "turns_to_empty", ("forget_problems_told", "empty_turns")),
    _Kind("questions_emptied", "questions_to_empty", ("empty_selections", "empty_questions")),
    _Kind("deliveries_emptied", "deliveries_to_empty", ("empty_deliveries",)),
    _Kind("messages", "messages_to_forget", ("forget_messages",)),
    _Kind("unread", "unread_to_forget", ("forget_old_unread",)),
)
# What refers to something else goes before it. A verdict goes before its event's sightings: an event that is judged
# anew must have none.
_ROWS = (
    _Kind("questions", "questions_to_forget", ("forget_selections", "forget_questions")),
    _Kind("turns", "turns_to_forget", ("forget_problems", "forget_turns")),
    _Kind("deliveries", "deliveries_to_forget", ("forget_deliveries",)),
    _Kind("verdicts", "verdicts_to_forget", ("forget_verdicts",)),
    _Kind("echoes", "echoes_to_forget", ("forget_echoes",)),
)

_Work = Callable[[Transaction], Awaitable[tuple[int, bool]]]


class Retention:
    """Keeps the journal from growing for ever. What is not settled yet stays, with all that it needs.

    A clock that is ahead forgets nothing early: no time counts that is later than the newest event of a homeserver
    lets it be, which is that event's own time and what has passed since it was first found here.
    """

    def __init__(
        self,
        database: Database,
        keep: timedelta,
        now: Callable[[], int],
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """Takes what it works on.

        Args:
            database: the journal.
            keep: for how long texts are kept.
            now: the time in milliseconds.
            seconds: a clock that nobody sets, from any beginning.
        """
        self._database = database
        self._keep = keep
        self._now = now
        self._seconds = seconds
        self._newest_event = 0
        self._found_at = 0.0

    async def run(self) -> None:
        """Forgets what is due, at once and then every hour, until cancelled.

        Raises:
            JournalDamaged: the journal's file is broken.
        """
        while True:
            try:
                forgotten = await self.forget()
            except JournalDamaged:
                raise
            except JournalError as error:
                log.warning("not_forgotten error=%s; it is tried again in an hour", error)
            else:
                if forgotten:
                    log.info("forgotten %s", " ".join(f"{name}={number}" for name, number in forgotten.items()))
            await asyncio.sleep(EVERY_SECONDS)

    async def forget(self) -> Mapping[str, int]:
        """Forgets what is due now, in small transactions.

        Returns:
            How many things of which kind, without those of which there was none.

        Raises:
            JournalError: the journal can't be written; what was done until then is done.
        """
        now = await self._certain_time()
        texts_before = now - _milliseconds(self._keep)
        rows_before = now - _milliseconds(max(self._keep, KEPT_AS_IDS))
        forgotten = Counter[str]()
        for before, kinds in ((texts_before, _TEXTS), (rows_before, _ROWS)):
            for kind in kinds:
                forgotten[kind.name] = await self._in_small_steps(_Things(kind, before).forget)
        sightings = _Sightings(rows_before)
        forgotten["sightings"] = await self._in_small_steps(sightings.forget)
        forgotten["utterances"] = await self._in_small_steps(_Utterances(sightings.upto).forget)
        if forgotten.total():
            await self._database.empty_log()
        return +forgotten

    async def _certain_time(self) -> int:
        """The time in milliseconds, or an earlier one where no homeserver says that it is so late."""
        async with self._database.reading() as transaction:
            row = await transaction.one("newest_server_time", {"most": MOST_ROWS})
        newest = 0 if row is None else row["server_ts"] or 0
        if newest > self._newest_event:
            self._newest_event, self._found_at = newest, self._seconds()
        passed = self._seconds() - self._found_at
        return min(self._now(), self._newest_event + round(passed * 1000))

    async def _in_small_steps(self, work: _Work) -> int:
        total, more = 0, True
        while more:
            async with self._database.transaction(Step.FORGET) as transaction:
                number, more = await work(transaction)
            total += number
        return total


@dataclass(frozen=True, slots=True)
class _Things:
    """Those of a kind that were settled before a time in milliseconds."""

    kind: _Kind
    before: int

    async def forget(self, transaction: Transaction) -> tuple[int, bool]:
        """Forgets some; how many, and whether there may be more."""
        found = await transaction.all(self.kind.find, {"before": self.before, "most": MOST_ROWS})
        chosen = {"chosen": json.dumps([row["id"] for row in found]), "empty_part": _EMPTY_PART}
        if found:
            for statement in self.kind.then:
                await transaction.run(statement, chosen)
        return len(found), len(found) == MOST_ROWS


@dataclass(slots=True)
class _Sightings:
    """Those from before a time in milliseconds, in their order; `upto` is the last of them.

    The newest of all stays in any case: the numbers of those to come go on from it.
    """

    before: int
    upto: int = 0

    async def forget(self, transaction: Transaction) -> tuple[int, bool]:
        """Forgets some; how many, and whether there may be more."""
        after = self.upto
        page = await transaction.all("sightings_in_order", {"after": after, "most": MOST_ROWS})
        old = [row["seq"] for row in takewhile(lambda row: row["seen_at"] < self.before, page)]
        if not old:
            return 0, False
        self.upto = old[-1]
        number = await transaction.run("forget_sightings", {"after": after, "upto": old[-1]})
        return number, len(old) == MOST_ROWS


@dataclass(frozen=True, slots=True)
class _Utterances:
    """What agents last said in threads where nothing came for so long, by the number of their sightings."""

    upto: int

    async def forget(self, transaction: Transaction) -> tuple[int, bool]:
        """Forgets some; how many, and whether there may be more."""
        number = await transaction.run("forget_utterances", {"upto": self.upto, "most": MOST_ROWS})
        return number, number == MOST_ROWS


def _milliseconds(time: timedelta) -> int:
    return time // timedelta(milliseconds=1)
