"""What a hostile reply of one agent costs the others: a turn of another agent while it is read and rendered.

Run `python benchmarks/hostile_reply.py`. Two agents run in one bridge, in this process, each in a room of its own. One
gives 256 KB of the worst reply that `rendering.py` knows; once it has, the other is spoken to. Measured is the other's
way from the sync response to its first send, beside the same with nothing else going on. Exits 1 if a target is missed.
"""

import asyncio
import importlib
import os
import statistics
import sys
from typing import Final

from rendering import HOSTILE, hostile_text, read_and_render, seconds
from stage import Stage, set_stage, until
from table import Figure, print_table
from watched_bridge import Watch, watched_bridge

from mindbridge.config.load import load_config
from mindbridge.ids import RoomId

ROUNDS: Final = 20
WARM_UP_ROUNDS: Final = 2
MOST_ADDED_MS: Final = 100.0

AGENTS = '''
"""agent1 is hostile, agent2 is not; notes when they were done."""
import pathlib
import time

HOSTILE = pathlib.Path(__file__).with_name("hostile.txt").read_text("utf-8")
done = []

def reply(turn):
    text = HOSTILE if turn.agent == "agent1" else "Hello!"
    done.append((turn.event_id, time.monotonic()))
    return text
'''


async def measure(stage: Stage) -> list[Figure]:
    """Plays all rounds."""
    worst = max(HOSTILE, key=lambda name: seconds(read_and_render, hostile_text(HOSTILE[name])))
    configured = await stage.configure(AGENTS, agents=2)
    (configured.path.parent / "hostile.txt").write_text(hostile_text(HOSTILE[worst]), "utf-8")
    alone, meanwhile, rendering = [], [], []
    async with watched_bridge(load_config(configured.path, os.environ)) as watch:
        done = importlib.import_module(configured.module).done
        hostile_room, room = [await stage.person.create_room("a room", [user]) for user in configured.user_ids]
        for _ in range(WARM_UP_ROUNDS + ROUNDS):
            alone.append(await _way(stage, watch, room))
            await watch.quiet(sent=len(watch.sent))
            sent_before = len(watch.sent)
            replied = await _hostile_reply(stage, hostile_room, done)
            meanwhile.append(await _way(stage, watch, room))
            await watch.quiet(sent=sent_before + 2)
            first = next(sent for sent in watch.sent[sent_before:] if sent.room_id == hostile_room)
            rendering.append(1000 * (first.began - replied))
    times = (alone, meanwhile, rendering)
    alone_ms, meanwhile_ms, rendering_ms = (statistics.median(each[WARM_UP_ROUNDS:]) for each in times)
    return [
        Figure(f"256 KB of {worst}, from reply to first send", rendering_ms, None, "ms"),
        Figure("another agent's turn, alone", alone_ms, None, "ms"),
        Figure("another agent's turn, meanwhile", meanwhile_ms, None, "ms"),
        Figure("added", meanwhile_ms - alone_ms, MOST_ADDED_MS, "ms"),
    ]


async def _hostile_reply(stage: Stage, room: RoomId, done: list[tuple[str, float]]) -> float:
    """Makes the hostile agent reply; when it did."""
    before = len(done)
    await stage.person.say(room, "hello")
    await until(lambda: len(done) > before, poll_seconds=0.001)
    return done[before][1]


async def _way(stage: Stage, watch: Watch, room: RoomId) -> float:
    """Milliseconds from the sync response with a new message to the first send of the reply to it."""
    said = await stage.person.say(room, "hello")

    def replies() -> list[float]:
        return [sent.began for sent in watch.sent if sent.content.get("m.relates_to", {}).get("event_id") == said]

    await until(lambda: bool(replies()), poll_seconds=0.001)
    return 1000 * (replies()[0] - watch.synced[said])


async def main() -> int:
    """Prints the table; 1 if a target is missed."""
    async with set_stage() as stage:
        return print_table(f"Beside a hostile reply, {ROUNDS} rounds", await measure(stage))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
