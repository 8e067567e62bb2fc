"""A journal of the first version, opened by this one: every row is there, and what is new is filled in."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import FILE_NAME, Database, migrations
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.turns import TurnStore
from tests.journal.sample_rows import CRITIC, HELPER, HELPER_USER, NOW, rows

QUESTION_STATES = ["posting", "open", "answered", "superseded", "failed"]
DELIVERY_STATES = ["pending", "attempted", "sent", "refused", "dropped"]
FIRST: dict[str, list[dict[str, Any]]] = {
    "accounts": [
        {"agent": "helper", "user_id": "@helper:example.org", "next_batch": "s7", "wait_until": 5},
        {"agent": "critic", "user_id": "@critic:example.org", "next_batch": None, "wait_until": 0},
    ],
    "memberships": [
        {"agent": "helper", "room_id": f"!{state}", "state": state, "invited_ts": NOW}
        for state in ("accepted", "refused", "joined", "left")
    ],
    "sightings": [
        {"seq": 41, "agent": "helper", "event_id": "$hello", "server_ts": NOW, "judged": 1},
        {"seq": 43, "agent": "critic", "event_id": "$hello", "server_ts": NOW, "judged": 0},
    ],
    "messages": [
        {
            "message_id": 3,
            "room_id": "!joined",
            "thread_id": "$hello",
            "event_id": "$hello",
            "delivery_id": None,
            "sender": "@alice:example.org",
            "text": "hello",
        },
        {
            "message_id": 5,
            "room_id": "!joined",
            "thread_id": None,
            "event_id": None,
            "delivery_id": "sent",
            "sender": "@helper:example.org",
            "text": "Tea?",
        },
    ],
    "utterances": [
        {"agent": "helper", "room_id": "!joined", "thread_id": "", "event_id": "$e", "turn_id": None, "seq": 43}
    ],
    "turns": [
        {
            "seq": seq,
            "turn_id": f"turn {state}",
            "agent": "helper",
            "kind": "message",
            "room_id": "!joined",
            "thread_id": f"${state}",
            "source_event_id": f"${state}",
            "sender": "@alice:example.org",
            "sender_name": "Alice",
            "text": "hello",
            "selection": None,
            "state": state,
            "failures": seq,
            "due_at": 9,
            "error": "broke",
            "reply": "Tea?",
            "queued_at": NOW,
            "ended_at": NOW + 1,
        }
        for seq, state in enumerate(("queued", "done", "parked"), start=11)
    ],
    "questions": [
        {
            "seq": seq,
            "question_id": f"question {state}",
            "agent": "helper",
            "room_id": "!joined",
            "thread_id": "$done",
            "turn_id": "turn done",
            "delivery_id": f"delivery of {state}",
            "event_id": f"$question {state}",
            "requester": "@alice:example.org",
            "text": "Tea?",
            "part": "{}",
            "state": state,
            "revision": 1,
            "recorded_at": NOW,
            "asked_ts": NOW + 1,
            "opened_seq": 41,
            "closed_seq": 43,
        }
        for seq, state in enumerate(QUESTION_STATES, start=21)
    ],
    "selections": [
        {
            "question_id": "question answered",
            "source_event_id": "$click",
            "turn_id": "turn done",
            "answered_by": "@alice:example.org",
            "answered_by_name": "Alice",
            "number": 1,
            "key": "1",
            "answered_ts": NOW + 77,
        }
    ],
    "verdicts": [
        {
            "event_id": "$click",
            "question_id": "question answered",
            "sender": "@alice:example.org",
            "verdict": "selected",
            "reason": "Because.",
            "decided_at": NOW,
        }
    ],
    "problems": [
        {
            "problem_id": 2,
            "agent": "helper",
            "room_id": "!joined",
            "thread_id": None,
            "turn_id": "turn done",
            "code": "block_unreadable",
            "message": "It is broken.",
            "told_in": "turn queued",
        }
    ],
    "deliveries": [
        {
            "seq": seq,
            "delivery_id": f"{agent} {state}",
            "agent": agent,
            "room_id": "!joined",
            "kind": "message",
            "rank": 0,
            "turn_id": "turn done",
            "question_id": "question open",
            "target_id": None,
            "after_turn": None,
            "content": "{}",
            "state": state,
            "event_id": f"$event of {agent} {state}" if state == "sent" else None,
            "error": None,
            "recorded_at": NOW,
            "settled_at": None if state in {"pending", "attempted"} else NOW + 3,
        }
        for seq, (agent, state) in enumerate(
            ((agent, state) for state in DELIVERY_STATES for agent in ("helper", "critic")), start=31
        )
    ],
}
"""Rows of the first version: every table, every state."""


def columns(table: str) -> list[str]:
    return list(FIRST[table][0])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of a journal of the first version that holds those rows."""
    home = tmp_path / "older"
    home.mkdir()
    with closing(sqlite3.connect(home / FILE_NAME)) as connection:
        connection.executescript(f"{migrations()[0][1]} PRAGMA user_version = 1;")
        connection.execute("PRAGMA foreign_keys = ON")
        for table in ("turns", *(each for each in FIRST if each != "turns")):
            named = ", ".join(f":{name}" for name in columns(table))
            connection.executemany(f"INSERT INTO {table} ({', '.join(columns(table))}) VALUES ({named})", FIRST[table])  # noqa: S608 -- own names
        connection.commit()
    return home


