"""A copy of the journal, made beside a running bridge."""

import os
import sqlite3
import tempfile
from contextlib import closing
from datetime import datetime
from pathlib import Path

from mindbridge.journal.database import (
    FILE_NAME,
    QUERIES,
    RESTORED,
    JournalDamaged,
    JournalError,
    damage_told_by,
    version_of,
)
from mindbridge.journal.reading import connect_to_read


def back_up(home: Path, target: Path, now: datetime) -> None:
    """Copies the journal of a data home, as it is at one moment, without holding up the bridge that writes to it.

    The copy is marked: a bridge that is started on it looks for what may have been sent since.

    Args:
        home: the data home.
        target: the file to write; it is there whole or not at all.
        now: the time that the mark tells.

    Raises:
        JournalError: the journal can't be read, or the copy can't be written there, or is not good.
    """
    if os.path.lexists(target):
        raise JournalError(f"{target}: is there already; give the name of a new file")
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        os.close(descriptor)
    except OSError as error:
        raise JournalError(f"{target}: can't be written: {error.strerror}; is the folder writable?") from error
    source, unfinished = home / FILE_NAME, Path(name)
    try:
        _copy(source, unfinished)
        fault = _mark(unfinished, now)
        if fault is not None:
            raise JournalDamaged(f"{source}: is damaged, its copy is no good: {fault}")
        _sync(unfinished)
        unfinished.rename(target)
        _sync(target.parent)
    except (OSError, sqlite3.Error) as error:
        raise damage_told_by(error, source) or JournalError(f"{target}: no copy was made: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    with closing(connect_to_read(source)) as connection:
        version_of(source, connection.execute(QUERIES["kind_of_file"]).fetchone())
        # One read transaction: in WAL mode writers go on meanwhile. The copy holds nothing of what was deleted.
        connection.execute("VACUUM INTO ?", (str(target),))


def _mark(copy: Path, now: datetime) -> str | None:
    """Marks a copy; gives the first thing that is wrong with it."""
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        # It needs no way back: it is thrown away if this fails. So no second file lies beside it.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute(QUERIES["record_fact"], {"name": RESTORED, "value": f"{now:%Y-%m-%dT%H:%M:%SZ}"})
        fault = str(connection.execute("PRAGMA integrity_check").fetchone()[0])
    return None if fault == "ok" else fault


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
