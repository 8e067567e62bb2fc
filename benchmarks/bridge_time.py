"""The bridge's own time: from a sync response to the agent's start, and from the agent's reply to the first send.

Run `python benchmarks/bridge_time.py`. The bridge runs in this process, on a real Synapse and a real journal. An agent
is spoken to, asks, is answered and thanks, in a new thread each round. Exits 1 if a target is missed.

What follows a reply is measured for the question: when an answer is replied to, its closing edit is still on its way.
"""

import asyncio
import importlib
import os
import sqlite3
import statistics
import sys
import time
from pathlib import Path
from typing import Final

from stage import ASKING_AGENT, EVENTS_OF_A_QUESTION, EVENTS_OF_AN_ANSWER, Stage, set_stage
from table import Figure, print_table
from watched_bridge import watched_bridge

from mindbridge.config.load import load_config

ROUNDS: Final = 40
WARM_UP_ROUNDS: Final = 3
MOST_MS: Final = 10.0


async def measure(stage: Stage) -> list[Figure]:
    """Plays all rounds."""
    configured = await stage.configure(ASKING_AGENT)
    message_ms, selection_ms, send_ms = [], [], []
    async with watched_bridge(load_config(configured.path, os.environ)) as watch:
        calls = importlib.import_module(configured.module).calls
        room = await stage.person.create_room("bridge time", configured.user_ids)
        for _ in range(WARM_UP_ROUNDS + ROUNDS):
            sent_before = len(watch.sent)
            asked = await stage.person.say(room, "hello")
            await watch.quiet(sent=sent_before + EVENTS_OF_A_QUESTION)
            event_id, called, returned = calls[-1]
            message_ms.append(1000 * (called - watch.synced[event_id]))
            send_ms.append(1000 * (watch.sent[sent_before].began - returned))
            sent_before = len(watch.sent)
            await stage.person.say(room, "2", thread=asked)
            await watch.quiet(sent=sent_before + EVENTS_OF_AN_ANSWER)
            event_id, called, _ = calls[-1]
            selection_ms.append(1000 * (called - watch.synced[event_id]))
    return [
        Figure("message: sync response to the agent's start, median", _median(message_ms), MOST_MS, "ms"),
        Figure("selection: sync response to the agent's start, median", _median(selection_ms), MOST_MS, "ms"),
        Figure("question: the agent's reply to the first send, median", _median(send_ms), MOST_MS, "ms"),
        Figure("for scale: one commit of SQLite on this disk", commit_ms(stage.folder / "scale.sqlite3"), None, "ms"),
    ]


def _median(values: list[float]) -> float:
    return statistics.median(values[WARM_UP_ROUNDS:])


def commit_ms(path: Path) -> float:
    """The median time of a small transaction with the journal's settings; there are two or three on each way."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE numbers (number)")
    times = []
    for number in range(100):
        start = time.monotonic()
        connection.execute("INSERT INTO numbers VALUES (?)", (number,))
        times.append(time.monotonic() - start)
    connection.close()
    return 1000 * statistics.median(times)


async def main() -> int:
    """Prints the table; 1 if a target is missed."""
    async with set_stage() as stage:
        return print_table(f"The bridge's own time, {ROUNDS} rounds", await measure(stage))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