def test_rows_of_every_table_of_the_first_version_are_looked_at() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(migrations()[0][1])
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        assert set(tables) == set(FIRST)
        for table in tables:
            assert {row[1] for row in connection.execute(f"PRAGMA table_info({table})")} == set(columns(table))


@pytest.mark.parametrize("table", list(FIRST))
async def test_all_rows_are_kept_as_they_were(home: Path, table: str) -> None:
    database = await Database.open(home)
    names = ", ".join(columns(table))
    kept = rows(database, f"SELECT {names} FROM {table}")  # noqa: S608 -- own names
    await database.close()
    assert sorted(kept, key=repr) == sorted((tuple(row.values()) for row in FIRST[table]), key=repr)


async def test_what_is_new_is_filled_in(home: Path) -> None:
    database = await Database.open(home)
    assert rows(database, "SELECT state, close_reason, compare, closed_at, expired FROM questions ORDER BY seq") == [
        ("posting", None, 0, None, 0),
        ("open", None, 0, None, 0),
        ("answered", None, 0, NOW + 77, 0),
        ("superseded", None, 0, NOW, 0),
        ("failed", None, 0, NOW, 0),
    ]
    assert rows(database, "SELECT delivery_id, attempted_since FROM deliveries WHERE attempted_since NOT NULL") == [
        ("helper attempted", "s7")
    ]
    assert rows(database, "SELECT agent, budget, limited_at FROM accounts ORDER BY agent") == [
        ("critic", None, 0),
        ("helper", None, 0),
    ]
    assert rows(database, "PRAGMA foreign_key_check") == []
    assert rows(database, "PRAGMA integrity_check") == [("ok",)]
    await database.close()


async def test_bridge_goes_on_where_the_first_version_stopped(home: Path) -> None:
    database = await Database.open(home)
    assert await AdmissionStore(database).record_account(HELPER, HELPER_USER, NOW) == "s7"
    assert [each.turn_id for each, _ in await TurnStore(database).runnable(HELPER)] == ["turn queued"]
    outbox = Outbox(database)
    assert await outbox.limits(HELPER) == (5, None)
    for agent, since in ((HELPER, "s7"), (CRITIC, None)):
        first = await outbox.claim_next(agent, NOW)
        assert first is not None
        # The rows stand in the order in which they were recorded: what was pending came first.
        assert (first.delivery_id, first.tried_before) == (f"{agent} pending", False)
        await outbox.acknowledge(first.delivery_id, None, NOW)
        again = await outbox.claim_next(agent, NOW)
        assert again is not None
        assert (again.delivery_id, again.tried_before, again.attempted_since) == (f"{agent} attempted", True, since)
    await database.close()
