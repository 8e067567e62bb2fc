"""Answers and start-up with 1,000,000 closed questions in the journal, beside a journal that is all but empty.

Run `python benchmarks/long_journal.py`. The long journal holds the closed questions with their turns, answers,
verdicts, messages, sightings and deliveries: half of them in 1,000 rooms, half in one room, and half of these in one
thread. There, in both journals in turn, questions are asked and answered, by a click and by a number typed in the
thread. Measured is the time from the sync response with the answer until its turn can start and the first delivery is
claimed; then, how long all takes that a start asks the journal. It needs 5 GB of the disk.

Exits 1 if a target is missed.
"""

import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from records import AGENT, PERSON, ROOM, USER, Asked, ask_questions, roster
from table import Figure, print_table

from mindbridge.bridge.admission import decide, interest_of
from mindbridge.bridge.closing import closing_as_removed
from mindbridge.bridge.pace import now_ms
from mindbridge.bridge.replies import outcome_of
from mindbridge.events import JoinedRoom, Message, Reaction, RoomEvent, SyncBatch
from mindbridge.ids import EventId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.closings import close_questions_of_removed
from mindbridge.journal.database import FILE_NAME, Database
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Acknowledged, Membership
from mindbridge.journal.retention import Retention
from mindbridge.journal.turns import TurnStore

CLOSED: Final = 1_000_000
ANSWERS: Final = 60
WARM_UP: Final = 10
STARTS: Final = 9
MOST_RATIO: Final = 1.5
KEEP: Final = timedelta(days=30)
THREAD: Final = EventId("$thread")

# All is about 20 days old, so that nothing is due to be forgotten: that would be work, not looking. Ids ascend, since
# SQLite would take minutes for others.
_FILL: Final = f"""
CREATE TEMP TABLE old (n INTEGER PRIMARY KEY, id TEXT, room TEXT, thread TEXT, at INTEGER);
WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < {CLOSED})
INSERT INTO old SELECT n, printf('%08x', n),
  CASE WHEN n % 2 = 0 THEN '{ROOM}' ELSE '!room' || (n % 1000) END,
  CASE WHEN n % 4 = 0 THEN '{THREAD}' ELSE printf('$root%08x', n) END,
  :now - 20 * 86400000 + n FROM counted;
CREATE TEMP TABLE model AS SELECT part, text, (SELECT content FROM deliveries WHERE kind = 'message') AS content
  FROM questions;

INSERT INTO sightings (seq, agent, event_id, server_ts, judged, seen_at)
  SELECT 1000 + 3 * n + k, '{AGENT}', '$' || kind || id, at, 1, at
  FROM old, (SELECT 0 AS k, 'said' AS kind UNION SELECT 1, 'message' UNION SELECT 2, 'answer');
INSERT INTO turns (turn_id, agent, kind, room_id, thread_id, source_event_id, sender, sender_name, text, state, reply,
    queued_at, ended_at)
  SELECT kind || id, '{AGENT}', kind, room, thread, '$' || event || id, '{PERSON}', 'Alice', 'ask me', 'done', 'Yes.',
    at, at
  FROM old, (SELECT 'message' AS kind, 'said' AS event UNION SELECT 'selection', 'answer');
INSERT INTO questions (question_id, agent, room_id, thread_id, turn_id, delivery_id, event_id, requester, text, part,
    state, recorded_at, asked_ts, opened_seq, closed_seq, closed_at)
  SELECT 'q' || id, '{AGENT}', room, thread, 'message' || id, 'message' || id, '$message' || id, '{PERSON}', text, part,
    'answered', at, at, 1001 + 3 * n, 1002 + 3 * n, at
  FROM old, model;
INSERT INTO selections (question_id, source_event_id, turn_id, answered_by, answered_by_name, number, key, answered_ts)
  SELECT 'q' || id, '$answer' || id, 'selection' || id, '{PERSON}', 'Alice', 1, '1', at FROM old;
INSERT INTO verdicts (event_id, question_id, sender, verdict, reason, decided_at)
  SELECT '$answer' || id, 'q' || id, '{PERSON}', 'selected', 'It was the first answer to the open question.', at
  FROM old;
INSERT INTO messages (room_id, thread_id, event_id, sender, text, said_at)
  SELECT room, thread, '$' || event || id, '{PERSON}', 'ask me', at
  FROM old, (SELECT 'said' AS event UNION SELECT 'answer');
INSERT INTO deliveries (delivery_id, agent, room_id, kind, rank, turn_id, question_id, target_id, content, state,
    event_id, recorded_at, settled_at)
  SELECT kind || id, '{AGENT}', room, kind, rank, CASE WHEN rank < 2 THEN 'message' || id END, 'q' || id,
    CASE WHEN rank > 0 THEN 'message' || id END,
    CASE WHEN rank = 0 THEN content ELSE '{{}}' END, 'sent', '$' || kind || id, at, at
  FROM old, model, (SELECT 'message' AS kind, 0 AS rank UNION SELECT 'button', 1 UNION SELECT 'edit', 2);
INSERT INTO utterances (agent, room_id, thread_id, event_id, turn_id, seq)
  SELECT '{AGENT}', room, thread, '$message' || id, 'message' || id, 1001 + 3 * n FROM old WHERE true
  ON CONFLICT DO UPDATE SET event_id = excluded.event_id, turn_id = excluded.turn_id, seq = excluded.seq;
"""  # noqa: S608 - of constants alone


