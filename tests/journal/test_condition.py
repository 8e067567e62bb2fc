"""The state that the journal is in, as `doctor` looks at it: read only, beside a running bridge."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mindbridge.ids import DeliveryId, TurnId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.condition import NEWEST_VERSION, AgentRecord, Condition, examine, running_bridge
from mindbridge.journal.database import FILE_NAME, Database, JournalDamaged, JournalError, Ownership
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.turns import TurnStore
from tests.journal.sample_rows import HELPER, HELPER_USER, NOW, admit, delivery, queue, record, turn


@pytest.fixture
def home(database: Database) -> Path:
    return database.path.parent


def test_home_without_a_journal_has_no_condition_and_stays_as_it_is(tmp_path: Path) -> None:
    assert examine(tmp_path, 0) is None
    assert list(tmp_path.iterdir()) == []


async def test_journal_that_knows_no_agent_is_sound(home: Path) -> None:
    assert examine(home, 0) == Condition(NEWEST_VERSION, ())


async def test_parked_turns_and_failed_deliveries_and_limits_are_counted(database: Database, home: Path) -> None:
    assert await AdmissionStore(database).record_account(HELPER, HELPER_USER, NOW) is None
    await queue(database, turn("one"), turn("two"))
    await record(database, delivery("refused"), delivery("uncertain"), delivery("waiting"))
    await TurnStore(database).park(TurnId("turn_one"), "no reply", delivery("parked", "notice"), NOW)
    outbox = Outbox(database)
    await outbox.refuse(DeliveryId("refused"), "no", NOW, lambda _: delivery("none"))
    await outbox.give_up(DeliveryId("uncertain"), "nobody knows", NOW)
    await outbox.hold(HELPER, None, NOW + 5, '{"level": 1}', NOW)

    found, later = examine(home, NOW), examine(home, NOW + 1)

    expected = AgentRecord(HELPER, HELPER_USER, NOW + 5, NOW, '{"level": 1}', parked=1, refused=1, uncertain=1)
    assert found == Condition(NEWEST_VERSION, (expected,))
    assert later is not None
    assert [(each.parked, each.refused, each.uncertain) for each in later.agents] == [(1, 0, 0)]


async def test_journal_of_another_version_is_told_without_its_rows(tmp_path: Path) -> None:
    database = await Database.open(tmp_path)
    await admit(database)
    await database.close()
    for version in (NEWEST_VERSION - 1, NEWEST_VERSION + 1):
        with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
            connection.execute(f"PRAGMA user_version = {version}")

        assert examine(tmp_path, 0) == Condition(version, ())


async def test_damaged_journal_is_told_as_damaged(tmp_path: Path) -> None:
    database = await Database.open(tmp_path)
    await queue(database, *(turn(f"number {number}", text="x" * 2_000) for number in range(50)))
    await database.close()
    path = database.path
    whole = path.read_bytes()

    for content in (
        whole[:4_096] + b"\xff" * (len(whole) - 4_096),
        b"no database at all" * 100,
        whole[: len(whole) // 2],
    ):
        path.write_bytes(content)
        with pytest.raises(JournalDamaged, match="put the last backup in its place"):
            examine(tmp_path, 0)


def test_what_can_not_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()

    with pytest.raises(JournalError, match=FILE_NAME):
        examine(tmp_path, 0)


def test_bridge_that_runs_is_known_by_its_process_without_trying_its_lock(tmp_path: Path) -> None:
    assert running_bridge(tmp_path) is None
    ownership = Ownership(tmp_path)
    assert running_bridge(tmp_path) == os.getpid()

    ownership.release()

    assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    assert running_bridge(tmp_path) is None
