"""Admitting sync responses of 100 events, beside nio's parsing of the same responses.

Run `python benchmarks/admission.py`. Both take the same responses in turn, in one process: nio parses each one and
updates its rooms, as it does for every client; then the bridge reads the events, decides what they mean and commits
them to a journal on the disk. The events are messages, clicks, typed numbers, edits, redactions and changes of members;
eight questions are answered by each response, and 20 more are open all the time. Exits 1 if the target is missed.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import nio
from nio.client.async_client import AsyncClient
from records import AGENT, ROOM, USER, Asked, ask_questions, roster
from table import Figure, print_table

from mindbridge.bridge.admission import decide, interest_of
from mindbridge.events import JoinedRoom, SyncBatch
from mindbridge.ids import UserId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.records import Membership
from mindbridge.matrix.inbound import read_event

RESPONSES: Final = 60
WARM_UP: Final = 5
EVENTS: Final = 100
STANDING: Final = 20
ANSWERED: Final = 8
MOST_RATIO: Final = 1.0
_PEOPLE: Final = [f"@person{number}:example.org" for number in range(20)]


def events(start: int, standing: list[Asked], answered: list[Asked]) -> Iterator[dict[str, Any]]:
    """The events of one response.

    Args:
        start: makes their ids differ from those of the others.
        standing: questions that get reactions which are no options.
        answered: questions that get answers, the first half clicks and the others typed numbers.
    """
    half = len(answered) // 2
    for number in range(start, start + EVENTS):
        person = _PEOPLE[number % len(_PEOPLE)]
        base = {"event_id": f"$event{number}", "sender": person, "origin_server_ts": 1_700_000_000_000 + number}
        text = {"msgtype": "m.text", "body": f"Some words, number {number}, as people write them.", "m.mentions": {}}
        thread: dict[str, Any] = {"rel_type": "m.thread", "event_id": f"$root{number % 50}", "is_falling_back": True}
        match number % 20:
            case 0 | 1:
                question = answered[number // 20 % half]
                relation = {"rel_type": "m.annotation", "event_id": question.event_id, "key": "🚀"}
                yield base | {"type": "m.reaction", "content": {"m.relates_to": relation}}
            case 2 | 3:
                question = standing[number % len(standing)]
                relation = {"rel_type": "m.annotation", "event_id": question.event_id, "key": "👀"}
                yield base | {"type": "m.reaction", "content": {"m.relates_to": relation}}
            case 4:
                yield base | {"type": "m.room.redaction", "redacts": f"$event{number - 3}", "content": {}}
            case 5:
                content = {"membership": "join", "displayname": f"Person {number}"}
                yield base | {"type": "m.room.member", "state_key": person, "content": content}
            case 6 | 7:
                thread["event_id"] = answered[half + number // 20 % half].thread
                yield base | {"type": "m.room.message", "content": text | {"body": "2", "m.relates_to": thread}}
            case 8:
                edited = {"rel_type": "m.replace", "event_id": f"$event{number - 8}"}
                yield base | {
                    "type": "m.room.message",
                    "content": text | {"m.new_content": text, "m.relates_to": edited},
                }
            case 9 | 10 | 11 | 12:
                yield base | {"type": "m.room.message", "content": text | {"m.relates_to": thread}}
            case _:
                yield base | {"type": "m.room.message", "content": text}


def response(number: int, standing: list[Asked], answered: list[Asked]) -> dict[str, Any]:
    """A sync response as the homeserver gives it."""
    timeline = {
        "events": list(events(number * EVENTS, standing, answered)),
        "limited": False,
        "prev_batch": f"p{number}",
    }
    room = {
        "timeline": timeline,
        "state": {"events": []},
        "ephemeral": {"events": []},
        "account_data": {"events": []},
        "summary": {},
        "unread_notifications": {},
    }
    return {
        "next_batch": f"s{number}",
        "rooms": {"join": {ROOM: room}, "invite": {}, "leave": {}},
        "device_one_time_keys_count": {},
        "device_lists": {"changed": [], "left": []},
        "to_device": {"events": []},
        "presence": {"events": []},
    }


def read_batch(answer: nio.SyncResponse, known: nio.MatrixRoom) -> SyncBatch:
    """What the bridge's session makes of a response."""
    timeline = answer.rooms.join[ROOM].timeline.events
    read = (read_event(each.source, USER, lambda user: known.user_name(user) or user) for each in timeline)
    members = frozenset(UserId(user) for user in known.users)
    room = JoinedRoom(ROOM, members, limited=False, events=tuple(event for event in read if event is not None))
    return SyncBatch(next_batch=answer.next_batch, first=False, joined=(room,), invites=(), left=())


async def measure(home: Path) -> list[Figure]:
    """Takes in all responses, both ways."""
    database = await Database.open(home)
    try:
        return await _measure(database)
    finally:
        await database.close()  # its thread would keep the process


async def _measure(database: Database) -> list[Figure]:
    store = AdmissionStore(database)
    await store.record_account(AGENT, USER, 0)
    await store.record_membership(AGENT, Membership(room_id=ROOM, state="joined", invited_ts=None))
    standing = await ask_questions(database, "standing", STANDING)
    client = AsyncClient("http://127.0.0.1:9", USER)
    client.user_id = USER
    who = roster()
    ours, theirs = [], []
    for number in range(RESPONSES):
        answered = await ask_questions(database, f"answered-{number}", ANSWERED)
        parsed = response(number, standing, answered)
        began = time.perf_counter()
        answer = cast("nio.SyncResponse", nio.SyncResponse.from_dict(parsed))
        await client.receive_response(answer)
        theirs.append(time.perf_counter() - began)

        began = time.perf_counter()
        batch = read_batch(answer, client.rooms[ROOM])
        deciding = partial(decide, AGENT, batch, who)
        decisions = await store.admit(AGENT, interest_of(batch), batch.next_batch, deciding, 0)
        ours.append(time.perf_counter() - began)
        if len(decisions.selections) != ANSWERED:
            raise RuntimeError(f"{len(decisions.selections)} of {ANSWERED} questions were answered by a response")
    mine, nios = (statistics.median(each[WARM_UP:]) for each in (ours, theirs))
    return [
        Figure("admission beside nio's parsing", mine / nios, MOST_RATIO),
        Figure("admission of 100 events", mine * 1000, None, "ms"),
        Figure("nio's parsing of 100 events", nios * 1000, None, "ms"),
    ]


def main() -> int:
    """Measures and prints; gives the exit status."""
    with tempfile.TemporaryDirectory(prefix="mindbridge-benchmark-") as name:
        return print_table("sync responses of 100 events", asyncio.run(measure(Path(name))))


if __name__ == "__main__":
    sys.exit(main())
