"""Questions at Synapse's default rate limits, beside a bot that sends a message and its five buttons in order.

Run `python benchmarks/default_limits.py`. A person says something, gets three questions one after the other, and types
a number in the thread as soon as each is visible. Measured is the time from what the person typed until what comes of
it is visible: the next question, at last a sentence. The other bot sleeps when the server says so, as bots do, and
reads on when it has sent all. Only the person's limits are lifted. Of the bridge the slowest of several agents counts,
each with a fresh account. Exits 1 if a target is missed.
"""

import asyncio
import os
import secrets
import sys
import time
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import aiohttp
from stage import Stage, set_stage
from table import Figure, print_table
from watched_bridge import watched_bridge

from mindbridge.config.load import load_config
from mindbridge.demo.homeserver import Registered
from mindbridge.demo.person import Person
from mindbridge.demo.timeline import Joined, Message
from mindbridge.ids import EventId, RoomId, UserId

QUESTIONS: Final = 3
BRIDGE_ROUNDS: Final = 3
MOST_SECONDS: Final = 0.5
LAST_WORDS: Final = "Thanks."
BUTTONS: Final = ("🚀", "🔍", "🛑", "💤", "🎲")
_PATIENCE_SECONDS: Final = 120

AGENT = f'''
"""Asks "Question 1", at its answer "Question 2" and so on."""
import json

QUESTIONS, LAST_WORDS, BUTTONS = {QUESTIONS!r}, {LAST_WORDS!r}, {BUTTONS!r}

def reply(turn):
    number = 1 if turn.selection is None else int(turn.selection.question_text.split()[-1]) + 1
    if number > QUESTIONS:
        return LAST_WORDS
    options = [{{"emoji": button, "label": f"Option {{button}}"}} for button in BUTTONS]
    block = json.dumps({{"question": f"Question {{number}}", "options": options}})
    return "```interactive\\n" + block + "\\n```"
'''


class NaiveBot:
    """Asks the same questions in the simplest way."""

    def __init__(self, url: str, account: Registered) -> None:
        self._person = Person(url, account)
        self._user_id = UserId(account.user_id)
        self._http = aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {account.access_token}"})

    async def run(self, room: RoomId) -> None:
        """Joins the room, then answers what is said there until it has no question left."""
        await self._ask("POST", f"/_matrix/client/v3/join/{quote(room)}", {})
        for number in range(1, QUESTIONS + 2):
            thread = await self._next_message(room)
            relation = {"rel_type": "m.thread", "event_id": thread}
            body = f"Question {number}" if number <= QUESTIONS else LAST_WORDS
            message = {"msgtype": "m.text", "body": body, "m.relates_to": relation}
            event_id = await self._send(room, "m.room.message", message)
            for key in BUTTONS if number <= QUESTIONS else ():
                annotation = {"rel_type": "m.annotation", "event_id": event_id, "key": key}
                await self._send(room, "m.reaction", {"m.relates_to": annotation})

    async def close(self) -> None:
        """Closes its connections."""
        await self._http.close()
        await self._person.__aexit__()

    async def _next_message(self, room: RoomId) -> EventId:
        """Waits for the next message of anybody else; the root of its thread."""
        while True:
            for event in await self._person.sync(room, wait_seconds=30):
                if isinstance(event, Message) and event.sender != self._user_id:
                    return event.thread_id or event.event_id

    async def _send(self, room: RoomId, event_type: str, content: dict[str, Any]) -> str:
        path = f"/_matrix/client/v3/rooms/{quote(room)}/send/{event_type}/{secrets.token_hex(8)}"
        return str((await self._ask("PUT", path, content))["event_id"])

    async def _ask(self, method: str, path: str, content: dict[str, Any]) -> dict[str, Any]:
        while True:
            async with self._http.request(method, path, json=content) as response:
                answer: dict[str, Any] = await response.json()
                if response.status != HTTPStatus.TOO_MANY_REQUESTS:
                    response.raise_for_status()
                    return answer
            await asyncio.sleep(answer["retry_after_ms"] / 1000)


async def play(person: Person, room: RoomId, bot: UserId) -> list[float]:
    """Answers all questions at once; the seconds from each thing that the person types to what comes of it."""
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while not any(isinstance(event, Joined) and event.user == bot for event in await _news(person, room)):
            pass
        times = []
        typed_at = time.monotonic()
        thread = await person.say(room, "hello")
        for expected in [*(f"Question {number}" for number in range(1, QUESTIONS + 1)), LAST_WORDS]:
            while not any(
                isinstance(event, Message) and event.sender == bot and event.text.startswith(expected)
                for event in await _news(person, room)
            ):
                pass
            times.append(time.monotonic() - typed_at)
            if expected != LAST_WORDS:
                typed_at = time.monotonic()
                await person.say(room, "2", thread=thread)
    return times


async def _news(person: Person, room: RoomId) -> list[Any]:
    return await person.sync(room, wait_seconds=30)


async def bridge_times(stage: Stage) -> list[float]:
    """The bridge's times, of each the slowest."""
    configured = await stage.configure(AGENT, agents=BRIDGE_ROUNDS)
    rounds = []
    async with watched_bridge(load_config(configured.path, os.environ)):
        for user_id in configured.user_ids:
            room = await stage.person.create_room("bridge", [user_id])
            rounds.append(await play(stage.person, room, user_id))
    return [max(times) for times in zip(*rounds, strict=True)]


async def naive_times(stage: Stage) -> list[float]:
    """The times of the other bot."""
    account = await stage.homeserver.register("naive", secrets.token_hex(8))
    bot = NaiveBot(stage.homeserver.url, account)
    room = await stage.person.create_room("naive", [UserId(account.user_id)])
    running = asyncio.create_task(bot.run(room))
    try:
        times = await play(stage.person, room, UserId(account.user_id))
        await running
    finally:
        running.cancel()
        await bot.close()
    return times


async def main() -> int:
    """Prints the table; 1 if a target is missed."""
    async with set_stage(rate_limits=True) as stage:
        bridge, naive = await bridge_times(stage), await naive_times(stage)
    steps = ["first question", *(f"question {number}" for number in range(2, QUESTIONS + 1)), "answer to the last"]
    figures = []
    for step, ours, theirs in zip(steps, bridge, naive, strict=True):
        figures.append(Figure(f"{step}, visible after, the bridge", ours, MOST_SECONDS, "s"))
        figures.append(Figure(f"{step}, visible after, the naive bot", theirs, None, "s"))
    return print_table("At Synapse's default limits", figures)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
