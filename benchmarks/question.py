"""A question with five buttons, from the agent's reply to the last acknowledgement, beside six bare sends with nio.

Run `python benchmarks/question.py`. Both go to the same Synapse, without rate limits, in turn: the bridge posts a
question; then a client that does nothing else sends the same six contents, one after the other, to a room of its own.
Exits 1 if the target is missed.
"""

import asyncio
import importlib
import os
import secrets
import statistics
import sys
import time
from typing import Any, Final

from nio import RoomSendResponse
from nio.client.async_client import AsyncClient
from stage import ASKING_AGENT, EVENTS_OF_A_QUESTION, Stage, set_stage
from table import Figure, print_table
from watched_bridge import Sent, watched_bridge

from mindbridge.config.load import load_config
from mindbridge.ids import UserId

ROUNDS: Final = 30
WARM_UP_ROUNDS: Final = 3
MOST_RATIO: Final = 1.15
PAUSE_SECONDS: Final = 0.1  # as long as the agent takes


class BareClient:
    """A client that joins one room and then only sends."""

    def __init__(self, client: AsyncClient, room_id: str) -> None:
        self._client = client
        self._room_id = room_id

    async def seconds(self, events: list[Sent], root: str) -> float:
        """Sends a question's events once more, into the thread of `root`; the time that it takes."""
        question: str | None = None
        start = time.monotonic()
        for event in events:
            relation = event.content["m.relates_to"]
            if question is None:
                relation = relation | {"event_id": root, "m.in_reply_to": {"event_id": root}}
            else:
                relation = relation | {"event_id": question}
            sent = await self._send(event.event_type, event.content | {"m.relates_to": relation})
            question = question or sent
        return time.monotonic() - start

    async def _send(self, event_type: str, content: dict[str, Any]) -> str:
        answer = await self._client.room_send(self._room_id, event_type, content, tx_id=secrets.token_hex(8))
        if isinstance(answer, RoomSendResponse):
            return answer.event_id
        raise RuntimeError(f"{event_type}: {answer}")


async def measure(stage: Stage) -> list[Figure]:
    """Plays all rounds."""
    configured = await stage.configure(ASKING_AGENT)
    account = await stage.homeserver.register("bare", secrets.token_hex(8))
    client = AsyncClient(stage.homeserver.url, account.user_id)
    client.restore_login(account.user_id, account.device_id, account.access_token)
    bare_room = await stage.person.create_room("bare", [UserId(account.user_id)])
    await client.join(bare_room)
    await client.sync(full_state=True)
    bare = BareClient(client, bare_room)
    ours, theirs = [], []
    async with watched_bridge(load_config(configured.path, os.environ)) as watch:
        calls = importlib.import_module(configured.module).calls
        room = await stage.person.create_room("bridge", configured.user_ids)
        for _ in range(WARM_UP_ROUNDS + ROUNDS):
            sent_before = len(watch.sent)
            await stage.person.say(room, "hello")
            await watch.quiet(sent=sent_before + EVENTS_OF_A_QUESTION)
            _, _, returned = calls[-1]
            events = watch.sent[sent_before:]
            ours.append(events[-1].acknowledged - returned)
            root = await stage.person.say(bare_room, "hello")
            await asyncio.sleep(PAUSE_SECONDS)
            theirs.append(await bare.seconds(events, root))
    await client.close()  # type: ignore[no-untyped-call]
    bridge, alone = (statistics.median(times[WARM_UP_ROUNDS:]) for times in (ours, theirs))
    return [
        Figure("the bridge, median", 1000 * bridge, None, "ms"),
        Figure("six bare sends, median", 1000 * alone, None, "ms"),
        Figure("the bridge in bare sends", bridge / alone, MOST_RATIO, ""),
    ]


async def main() -> int:
    """Prints the table; 1 if the target is missed."""
    async with set_stage() as stage:
        return print_table(f"A question with five buttons, {ROUNDS} rounds", await measure(stage))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
