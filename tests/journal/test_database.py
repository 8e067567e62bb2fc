"""The journal's file: who may read it, what is refused, and that a transaction is whole or not there."""

import asyncio
import os
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mindbridge.journal import database as database_module
from mindbridge.journal.backup import back_up
from mindbridge.journal.database import FILE_NAME, QUERIES, Database, JournalError, Ownership, Transaction, migrations
from mindbridge.journal.reports import Reports
from mindbridge.steps import Step

JOURNAL = Path(database_module.__file__).parent


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[Database]:
    database = await Database.open(home)
    try:
        yield database
    finally:
        await database.close()


async def note_account(transaction: Transaction, agent: str) -> None:
    await transaction.run("record_account", {"agent": agent, "user_id": f"@{agent}:example.org"})


async def accounts(database: Database) -> set[str]:
    async with database.reading() as transaction:
        rows = await transaction.all("report_agents")
    return {row["agent"] for row in rows}


def run_sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def pragma(path: Path, name: str) -> Any:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]


# The file


@pytest.fixture
def _lax_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_lax_umask")
async def test_folder_and_all_files_are_their_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    home = tmp_path / "home"
    ownership = Ownership(home)
    async with opened(home) as database, database.transaction(Step.RECORD_ACCOUNT) as transaction:
        await note_account(transaction, "helper")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()}
    ownership.release()

    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert modes == dict.fromkeys([FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm", "lock"], 0o600)


@pytest.mark.usefixtures("_lax_umask")
async def test_journal_alone_makes_its_folder_for_its_owner_alone(tmp_path: Path) -> None:
    async with opened(tmp_path / "parent" / "home"):
        assert stat.S_IMODE((tmp_path / "parent" / "home").stat().st_mode) == 0o700


async def test_commits_are_on_the_disk_when_they_are_done(database: Database) -> None:
    assert database._connection.isolation_level is None  # noqa: SLF001 -- the settings of this very connection
    settings = {}
    for name in ("journal_mode", "synchronous", "foreign_keys"):
        rows = list(await database._connection.execute_fetchall(f"PRAGMA {name}"))  # noqa: SLF001 -- likewise
        settings[name] = rows[0][0]
    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


async def test_what_was_committed_is_there_after_opening_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as database, database.transaction(Step.RECORD_ACCOUNT) as transaction:
        await note_account(transaction, "helper")
    async with opened(tmp_path) as database:
        assert await accounts(database) == {"helper"}


async def test_change_by_another_connection_is_noticed_and_ones_own_is_not(tmp_path: Path) -> None:
    async with opened(tmp_path) as database, opened(tmp_path) as other:
        before = await database.changes_by_others()
        async with database.transaction(Step.RECORD_ACCOUNT) as transaction:
            await note_account(transaction, "helper")
        assert await database.changes_by_others() == before
        async with other.transaction(Step.RECORD_ACCOUNT) as transaction:
            await note_account(transaction, "critic")
        assert await database.changes_by_others() != before


# Migrations


def test_migrations_are_numbered_from_one_without_a_gap() -> None:
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))
    assert [path.name[:5] for path in sorted((JOURNAL / "migrations").glob("*.sql"))] == [
        f"{number:04}_" for number, _ in migrations()
    ]


async def test_new_journal_is_of_the_newest_version(tmp_path: Path) -> None:
    async with opened(tmp_path):
        pass
    assert pragma(tmp_path / FILE_NAME, "user_version") == migrations()[-1][0]


async def test_opening_again_migrates_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path):
        schema = pragma(tmp_path / FILE_NAME, "schema_version")
    async with opened(tmp_path):
        assert pragma(tmp_path / FILE_NAME, "schema_version") == schema


async def test_only_the_migrations_that_a_journal_lacks_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path):
        pass
    newest = migrations()[-1][0]
    more = (*migrations(), (newest + 1, "CREATE TABLE later (name TEXT) STRICT;"))
    monkeypatch.setattr(database_module, "migrations", lambda: more)
    async with opened(tmp_path):
        pass
    run_sql(tmp_path / FILE_NAME, "SELECT name FROM later")
    assert pragma(tmp_path / FILE_NAME, "user_version") == newest + 1