def fill(home: Path) -> None:
    """Writes the closed questions into a journal in which one question was asked."""
    with closing(sqlite3.connect(home / FILE_NAME, isolation_level=None)) as connection:
        for pragma in ("journal_mode = MEMORY", "synchronous = OFF", "cache_size = -4000000", "temp_store = MEMORY"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN")
        for statement in filter(str.strip, _FILL.split(";")):
            connection.execute(statement, {"now": now_ms()} if ":now" in statement else {})
        connection.execute("COMMIT")


async def start(home: Path) -> Database:
    """All that a start asks the journal, for the first sync, turns and deliveries, and for what is to be forgotten."""
    database = await Database.open(home)
    await close_questions_of_removed(database, {AGENT}, closing_as_removed, now_ms())
    store, turns, outbox = AdmissionStore(database), TurnStore(database), Outbox(database)
    await store.record_account(AGENT, USER, now_ms())
    await turns.requeue_parked(AGENT)
    await turns.runnable(AGENT)
    await outbox.limits(AGENT)
    await outbox.sent_since(AGENT, now_ms() - 300_000)
    await outbox.claim_next(AGENT, now_ms())
    await store.memberships(AGENT, "accepted")
    await store.memberships(AGENT, "refused")
    await store.to_compare(AGENT)
    forgotten = await Retention(database, KEEP, now_ms).forget()
    if forgotten:
        raise RuntimeError(f"there was something to forget: {forgotten}")
    return database


class Answering:
    """Asks and answers questions in one journal."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._store = AdmissionStore(database)
        self._turns = TurnStore(database)
        self._outbox = Outbox(database)
        self._roster = roster()

    async def seconds(self, number: int, *, typed: bool) -> float:
        """Asks a question, and answers it: the time from the sync response to the claim of the first delivery."""
        (asked,) = await ask_questions(self._database, f"new-{number}", 1, thread=THREAD)
        room = JoinedRoom(ROOM, frozenset({PERSON, USER}), limited=False, events=(_answer(asked, number, typed=typed),))
        batch = SyncBatch(next_batch=f"s{number}", first=False, joined=(room,), invites=(), left=())
        deciding = partial(decide, AGENT, batch, self._roster)
        began = time.perf_counter()
        decisions = await self._store.admit(AGENT, interest_of(batch), batch.next_batch, deciding, now_ms())
        await self._turns.runnable(AGENT)
        claimed = await self._outbox.claim_next(AGENT, now_ms())
        seconds = time.perf_counter() - began
        if len(decisions.selections) != 1 or claimed is None or claimed.kind != "edit":
            raise RuntimeError(f"the answer was not taken: {decisions.verdicts}")
        await self._settle()
        return seconds

    async def _settle(self) -> None:
        """Ends what the answer caused, so that the next finds nothing left to do."""
        for turn, _ in await self._turns.runnable(AGENT):
            await self._turns.end(turn, USER, outcome_of(turn, "Thanks.", 5), now_ms())
        sent: Acknowledged | None = None
        while (delivery := await self._outbox.claim_next(AGENT, now_ms(), sent)) is not None:
            sent = Acknowledged(delivery_id=delivery.delivery_id, event_id=EventId(f"$of-{delivery.delivery_id}"))


def _answer(asked: Asked, number: int, *, typed: bool) -> RoomEvent:
    event_id = EventId(f"$new-answer-{number}")
    if typed:
        return Message(
            event_id=event_id, sender=PERSON, server_ts=now_ms(), sender_name="Alice", text="1", thread_id=asked.thread
        )
    return Reaction(
        event_id=event_id, sender=PERSON, server_ts=now_ms(), sender_name="Alice", target=asked.event_id, key="🚀"
    )


async def _answers(homes: dict[str, Path]) -> list[Figure]:
    databases = {name: await start(home) for name, home in homes.items()}
    answering = {name: Answering(database) for name, database in databases.items()}
    taken: dict[tuple[str, bool], list[float]] = {(name, typed): [] for name in homes for typed in (False, True)}
    for number in range(2 * ANSWERS):
        typed = number % 2 == 1
        for name, each in answering.items():
            taken[name, typed].append(await each.seconds(number, typed=typed))
    for database in databases.values():
        await database.close()
    figures = []
    for typed, what in ((False, "a click"), (True, "a number typed in the thread")):
        empty, long = (1000 * statistics.median(taken[name, typed][WARM_UP:]) for name in ("empty", "long"))
        figures.append(Figure(f"{what}, long beside empty", long / empty, MOST_RATIO))
        figures.append(Figure(f"{what}, long journal", long, None, "ms"))
    return figures


async def _starts(homes: dict[str, Path]) -> list[Figure]:
    started: dict[str, list[float]] = {name: [] for name in homes}
    for _ in range(STARTS):
        for name, home in homes.items():
            began = time.perf_counter()
            database = await start(home)
            started[name].append(time.perf_counter() - began)
            await database.close()
    empty, long = (1000 * statistics.median(started[name]) for name in ("empty", "long"))
    return [
        Figure("a start, long beside empty", long / empty, MOST_RATIO),
        Figure("a start, long journal", long, None, "ms"),
    ]


async def _make(home: Path) -> None:
    """Makes a journal in which one question was asked."""
    database = await Database.open(home)
    store = AdmissionStore(database)
    await store.record_account(AGENT, USER, now_ms())
    await store.record_membership(AGENT, Membership(room_id=ROOM, state="joined", invited_ts=None))
    await ask_questions(database, "model", 1)
    await database.close()


async def measure(folder: Path) -> list[Figure]:
    """Plays on both journals."""
    homes = {name: folder / name for name in ("empty", "long")}
    filling = 0.0
    for name, home in homes.items():
        await _make(home)
        if name == "long":
            began = time.perf_counter()
            fill(home)
            filling = time.perf_counter() - began
    figures = await _answers(homes) + await _starts(homes)
    size = (homes["long"] / FILE_NAME).stat().st_size / 1e6
    return [
        *figures,
        Figure("size of the long journal", size, None, "MB"),
        Figure("filling it, for scale", filling, None, "s"),
    ]


def main() -> int:
    """Prints the table; 1 if a target is missed."""
    with tempfile.TemporaryDirectory(prefix="mindbridge-benchmark-") as name:
        return print_table(f"{CLOSED:,} closed questions", asyncio.run(measure(Path(name))))


if __name__ == "__main__":
    sys.exit(main())
