"""The soak: people answer at random while the bridge is killed and its network fails; nothing is lost, nothing doubled.

`python -m tests.live.soak [--minutes 10] [--seed 1]`, or `make soak`. It prints a table of what was done and what came
of it, and fails when anything was lost or doubled.
"""

import argparse
import asyncio
import json
import os
import random
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

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
from tests.live.soak_people import IsOn, People, Talk
from tests.live.soak_verdict import Case, Judge, Verdict
from tests.live.waiting import wait_until

ROOT = Path(__file__).parents[2]
AGENTS = ("ada", "brook", "cleo", "dov")
PEOPLE = ("alice", "bob", "carol")
ROOMS = 20
CALM_SECONDS = 300
SHOWN = 5

AGENT = """
import json
import pathlib

from mindbridge.agents.turn import Turn

HERE = pathlib.Path(__file__).parent
NOTED = {"agent", "event_id", "kind", "room_id", "thread_id", "turn_id"}
EMOJI = ["🍎", "🍌", "🍒", "🍇", "🍐"]


def reply(turn: Turn) -> str:
    with (HERE / "turns.jsonl").open("a", encoding="utf-8") as file:
        file.write(turn.model_dump_json(include=NOTED) + "\\n")
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
    """What goes wrong between bridge and homeserver, and with the bridge itself. `ended`: how it ended by itself."""

    proxy: Proxy
    bridge: Bridge
    seed: int
    done: Counter[str] = field(default_factory=Counter)
    ended: list[int] = field(default_factory=list)

    async def break_the_network(self, is_on: IsOn) -> None:
        """One fault after the other; each is taken away again."""
        chance = random.Random(f"{self.seed} network")  # noqa: S311 - reproducible, protects nothing
        while is_on():
            await asyncio.sleep(chance.uniform(0.1, 0.8))
            released = asyncio.Event()
            faults = _faults(chance, released)
            name = chance.choice([*faults, "server down", "transactions forgotten"])
            if name == "server down":
                self.done[name] += 1
                await self.proxy.stop_listening()
                await asyncio.sleep(chance.uniform(0.2, 2))
                await self.proxy.listen()
                continue
            if name == "transactions forgotten":
                rule = self.proxy.rule(forget_transactions(), "PUT", SEND)
                await asyncio.sleep(chance.uniform(1, 5))
            else:
                path = chance.choice([SEND, SEND, "/sync$", "/messages$", "/relations/"])
                rule = self.proxy.rule(faults[name], None, path, times=chance.randint(1, 3))
                await asyncio.sleep(chance.uniform(0.5, 3))
            released.set()
            self.proxy.remove(rule)
            self.done[name] += rule.done

    async def kill(self, is_on: IsOn) -> None:
        """Kills the bridge every few seconds and starts it again, at once or a while later."""
        chance = random.Random(f"{self.seed} kills")  # noqa: S311 - reproducible, protects nothing
        while is_on():
            await asyncio.sleep(chance.uniform(2, 9))
            status = await self.bridge.stop(signal.SIGKILL)
            if status == -signal.SIGKILL:
                self.done["SIGKILL"] += 1
            else:
                self.ended.append(status)
            await asyncio.sleep(chance.choice([0, 0, 1, 3]))
            await self.bridge.launch()


def _faults(chance: random.Random, released: asyncio.Event) -> dict[str, Action]:
    return {
        "429": limit(chance.randint(50, 800)),
        "5xx": refuse_with(chance.choice([500, 502, 503]), "M_UNKNOWN"),
        "answer lost": lose,
        "connection cut": refuse,
        "half an answer": halve,
        "no JSON": answer(200, NOT_JSON),
        "delay": delay(chance.uniform(0.1, 1)),
        "hang": hang(released),
    }


async def soak(minutes: float, seed: int, folder: Path) -> bool:
    """Runs it; whether nothing was lost or doubled."""
    async with AsyncExitStack() as stack:
        synapse = throwaway_synapse(find_synapse_python(os.environ, ROOT), folder / "synapse")
        homeserver = await stack.enter_async_context(synapse)
        proxy = await stack.enter_async_context(Proxy(homeserver.url))
        bridges = Bridges(homeserver, folder)
        stack.push_async_callback(bridges.end_quietly)
        settings = {name: {"respond": "always"} for name in AGENTS}
        bridge = await bridges(*AGENTS, agent_source=AGENT, settings=settings, homeserver=proxy.url)
        crowd = []
        for name in PEOPLE:
            account = await homeserver.register(name, secrets.token_hex(8), display_name=name.title())
            person = Person.with_token(homeserver.url, account.user_id, account.access_token)
            crowd.append(await stack.enter_async_context(person))
        await bridge.start()
        people = People(crowd, await rooms_of(crowd, bridge), seed)
        chaos = Chaos(proxy, bridge, seed)
        print(f"soak: {minutes:g} minutes, {len(AGENTS)} agents, {ROOMS} rooms, seed {seed}", file=sys.stderr)
        looking = asyncio.create_task(people.look())
        end = time.monotonic() + minutes * 60
        async with asyncio.TaskGroup() as tasks:
            for work in (people.talk, chaos.kill, chaos.break_the_network):
                tasks.create_task(work(lambda: time.monotonic() < end))
        began = time.monotonic()
        settled = await is_calm(bridge)
        calm = time.monotonic() - began
        await stop_looking(looking)
        await crowd[0].catch_up()
        verdict = Verdict()
        judge = Judge(crowd[0], bridge.turns(), verdict)
        for talk in people.talks:
            await judge.judge(talk)
        if not settled:
            verdict.lost.append(Case(f"not settled after {CALM_SECONDS} s: {bridge.journal.status()}", ""))
        verdict.lost += [Case(f"the bridge ended by itself with {status}", "") for status in chaos.ended]
        verdict.lost += uncertain_without_reason(bridge, verdict)
        report(minutes, calm, people.done, chaos.done, verdict)
        is_good = not (verdict.lost or verdict.doubled)
        if not is_good:
            await bridge.stop()
            explain(bridge, verdict)
        return is_good


async def rooms_of(crowd: list[Person], bridge: Bridge) -> list[Talk]:
    """Rooms with all of the people and one agent each, who has joined."""
    talks = []
    for number in range(ROOMS):
        agent = bridge.user_id(AGENTS[number % len(AGENTS)])
        room = await crowd[0].create_room(invite=[agent, *(person.user_id for person in crowd[1:])])
        for person in crowd[1:]:
            await person.join(room)
        await crowd[0].wait_for(room, is_join_of(agent))
        talks.append(Talk(room, agent))
    return talks


async def stop_looking(looking: asyncio.Task[None]) -> None:
    """Ends it; what went wrong in it goes wrong here."""
    looking.cancel()
    with suppress(asyncio.CancelledError):
        await looking


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


def uncertain_without_reason(bridge: Bridge, verdict: Verdict) -> list[Case]:
    """Counts what is uncertain and what was refused; gives what is so without a reason."""
    status = bridge.journal.status()
    without = []
    for state in ("uncertain", "refused"):
        verdict.counted[f"deliveries: {state}"] = sum(each["deliveries"].get(state, 0) for each in status["agents"])
        without += [Case(f"{state} without a reason: {each}", "") for each in status[state] if not each["error"]]
    return without


def report(minutes: float, calm: float, said: Counter[str], faults: Counter[str], verdict: Verdict) -> None:
    """Prints the table."""
    rows: list[tuple[str, object]] = [("minutes", f"{minutes:g}"), *sorted(faults.items()), *sorted(said.items())]
    rows += sorted(verdict.counted.items())
    rows += [("seconds until all was settled", round(calm))]
    rows += [("LOST", len(verdict.lost)), ("DOUBLED", len(verdict.doubled))]
    print("| what | number |\n|---|---|")
    for what, number in rows:
        print(f"| {what} | {number} |")


def explain(bridge: Bridge, verdict: Verdict) -> None:
    """Prints the first cases with what the journal knows of them; keeps the journal and the log."""
    for title, cases in (("LOST", verdict.lost), ("DOUBLED", verdict.doubled)):
        for case in cases[:SHOWN]:
            print(f"\n{title} {case.what} ({case.event_id})")
            if case.event_id:
                for told in (bridge.journal.why(case.event_id), bridge.journal.show(case.event_id)):
                    print(json.dumps(told, ensure_ascii=False, indent=1))
    kept = Path(tempfile.mkdtemp(prefix="mindbridge-soak-kept-"))
    (kept / "bridge.log").write_text("\n".join(bridge.log), "utf-8")
    shutil.copytree(bridge.folder / "journal", kept / "journal")
    print(f"the log and the journal are in {kept}", file=sys.stderr)


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