async def test_migration_that_fails_leaves_the_journal_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as database, database.transaction(Step.RECORD_ACCOUNT) as transaction:
        await note_account(transaction, "helper")
    newest = migrations()[-1][0]
    broken = (
        *migrations(),
        (newest + 1, "CREATE TABLE later (name TEXT) STRICT; DELETE FROM accounts; DELETE FROM no;"),
    )
    with monkeypatch.context() as patch:
        patch.setattr(database_module, "migrations", lambda: broken)
        with pytest.raises(JournalError, match="no such table"):
            await Database.open(tmp_path)
    async with opened(tmp_path) as database:
        assert await accounts(database) == {"helper"}
    assert pragma(tmp_path / FILE_NAME, "user_version") == newest


# What is refused


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
async def test_journal_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path: Path, journal_mode: str) -> None:
    async with opened(tmp_path):
        pass
    path = tmp_path / FILE_NAME
    run_sql(path, f"PRAGMA journal_mode = {journal_mode}", "PRAGMA user_version = 99", "CREATE TABLE newer (name TEXT)")
    before = path.read_bytes()

    with pytest.raises(JournalError, match=r"newer mindbridge \(version 99"):
        await Database.open(tmp_path)

    assert path.read_bytes() == before
    assert files_in(tmp_path) == {FILE_NAME}


@pytest.mark.parametrize(
    "there", [b"This is no database.\n" * 100, b"{}", b"SQLite format 3\0" + b"\xff" * 4096], ids=len
)
async def test_file_that_is_no_journal_is_refused_by_name_and_left_as_it_is(tmp_path: Path, there: bytes) -> None:
    path = tmp_path / FILE_NAME
    path.write_bytes(there)
    with pytest.raises(JournalError, match=re.escape(str(path))):
        await Database.open(tmp_path)
    assert path.read_bytes() == there


@pytest.mark.parametrize("their_version", [0, 1, 2, 99])
async def test_database_of_another_program_is_refused_by_name_and_left_as_it_is(
    tmp_path: Path, their_version: int
) -> None:
    path = tmp_path / FILE_NAME
    run_sql(path, "CREATE TABLE accounts (agent TEXT)", f"PRAGMA user_version = {their_version}")
    before = path.read_bytes()

    for use in (lambda: Reports(tmp_path), lambda: back_up(tmp_path, tmp_path / "copy", datetime.now(UTC))):
        with pytest.raises(JournalError, match=rf"{re.escape(str(path))}: is no journal of mindbridge"):
            use()
    with pytest.raises(JournalError, match=rf"{re.escape(str(path))}: is no journal of mindbridge"):
        await Database.open(tmp_path)

    assert path.read_bytes() == before
    assert files_in(tmp_path) == {FILE_NAME}


async def test_file_with_another_programs_mark_alone_is_refused(tmp_path: Path) -> None:
    run_sql(tmp_path / FILE_NAME, "PRAGMA application_id = 7")
    with pytest.raises(JournalError, match="is no journal of mindbridge"):
        await Database.open(tmp_path)


async def test_empty_file_becomes_a_journal(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).touch()
    async with opened(tmp_path) as database:
        assert await accounts(database) == set()


def a_file_as_home(home: Path) -> None:
    home.write_text("no folder")


def a_file_above_home(home: Path) -> None:
    shutil.rmtree(home.parent)
    home.parent.write_text("no folder")


def folders_as_files(home: Path) -> None:
    (home / FILE_NAME).mkdir(parents=True)
    (home / "lock").mkdir()


UNUSABLE: list[Callable[[Path], None]] = [a_file_as_home, a_file_above_home, folders_as_files]


