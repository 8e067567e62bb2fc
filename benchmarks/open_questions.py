"""The memory that open questions take: a bridge with 20,000 of them, beside one without.

Run `python benchmarks/open_questions.py` (on Linux). `mindbridge run` is started in turn on both journals; a
person asks for questions and answers them, in the room of the open ones. Then its memory is read. The open questions
are each in a thread of its own, copies of one that was really asked. Exits 1 if the target is missed.
"""

import asyncio
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Final

from process import running_bridge, settled_mb
from stage import ASKING_AGENT, Configured, Stage, set_stage
from table import Figure, print_table

from mindbridge.demo.timeline import Joined, Message
from mindbridge.ids import EventId, RoomId
from mindbridge.journal.database import FILE_NAME

QUESTIONS: Final = 20_000
CONVERSATIONS: Final = 5
MOST_KB: Final = 1.0
_PATIENCE_SECONDS: Final = 60

_COPY: Final = f"""
CREATE TEMP TABLE copies AS WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted
  WHERE n < {QUESTIONS}) SELECT n FROM counted;
CREATE TEMP TABLE model AS SELECT * FROM questions WHERE state = 'open' LIMIT 1;
INSERT INTO turns (turn_id, agent, kind, room_id, thread_id, source_event_id, sender, sender_name, text, state,
    queued_at, ended_at)
  SELECT 'turn' || n, agent, 'message', room_id, '$root' || n, '$root' || n, requester, 'Alice', 'hello', 'done',
    recorded_at, recorded_at FROM copies, model;
INSERT INTO questions (question_id, agent, room_id, thread_id, turn_id, delivery_id, event_id, requester, text, part,
    state, recorded_at, asked_ts, opened_seq)
  SELECT 'question' || n, agent, room_id, '$root' || n, 'turn' || n, 'message' || n, '$message' || n, requester, text,
    part, 'open', recorded_at, asked_ts, opened_seq FROM copies, model;
INSERT INTO deliveries (delivery_id, agent, room_id, kind, rank, turn_id, question_id, content, state, event_id,
    recorded_at, settled_at)
  SELECT 'message' || n, agent, room_id, 'message', 0, 'turn' || n, 'question' || n, '{{}}', 'sent', '$message' || n,
    recorded_at, recorded_at FROM copies, model;
"""  # noqa: S608 - of a constant alone


async def _says(stage: Stage, room: RoomId, text: str, thread: EventId | None, awaited: str) -> EventId:
    """Says something and waits for the answer that holds `awaited`; gives what was said."""
    said = await stage.person.say(room, text, thread=thread)
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while True:
            seen = await stage.person.sync(room, wait_seconds=30)
            if any(isinstance(event, Message) and awaited in event.text for event in seen):
                return said


async def _answered(stage: Stage, room: RoomId) -> None:
    asked = await _says(stage, room, "hello", None, "approach")
    await _says(stage, room, "2", asked, "You chose")


async def _joined(stage: Stage, room: RoomId, configured: Configured) -> None:
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while True:
            seen = await stage.person.sync(room, wait_seconds=30)
            if any(isinstance(event, Joined) and event.user in configured.user_ids for event in seen):
                return


async def used_mb(stage: Stage, *, with_questions: bool) -> float:
    """The memory of a bridge after some conversations, in MB (RSS)."""
    configured = await stage.configure(ASKING_AGENT)
    room = await stage.person.create_room("open questions", configured.user_ids)
    async with running_bridge(configured.path):
        await _joined(stage, room, configured)
        await _says(stage, room, "hello", None, "approach")
        await _answered(stage, room)  # by now the first question was seen in the room, and stays open
    if with_questions:
        copy_question(configured.path.parent / "journal" / FILE_NAME)
    async with running_bridge(configured.path) as pid:
        for _ in range(CONVERSATIONS):
            await _answered(stage, room)
        return await settled_mb(pid)


def copy_question(journal: Path) -> None:
    """Makes the journal's open question the first of very many."""
    with closing(sqlite3.connect(journal)) as connection:
        connection.executescript(f"BEGIN; {_COPY} COMMIT;")
        (number,) = connection.execute("SELECT COUNT(*) FROM questions WHERE state = 'open'").fetchone()
    if number <= QUESTIONS:
        raise RuntimeError(f"only {number} questions are open in {journal}")


async def main() -> int:
    """Prints the table; 1 if the target is missed."""
    async with set_stage() as stage:
        without, with_them = await used_mb(stage, with_questions=False), await used_mb(stage, with_questions=True)
    return print_table(
        f"{QUESTIONS:,} open questions",
        [
            Figure("each open question", (with_them - without) * 1024 / QUESTIONS, MOST_KB, "KB"),
            Figure("memory with them", with_them, None, "MB"),
            Figure("memory without", without, None, "MB"),
        ],
    )


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
