"""The SQLite file: opening it, migrating it, and one transaction at a time."""

import asyncio
import fcntl
import os
import re
import sqlite3
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

import aiosqlite

from mindbridge.steps import Step, reached

FILE_NAME = "journal.sqlite3"
RESTORED = "restored"
"""The fact that marks a backup. What it holds as unsent may have been sent since, so it is looked for first."""

APPLICATION_ID = 0x6D627267
"""What the first migration writes into the file's header."""

_BUSY_TIMEOUT_MS = 10_000

Row = sqlite3.Row
Parameters = Mapping[str, Any]
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class JournalError(Exception):
    """The journal can't be used; the message says why and what to do."""


class JournalDamaged(JournalError):
    """The journal's file is no whole SQLite database any more; nothing helps but another file."""


def damage_told_by(error: Exception, path: Path) -> JournalDamaged | None:
    """What an error says of the file at `path`, where it says that the file is damaged."""
    # Only an error that SQLite itself reports has a code; its lowest byte is the kind.
    if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
        return None
    return JournalDamaged(
        f"{path}: is damaged: {error}; stop the bridge and put the last backup in its place, or save what can be "
        "read with `sqlite3 FILE .recover`"
    )


def _translated(path: Path, error: sqlite3.Error) -> JournalError:
    return damage_told_by(error, path) or JournalError(
        f"{path}: {error}; nothing of it was written; is the disk full, or the file read-only?"
    )


def _named_queries() -> dict[str, str]:
    text = files("mindbridge.journal").joinpath("queries.sql").read_text("utf-8")
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


QUERIES = _named_queries()


def version_of(path: Path, kind: Row) -> int:
    """The version of the journal at `path`, 0 where the file is empty; `kind` is what `kind_of_file` gives.

    Raises:
        JournalError: it is another program's file.
    """
    if kind["application"] != APPLICATION_ID and (kind["application"], kind["version"], kind["entries"]) != (0, 0, 0):
        raise JournalError(
            f"{path}: is no journal of mindbridge but another program's database; it was left as it is; give the "
            "configuration's `journal` a folder of its own"
        )
    return int(kind["version"])


def migrations() -> tuple[tuple[int, str], ...]:
    """The package's migrations in order, each with its number."""
    folder = files("mindbridge.journal").joinpath("migrations")
    scripts = sorted(
        (entry.name, entry.read_text("utf-8")) for entry in folder.iterdir() if entry.name.endswith(".sql")
    )
    return tuple((int(name.split("_", 1)[0]), script) for name, script in scripts)


def _make(home: Path, path: Path) -> None:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


class Transaction:
    """An open transaction; every statement is a named query of `queries.sql`."""

    def __init__(self, connection: aiosqlite.Connection, cursor: aiosqlite.Cursor) -> None:
        self._connection = connection
        self._cursor = cursor

    async def all(self, query: str, parameters: Parameters | None = None) -> list[Row]:
        """All rows of a query."""
        return list(await self._connection.execute_fetchall(QUERIES[query], parameters or {}))

    async def one(self, query: str, parameters: Parameters | None = None) -> Row | None:
        """The first row of a query, or None."""
        rows = await self.all(query, parameters)
        return rows[0] if rows else None

    async def run(self, query: str, parameters: Parameters | None = None) -> int:
        """Runs a statement; the number of rows that it changed."""
        await self._cursor.execute(QUERIES[query], parameters or {})
        return self._cursor.rowcount

    async def many(self, query: str, rows: Iterable[Parameters]) -> None:
        """Runs a statement once for each set of parameters."""
        batch = list(rows)
        if batch:
            await self._cursor.executemany(QUERIES[query], batch)

    # Each statement goes to SQLite's thread and back, which takes longer than most of them do. Those that need nothing
    # of each other are handed over at once; the thread takes them in their order.

    async def all_of(self, *queries: tuple[str, Parameters]) -> list[list[Row]]:
        """The rows of several queries."""
        return await asyncio.gather(*(self.all(query, parameters) for query, parameters in queries))

    async def many_of(self, *statements: tuple[str, Iterable[Parameters]]) -> None:
        """Runs several statements in their order, each once for each set of its parameters."""
        await asyncio.gather(*(self.many(query, rows) for query, rows in statements))


