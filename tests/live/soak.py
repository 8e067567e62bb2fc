"""The soak: people answer at random while the bridge is killed and its network fails; nothing is lost, nothing doubled.

`python -m tests.live.soak [--minutes 10] [--seed 1]`, or `make soak`. It prints a table of what was done and what came
of it, and fails when anything was lost or doubled.
"""

import argparse
import asyncio
import os
import random
import secrets
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mindbridge.demo.synapse import find_synapse_python, throwaway_synapse
from tests.live.bridge import Bridge, Bridges
from tests.live.conversation import is_join_of
from tests.live.person import Person
from tests.live.proxy import (
    NOT_JSON,
    SEND,
    Action,
    Proxy,
    answer,
    delay,
    forget_transactions,
    halve,
    hang,
    limit,
    lose,
    refuse,
    refuse_with,
)
from tests.live.soak_people import People, Talk
from tests.live.soak_verdict import Judge, Verdict
from tests.live.waiting import wait_until

ROOT = Path(__file__).parents[2]
AGENTS = ("ada", "brook", "cleo", "dov")
ROOMS = 20
CALM_SECONDS = 300

AGENT = """
import json
import pathlib

from mindbridge.agents.turn import Turn

HERE = pathlib.Path(__file__).parent
EMOJI = ["🍎", "🍌", "🍒", "🍇", "🍐"]


def reply(turn: Turn) -> str:
    with (HERE / "turns.jsonl").open("a", encoding="utf-8") as file:
        file.write(turn.model_dump_json(include={"turn_id", "kind", "event_id", "thread_id", "agent"}) + "\\n")
    if turn.selection is not None:
        return f"You chose {turn.selection.selected_option.number} of {turn.selection.question_text}"
    kind, *words = turn.text.split()
    if kind != "ask":
        return f"You said: {turn.text}"
    options = [{"emoji": each, "label": f"Fruit {each}"} for each in EMOJI[: int(words[0])]]
    block = json.dumps({"question": f"Which for {words[1]}?", "options": options}, ensure_ascii=False)
    return f"```interactive\\n{block}\\n```"
"""


@dataclass
class Chaos:
    """What goes wrong between bridge and homeserver, and with the bridge itself."""

    proxy: Proxy
    bridge: Bridge
    chance: random.Random
    done: Counter[str] = field(default_factory=Counter)

    async def break_the_network(self) -> None:
        """One fault after the other, for ever."""
        while True:
            await asyncio.sleep(self.chance.uniform(0.1, 0.8))
            name = self.chance.choice([*self._faults(), "server down", "transactions forgotten"])
            if name == "server down":
                self.done[name] += 1
                await self.proxy.stop_listening()
                await asyncio.sleep(self.chance.uniform(0.2, 2))
                await self.proxy.listen()
            elif name == "transactions forgotten":
                rule = self.proxy.rule(forget_transactions(), "PUT", SEND)
                await asyncio.sleep(self.chance.uniform(1, 5))
                self.proxy.remove(rule)
                self.done[name] += rule.done
            else:
                released = asyncio.Event()
                path = self.chance.choice([SEND, SEND, "/sync$", "/messages$", "/relations/"])
                times = self.chance.randint(1, 3)
                rule = self.proxy.rule(self._faults(released)[name], None, path, times=times)
                await asyncio.sleep(self.chance.uniform(0.5, 3))
                released.set()
                self.proxy.remove(rule)
                self.done[name] += rule.done

    def _faults(self, released: asyncio.Event | None = None) -> dict[str, Action]:
        return {
            "429": limit(self.chance.randint(50, 800)),
            "5xx": refuse_with(self.chance.choice([500, 502, 503]), "M_UNKNOWN"),
            "answer lost": lose,
            "connection cut": refuse,
            "half an answer": halve,
            "no JSON": answer(200, NOT_JSON),
            "delay": delay(self.chance.uniform(0.1, 1)),
            "hang": hang(released or asyncio.Event()),
        }

    async def kill(self) -> None:
        """Kills the bridge every few seconds and starts it again, for ever."""
        while True:
            await asyncio.sleep(self.chance.uniform(2, 9))
            await self.bridge.stop(signal.SIGKILL)
            self.done["SIGKILL"] += 1
            await self.bridge.launch()


