"""`mindbridge journal export`: every question once, the oldest first, a page at a time."""

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mindbridge.journal import reports
from mindbridge.journal.database import Database
from mindbridge.journal.reports import Reports
from mindbridge.journal.turns import TurnStore
from tests.journal.sample_rows import HELPER, HELPER_USER, NOW, asking, queue, take, turn
from tests.unit.sample_questions import part_of

CONFIGURATION = """\
homeserver: https://matrix.example.org
journal: ./home
access: {users: ["*"]}
agents:
  helper: {account: {user_id: "@helper:example.org", password: pw}, backend: {type: demo}}
"""


async def ask(database: Database, number: int) -> None:
    """The helper asks so many questions, named by their numbers."""
    store = TurnStore(database)
    for name in map(str, range(number)):
        await queue(database, turn(name))
        ((running, _),) = await store.runnable(HELPER)
        asked = asking(name, f"Tea {name}?")
        assert asked.question is not None
        question = replace(asked.question, part=part_of(f"Tea {name}?"))
        assert await store.end(running, HELPER_USER, replace(asked, question=question), NOW)


async def test_all_questions_come_once_and_the_oldest_first(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "_EXPORTED_AT_ONCE", 2)
    await ask(database, 5)
    await take(database, "question_3")

    exported = list(Reports(database.path.parent).export())

    assert [each["question_id"] for each in exported] == [f"question_{number}" for number in range(5)]
    assert [each["state"] for each in exported] == ["posting"] * 3 + ["answered", "posting"]
    assert [each["answered_at"] for each in exported] == [None] * 3 + ["2026-11-30T12:00:00Z", None]
    assert list(reversed(Reports(database.path.parent).questions())) == [
        {name: value for name, value in each.items() if name not in {"answered_at", "revision"}} for each in exported
    ]


async def test_what_is_not_asked_for_yet_is_not_read(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "_EXPORTED_AT_ONCE", 1)
    await ask(database, 2)
    exporting = Reports(database.path.parent).export()

    assert next(exporting)["selection"] is None
    await take(database, "question_1")

    assert next(exporting)["selection"]["number"] == 1


async def test_reader_that_has_had_enough_is_no_fault(database: Database, tmp_path: Path) -> None:
    await ask(database, 1)
    (tmp_path / "config.yaml").write_text(CONFIGURATION)
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "mindbridge", "journal", "export", "-c", str(tmp_path / "config.yaml")]

    ended = await asyncio.to_thread(subprocess.run, command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)

    assert (ended.returncode, ended.stderr) == (1, b"")