class Database:
    """The journal's file, opened by one process; transactions run one after the other."""

    def __init__(self, connection: aiosqlite.Connection, cursor: aiosqlite.Cursor, path: Path) -> None:
        self._connection = connection
        # One for all statements that write: to make and to close one for each takes longer than most statements do.
        self._cursor = cursor
        self._one_at_a_time = asyncio.Lock()
        self.path = path

    @classmethod
    async def open(cls, home: Path) -> Self:
        """Opens the journal in the folder `home`, making or migrating it first.

        Raises:
            JournalError: the folder or file can't be used, is of a newer version, or is another program's.
        """
        path = home / FILE_NAME
        try:
            _make(home, path)
            connection = await aiosqlite.connect(path, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise JournalError(f"{path}: can't be opened: {error}; is the folder there and writable?") from error
        database = cls(connection, await connection.cursor(), path)
        try:
            await database._prepare()
        except sqlite3.Error as error:
            await connection.close()
            raise _translated(path, error) from error
        except BaseException:
            await connection.close()
            raise
        return database

    async def _prepare(self) -> None:
        self._connection.row_factory = sqlite3.Row
        await self._connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
        known = migrations()
        (kind,) = await self._connection.execute_fetchall(QUERIES["kind_of_file"])
        version = version_of(self.path, kind)
        if version > known[-1][0]:
            raise JournalError(
                f"{self.path}: was written by a newer mindbridge (version {version}, this one knows {known[-1][0]}); "
                "install the newer version again"
            )
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"):
            await self._connection.execute(f"PRAGMA {pragma}")
        for number, script in known:
            if number > version:
                await self._connection.executescript(
                    f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;"
                )
        async with self.transaction(Step.PREPARE) as transaction:
            if await transaction.run("forget_fact", {"name": RESTORED}):
                await transaction.run("attempt_unsettled_deliveries")
        # Not before: a migration may make a table anew that others refer to.
        await self._connection.execute("PRAGMA foreign_keys = ON")

    @asynccontextmanager
    async def transaction(self, step: Step) -> AsyncIterator[Transaction]:
        """A transaction that commits at the end of the block and is rolled back by an exception.

        Args:
            step: the name of this commit.

        Raises:
            JournalError: SQLite could not do it: the disk is full, say, or another process holds the journal.
        """
        async with self._begun("BEGIN IMMEDIATE") as transaction:
            yield transaction
            reached(step, "before")
            await self._connection.execute("COMMIT")
            reached(step, "after")

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Transaction]:
        """A transaction that only reads.

        Raises:
            JournalError: SQLite could not do it.
        """
        async with self._begun("BEGIN") as transaction:
            yield transaction
            await self._connection.execute("COMMIT")

    @asynccontextmanager
    async def _begun(self, begin: str) -> AsyncIterator[Transaction]:
        async with self._one_at_a_time:
            try:
                await self._connection.execute(begin)
                yield Transaction(self._connection, self._cursor)
            except sqlite3.Error as error:
                await self._connection.rollback()
                raise _translated(self.path, error) from error
            except BaseException:
                await self._connection.rollback()
                raise

    async def changes_by_others(self) -> int:
        """A number that changes when another process has written to the journal."""
        async with self._one_at_a_time:
            try:
                rows = list(await self._connection.execute_fetchall("PRAGMA data_version"))
            except sqlite3.Error as error:
                raise _translated(self.path, error) from error
        return int(rows[0][0])

    async def empty_log(self) -> None:
        """Moves what the write-ahead log holds into the file and empties it; not now if somebody else reads.

        What was deleted is overwritten in the file only then, and gone from the log.

        Raises:
            JournalError: SQLite could not do it.
        """
        async with self._one_at_a_time:
            try:
                await self._connection.execute("PRAGMA busy_timeout = 0")
                try:
                    await self._connection.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
                finally:
                    await self._connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
            except sqlite3.Error as error:
                raise _translated(self.path, error) from error

    async def close(self) -> None:
        """Closes the file."""
        await self._cursor.close()
        await self._connection.close()


class Ownership:
    """The claim of one running bridge on a data home; ends with the process."""

    def __init__(self, home: Path) -> None:
        """Claims `home`.

        Raises:
            JournalError: another process runs on it, or it can't be used.
        """
        path = home / "lock"
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise JournalError(f"{path}: can't be opened: {error}; is the folder there and writable?") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, f"{os.getpid()}\n".encode())
        except BlockingIOError as error:
            holder = os.read(self._descriptor, 32).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise JournalError(
                f"{home}: another mindbridge (process {holder}) runs on this journal; stop it first"
            ) from error
        except OSError as error:
            os.close(self._descriptor)
            raise JournalError(f"{path}: can't be claimed: {error}; is there room, and does it allow locks?") from error
        # A child that an agent's program forks off, and that outlives the bridge, must not hold on to the claim.
        os.register_at_fork(after_in_child=self.release)

    def release(self) -> None:
        """Gives the claim up, once."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