@asynccontextmanager
async def background(*works: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Runs all of it until the block ends; a fault in one of them is a fault of the block."""
    tasks = [asyncio.create_task(work()) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def soak(minutes: float, seed: int, folder: Path) -> bool:
    """Runs it; whether nothing was lost or doubled."""
    chance = random.Random(seed)  # noqa: S311 - reproducible, protects nothing
    async with AsyncExitStack() as stack:
        homeserver = await stack.enter_async_context(
            throwaway_synapse(find_synapse_python(os.environ, ROOT), folder / "synapse")
        )
        proxy = await stack.enter_async_context(Proxy(homeserver.url))
        bridges = Bridges(homeserver, folder)
        stack.push_async_callback(bridges.end_quietly)
        settings = {name: {"respond": "always"} for name in AGENTS}
        bridge = await bridges(*AGENTS, agent_source=AGENT, settings=settings, homeserver=proxy.url)
        people = []
        for name in ("alice", "bob"):
            account = await homeserver.register(name, secrets.token_hex(8), display_name=name.title())
            person = Person.with_token(homeserver.url, account.user_id, account.access_token)
            people.append(await stack.enter_async_context(person))
        alice, bob = people
        await bridge.start()
        talks = []
        for number in range(ROOMS):
            agent = bridge.user_id(AGENTS[number % len(AGENTS)])
            room = await alice.create_room(invite=[agent, bob.user_id])
            await bob.join(room)
            await alice.wait_for(room, is_join_of(agent))
            talks.append(Talk(room, agent))
        crowd = People(alice, bob, talks, random.Random(chance.random()))  # noqa: S311 - likewise
        chaos = Chaos(proxy, bridge, chance)
        print(f"soak: {minutes:g} minutes, {len(AGENTS)} agents, {ROOMS} rooms, seed {seed}", file=sys.stderr)
        async with background(crowd.talk, chaos.kill), background(chaos.break_the_network):
            await asyncio.sleep(minutes * 60)
        await proxy.listen()
        if not bridge.is_running:
            await bridge.launch()
        began = time.monotonic()
        settled = await is_calm(bridge)
        calm = time.monotonic() - began
        verdict = Verdict()
        judge = Judge(alice, bridge, bridge.turns(), verdict)
        for talk in talks:
            await judge.room(talk)
        if not settled:
            verdict.lost.append(f"after {CALM_SECONDS} s not settled: {bridge.journal.status()}")
        report(minutes, calm, crowd.done, chaos.done, verdict)
        if verdict.lost or verdict.doubled:
            (folder / "bridge.log").write_text("\n".join(bridge.log), "utf-8")
            kept = Path(tempfile.gettempdir()) / "mindbridge-soak"
            kept.mkdir(exist_ok=True)
            (kept / "bridge.log").write_text("\n".join(bridge.log), "utf-8")
            for name in ("journal.sqlite3", "journal.sqlite3-wal"):
                source = bridge.folder / "journal" / name
                if source.exists():
                    (kept / name).write_bytes(source.read_bytes())
            print(f"the log and the journal are in {kept}", file=sys.stderr)
        return not (verdict.lost or verdict.doubled)


async def is_calm(bridge: Bridge) -> bool:
    """Waits until nothing is queued and nothing unsettled; whether that came about."""

    def calm() -> bool:
        agents = bridge.journal.status()["agents"]
        return all(
            "queued" not in agent["turns"] and not {"pending", "attempted"} & set(agent["deliveries"])
            for agent in agents
        )

    with suppress(TimeoutError):
        for _ in range(2):  # what comes in last may start something again
            await wait_until(calm, seconds=CALM_SECONDS)
            await asyncio.sleep(3)
        return calm()
    return False


def report(minutes: float, calm: float, said: Counter[str], faults: Counter[str], verdict: Verdict) -> None:
    rows: list[tuple[str, object]] = [("minutes", f"{minutes:g}"), *sorted(faults.items()), *sorted(said.items())]
    rows += sorted(verdict.counted.items())
    rows += [("seconds until all was settled", round(calm))]
    rows += [("LOST", len(verdict.lost)), ("DOUBLED", len(verdict.doubled))]
    print("| what | number |\n|---|---|")
    for what, number in rows:
        print(f"| {what} | {number} |")
    for case in (*verdict.lost[:10], *verdict.doubled[:10]):
        print(case)


def main() -> int:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.live.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mindbridge-soak-") as folder:
        (Path(folder) / "synapse").mkdir()
        return 0 if asyncio.run(soak(options.minutes, options.seed, Path(folder))) else 1


if __name__ == "__main__":
    sys.exit(main())