@pytest.mark.parametrize("spoil", UNUSABLE)
async def test_home_that_can_not_be_used_is_refused_by_name(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    home = tmp_path / "parent" / "home"
    home.parent.mkdir()
    spoil(home)
    with pytest.raises(JournalError, match=re.escape(str(home))):
        await Database.open(home)
    with pytest.raises(JournalError, match=re.escape(str(home))):
        Ownership(home)


async def test_journal_can_be_opened_after_it_was_refused(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_text("This is no database.\n" * 100)
    with pytest.raises(JournalError):
        await Database.open(tmp_path)
    path.unlink()
    async with opened(tmp_path) as database:
        assert await accounts(database) == set()


# The owner

CLAIM = """
import sys
import threading
from pathlib import Path
from mindbridge.journal.database import Ownership
Ownership(Path(sys.argv[1]))
print("claimed", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", CLAIM, str(tmp_path / "home")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 -- this very Python
        assert process.stdout is not None
        assert process.stdout.readline() == "claimed\n"
        yield process
        process.kill()


def test_second_process_on_a_journal_is_refused_and_told_of_the_first(
    tmp_path: Path, owner: subprocess.Popen[str]
) -> None:
    """S8"""
    with pytest.raises(JournalError, match=rf"process {owner.pid}\b"):
        Ownership(tmp_path / "home")
    with pytest.raises(JournalError, match=rf"process {owner.pid}\b"):
        Ownership(tmp_path / "home")


def test_journal_of_a_killed_process_is_free(tmp_path: Path, owner: subprocess.Popen[str]) -> None:
    """S8"""
    owner.kill()
    owner.wait()
    Ownership(tmp_path / "home").release()


FORK = """
import os, sys
from pathlib import Path
from mindbridge.journal.database import Ownership
Ownership(Path(sys.argv[1]))
child = os.fork()
if child:
    print(child, flush=True)
sys.stdin.read()
"""


def test_child_that_outlives_a_killed_process_does_not_hold_its_journal(tmp_path: Path) -> None:
    """S8"""
    command = [sys.executable, "-c", FORK, str(tmp_path / "home")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 -- this very Python
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.kill()
        process.wait()
        try:
            os.kill(child, 0)
            claim_when_free(tmp_path / "home").release()
        finally:
            os.kill(child, signal.SIGKILL)


def claim_when_free(home: Path) -> Ownership:
    """Claims a home that a child, which is just being forked off, holds for a moment."""
    for _ in range(500):
        with suppress(JournalError):
            return Ownership(home)
        threading.Event().wait(0.01)
    return Ownership(home)


def test_claim_in_the_same_process_is_refused_until_it_is_released(tmp_path: Path) -> None:
    first = Ownership(tmp_path)
    with pytest.raises(JournalError, match=rf"process {os.getpid()}\b"):
        Ownership(tmp_path)
    first.release()
    Ownership(tmp_path).release()


def test_homes_are_claimed_one_by_one(tmp_path: Path) -> None:
    first, second = Ownership(tmp_path / "one"), Ownership(tmp_path / "two")
    first.release()
    second.release()


# Transactions


async def test_exception_in_a_transaction_leaves_nothing(database: Database) -> None:
    async def work() -> None:
        async with database.transaction(Step.RECORD_ACCOUNT) as transaction:
            await note_account(transaction, "helper")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()
    assert await accounts(database) == set()


async def test_statement_that_fails_leaves_nothing_of_its_transaction(database: Database) -> None:
    event = {"seq": 1, "agent": "helper", "event_id": "$1", "server_ts": 0, "judged": True, "now": 0}

    async def work() -> None:
        async with database.transaction(Step.RECORD_ACCOUNT) as transaction:
            await note_account(transaction, "helper")
            await transaction.many("record_sighting", [event, event | {"seq": 2}])

    with pytest.raises(JournalError, match="UNIQUE constraint failed"):
        await work()
    assert await accounts(database) == set()


async def test_transactions_run_one_after_the_other(database: Database) -> None:
    running = 0

    async def one(number: int) -> None:
        nonlocal running
        async with database.transaction(Step.RECORD_ACCOUNT) as transaction:
            running += 1
            assert running == 1
            await note_account(transaction, f"agent{number}")
            await asyncio.sleep(0)
            running -= 1

    await asyncio.gather(*(one(number) for number in range(10)))
    assert len(await accounts(database)) == 10


@pytest.mark.parametrize("statements", range(5))
async def test_transaction_cancelled_between_its_statements_leaves_nothing(database: Database, statements: int) -> None:
    reached = asyncio.Event()

    async def work() -> None:
        async with database.transaction(Step.RECORD_ACCOUNT) as transaction:
            for number in range(statements):
                await note_account(transaction, f"agent{number}")
            reached.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await assert_usable(database, {"later"})


THREE_ACCOUNTS = {"first", "second", "third"}
STATEMENTS = ("BEGIN", "first", "second", "third", "COMMIT")


@pytest.mark.parametrize("statement", range(len(STATEMENTS)), ids=STATEMENTS)
async def test_transaction_cancelled_during_a_statement_is_there_whole_if_that_was_its_commit_else_not_at_all(
    database: Database, statement: int
) -> None:
    async def work() -> None:
        async with database.transaction(Step.RECORD_ACCOUNT) as transaction:
            await note_account(transaction, "first")
            await note_account(transaction, "second")
            await transaction.many("record_account", [{"agent": "third", "user_id": "@third:example.org"}])

    loop = asyncio.get_running_loop()
    begun: list[str] = []

    def on_statement(sql: str) -> None:  # runs in the connection's thread, before the statement does
        begun.append(sql)
        if len(begun) == statement + 1:
            loop.call_soon_threadsafe(task.cancel)

    await database._connection.set_trace_callback(on_statement)  # noqa: SLF001 -- to be there at the right moment
    task = asyncio.create_task(work())
    await asyncio.wait({task})

    assert task.cancelled()
    assert STATEMENTS[statement] in begun[statement]
    written = THREE_ACCOUNTS if STATEMENTS[statement] == "COMMIT" else set()
    assert await accounts(database) == written
    await assert_usable(database, written | {"later"})


async def test_transaction_cancelled_twice_leaves_nothing(database: Database) -> None:
    loop = asyncio.get_running_loop()
    reached = asyncio.Event()
    rolled_back: list[str] = []

    async def work() -> None:
        async with database.transaction(Step.RECORD_ACCOUNT) as transaction:
            await note_account(transaction, "first")
            reached.set()
            await asyncio.Event().wait()

    def on_statement(sql: str) -> None:  # runs in the connection's thread, before the statement does
        if sql == "ROLLBACK":
            rolled_back.append(sql)
            loop.call_soon_threadsafe(task.cancel)

    await database._connection.set_trace_callback(on_statement)  # noqa: SLF001 -- to be there at the right moment
    task = asyncio.create_task(work())
    await reached.wait()
    task.cancel()
    await asyncio.wait({task})

    assert (task.cancelled(), rolled_back) == (True, ["ROLLBACK"])
    await assert_usable(database, {"later"})


async def test_transaction_cancelled_while_it_waits_for_its_turn_never_begins(database: Database) -> None:
    async def work() -> None:
        async with database.transaction(Step.RECORD_ACCOUNT) as transaction:
            await note_account(transaction, "waiting")

    async with database.transaction(Step.RECORD_ACCOUNT) as transaction:
        await note_account(transaction, "first")
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})

    await assert_usable(database, {"first", "later"})


async def test_transaction_cancelled_while_another_process_writes_leaves_nothing(database: Database) -> None:
    with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        async def work() -> None:
            async with database.transaction(Step.RECORD_ACCOUNT) as transaction:
                await note_account(transaction, "late")

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        other.execute("COMMIT")
        await asyncio.wait({task})

    await assert_usable(database, {"later"})


async def assert_usable(database: Database, expected: set[str]) -> None:
    async with asyncio.timeout(30), database.transaction(Step.RECORD_ACCOUNT) as transaction:
        await note_account(transaction, "later")
    assert await accounts(database) == expected


# The queries

NAMES = re.findall(r"^-- name: (.*)$", (JOURNAL / "queries.sql").read_text("utf-8"), re.MULTILINE)
NO_PARAMETERS = {
    "kind_of_file",
    "last_seq",
    "agents_of_open_questions",
    "attempt_unsettled_deliveries",
    "report_agents",
    "report_behind",
    "report_parked",
    "report_refused",
    "report_uncertain",
    "report_unread",
}


def test_every_query_has_a_name_of_its_own_and_is_found_by_it() -> None:
    assert len(NAMES) == len(set(NAMES))
    assert set(NAMES) == set(QUERIES)


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path_factory.mktemp("schema") / FILE_NAME)) as connection:
        for _, script in migrations():
            connection.executescript(script)
        yield connection


@pytest.mark.parametrize("name", QUERIES)
def test_query_fits_the_schema_and_is_one_statement(schema: sqlite3.Connection, name: str) -> None:
    parameters = dict.fromkeys(re.findall(r":(\w+)", QUERIES[name]), "[]")
    assert bool(parameters) == (name not in NO_PARAMETERS)
    assert schema.execute(f"EXPLAIN {QUERIES[name]}", parameters).fetchall()


@pytest.mark.parametrize("name", QUERIES)
def test_query_is_used(name: str) -> None:
    code = "\n".join(path.read_text("utf-8") for path in JOURNAL.glob("*.py"))
    assert f'"{name}"' in code


def test_every_query_that_the_code_names_is_there() -> None:
    code = "\n".join(path.read_text("utf-8") for path in JOURNAL.glob("*.py"))
    named = set(re.findall(r'(?:transaction\.(?:all|one|run|many)|_query)\(\s*"(\w+)"', code))
    assert named <= set(QUERIES)
    assert len(named) > 10
