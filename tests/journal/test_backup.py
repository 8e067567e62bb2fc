"""`mindbridge journal backup`: a whole copy or none, made beside whoever writes, and marked as a copy."""

import asyncio
import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mindbridge.cli.main import main
from mindbridge.ids import DeliveryId, EventId
from mindbridge.journal import backup
from mindbridge.journal.backup import back_up
from mindbridge.journal.database import FILE_NAME, Database, JournalDamaged, JournalError
from mindbridge.journal.records import Acknowledged
from mindbridge.steps import Step
from tests.journal.sample_rows import (
    NOW,
    admit,
    asking,
    delivery,
    end,
    everything,
    queue,
    record,
    rows,
    send_all,
    sighting,
    turn,
    value,
)

WHEN = datetime(2026, 11, 30, 12, tzinfo=UTC)
CONFIGURATION = """\
homeserver: https://matrix.example.org
journal: ./home
access: {users: ["*"]}
agents:
  helper: {account: {user_id: "@helper:example.org", password: pw}, backend: {type: demo}}
"""


@pytest.fixture
def home(database: Database) -> Path:
    return database.path.parent


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "backups").mkdir()
    return tmp_path / "backups" / "copy.sqlite3"


def put_back(copy: Path, folder: Path) -> Path:
    """Makes the copy the journal of a new data home."""
    folder.mkdir()
    copy.rename(folder / FILE_NAME)
    return folder


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def all_rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in names}  # noqa: S608 -- own names


async def test_copy_holds_all_and_a_mark_and_is_its_owners_alone(database: Database, home: Path, target: Path) -> None:
    await queue(database, turn("one"), turn("two"))
    await end(database, "one", asking())
    await send_all(database)

    back_up(home, target, WHEN)

    assert all_rows(target) == everything(database) | {"facts": [("restored", "2026-11-30T12:00:00Z")]}
    assert value(database, "SELECT COUNT(*) FROM facts") == 0
    assert [path.name for path in target.parent.iterdir()] == [target.name]
    assert mode_of(target) == 0o600


