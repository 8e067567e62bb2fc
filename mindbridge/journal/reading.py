"""Reading the journal's file beside whoever writes to it."""

import sqlite3
from pathlib import Path

_BUSY_SECONDS = 10.0
_CANT_WRITE = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection that only reads, whoever writes beside it, also where this process may write nothing.

    Raises:
        sqlite3.Error: the file can't be read.
    """
    address = f"{path.absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS)
    try:
        connection.execute("PRAGMA schema_version")
    except sqlite3.Error as error:
        connection.close()
        # To read, SQLite makes a file for all that use the journal. Without a log nobody does, so it needs none.
        if error.sqlite_errorcode & 0xFF not in _CANT_WRITE or path.with_name(f"{path.name}-wal").exists():
            raise
        connection = sqlite3.connect(f"{address}&immutable=1", uri=True)
    connection.row_factory = sqlite3.Row
    return connection