async def test_copy_is_of_one_moment_and_holds_up_nobody(database: Database, home: Path, target: Path) -> None:
    await queue(database, turn("one"))
    async with database.transaction(Step.ADMIT) as transaction:
        await transaction.run("learn_budget", {"agent": "helper", "budget": "{}"})
        await transaction.run("record_account", {"agent": "later", "user_id": "@later:example.org"})
        back_up(home, target, WHEN)

    with closing(sqlite3.connect(f"{target.as_uri()}?mode=ro", uri=True)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM accounts WHERE agent = 'later'").fetchall() == [(0,)]
    assert value(database, "SELECT COUNT(*) FROM accounts WHERE agent = 'later'") == 1


async def test_bridge_writes_on_while_a_copy_is_made(database: Database, home: Path, target: Path) -> None:
    await queue(database, *[turn(str(number), text="words " * 1000) for number in range(200)])
    copying = asyncio.create_task(asyncio.to_thread(back_up, home, target, WHEN))
    written = 0
    while not copying.done():
        await admit(database, position=f"s{written}")
        written += 1
    await copying

    assert written
    assert len(all_rows(target)["turns"]) == 200


async def test_bridge_on_a_copy_looks_for_what_it_holds_as_unsent_once(
    database: Database, home: Path, target: Path, tmp_path: Path
) -> None:
    await record(database, delivery("one"))
    back_up(home, target, WHEN)

    restored = await Database.open(put_back(target, tmp_path / "restored"))
    assert value(restored, "SELECT state FROM deliveries") == "attempted"
    assert value(restored, "SELECT COUNT(*) FROM facts") == 0
    assert value(restored, "PRAGMA journal_mode") == "wal"
    await record(restored, delivery("two"))
    await restored.close()
    again = await Database.open(tmp_path / "restored")
    assert value(again, "SELECT state FROM deliveries WHERE delivery_id = 'two'") == "pending"
    await again.close()
    assert value(database, "SELECT state FROM deliveries") == "pending"


@pytest.mark.usefixtures("database")
def test_copy_of_a_copy_is_marked_as_well(home: Path, target: Path, tmp_path: Path) -> None:
    back_up(home, target, WHEN)

    back_up(put_back(target, tmp_path / "second"), target, WHEN.replace(hour=13))

    assert all_rows(target)["facts"] == [("restored", "2026-11-30T13:00:00Z")]


async def test_what_came_back_before_it_was_recorded_is_not_sent_again(database: Database) -> None:
    came_back = [
        Acknowledged(delivery_id=DeliveryId(name), event_id=EventId(f"$event of {name}"))
        for name in ("q", "q button 1", "q button 2", "edit", "notice")
    ]
    await admit(database, acknowledged=came_back, sightings=[replace(sighting("$event of q", 1), server_ts=NOW - 5)])
    await queue(database, turn("one"))

    await end(database, "one", asking())
    await admit(database, deliveries=[delivery("edit", "edit"), delivery("notice", "notice"), delivery("new")])

    assert [each.delivery_id for each in await send_all(database)] == ["new"]
    assert value(database, "SELECT COUNT(*) FROM deliveries WHERE event_id = '$event of ' || delivery_id") == 6
    assert rows(database, "SELECT state, event_id, asked_ts, compare FROM questions") == [
        ("open", "$event of q", NOW - 5, 1)
    ]


# What can't be


@pytest.mark.usefixtures("database")
def test_what_is_there_is_not_overwritten(home: Path, target: Path) -> None:
    target.write_text("precious")
    link = target.with_name("link")
    link.symlink_to("nowhere")

    for taken in (target, link, target.parent):
        with pytest.raises(JournalError, match="is there already"):
            back_up(home, taken, WHEN)

    assert target.read_text() == "precious"
    assert sorted(path.name for path in target.parent.iterdir()) == ["copy.sqlite3", "link"]


@pytest.mark.usefixtures("database")
def test_missing_folder_is_told(home: Path, target: Path) -> None:
    with pytest.raises(JournalError, match=r"missing/copy\.sqlite3: .*No such file"):
        back_up(home, target.parent / "missing" / target.name, WHEN)


@pytest.mark.parametrize("step", ["_copy", "_mark", "_sync"])
@pytest.mark.usefixtures("database")
def test_copy_that_could_not_be_finished_leaves_nothing(
    home: Path, target: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full") if step != "_sync" else OSError(28, "No space left")

    monkeypatch.setattr(backup, step, fail)

    with pytest.raises(JournalError, match=r"copy\.sqlite3: no copy was made: .*(full|No space left)"):
        back_up(home, target, WHEN)

    assert list(target.parent.iterdir()) == []


async def test_copy_that_is_no_good_is_not_given(
    database: Database, home: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = backup._copy  # noqa: SLF001 -- the same, and then a fault

    def copy_badly(source: Path, copy: Path) -> None:
        copied(source, copy)
        with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("UPDATE sqlite_schema SET sql = replace(sql, 'sender TEXT,', 'sender TEXT NOT NULL,')")

    await queue(database, turn("one"))
    async with database.transaction(Step.ADMIT) as transaction:
        verdict = {"event_id": "$x", "question_id": None, "sender": None, "verdict": "x", "reason": "x", "now": 1}
        await transaction.run("record_verdict", verdict)
    monkeypatch.setattr(backup, "_copy", copy_badly)

    with pytest.raises(JournalDamaged, match=r"NULL value in verdicts\.sender"):
        back_up(home, target, WHEN)

    assert list(target.parent.iterdir()) == []


async def test_damaged_journal_gives_no_copy(database: Database, home: Path, target: Path) -> None:
    await queue(database, *[turn(str(number), text="words " * 100) for number in range(100)])
    await database.empty_log()
    size = database.path.stat().st_size
    with database.path.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\x5a" * (size // 4))

    with pytest.raises(JournalDamaged, match=r"home/journal\.sqlite3: is damaged"):
        back_up(home, target, WHEN)

    assert list(target.parent.iterdir()) == []


# The command


async def test_command_says_what_it_did_or_could_not(
    database: Database, tmp_path: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIGURATION)
    command = ["journal", "backup", "-c", str(config), str(target)]

    assert main(command) == 0
    done = capsys.readouterr()
    assert str(target) in done.out
    assert all(str(database.path.parent / each) in done.out for each in ("devices", "identities"))
    assert done.err == ""

    assert main(command) == 1
    refused = capsys.readouterr()
    assert refused.out == ""
    assert refused.err.splitlines() == [f"{target}: is there already; give the name of a new file"]

    config.write_text(CONFIGURATION.replace("./home", "./elsewhere"))
    assert main(command) == 1
    assert "there is no journal yet" in capsys.readouterr().err
