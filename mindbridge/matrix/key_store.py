"""The devices' encryption keys in the data home: one SQLite file a device, as nio keeps it."""

import hashlib
import os
import re
from pathlib import Path
from typing import Any

from nio.store.database import SqliteStore

from mindbridge.ids import UserId
from mindbridge.matrix.errors import MatrixError, Unreachable

_LONGEST_NAME = 60
_DAMAGED = frozenset({"SQLITE_NOTADB", "SQLITE_CORRUPT"})


class KeysLost(MatrixError):
    """The device's keys are damaged, or not those that the server knows it by. Nothing helps but a new device."""


class KeyStore(SqliteStore):
    """One device's keys. What is written is on the disk before it counts."""

    def _create_database(self) -> Any:
        # With a write-ahead log a commit waits for the disk once; `full` keeps it through a loss of power.
        pragmas = {"foreign_keys": 1, "secure_delete": 1, "journal_mode": "wal", "synchronous": "full"}
        database = super()._create_database()  # type: ignore[no-untyped-call]
        database.init(self.database_path, pragmas=pragmas)
        return database

    def close(self) -> None:
        """Ends the connection to the file."""
        self.database.close()


def sqlite_error(error: Exception) -> str | None:
    """The name of the SQLite error that a key store met with, such as `SQLITE_FULL`; None for any other error."""
    # The library that nio has for databases raises errors of its own kinds in place of SQLite's.
    name = getattr(error.__context__, "sqlite_errorname", None)
    return name if isinstance(name, str) else None


class KeyFolder:
    """The folder `keys` of a data home; its files are readable by their owner only."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "keys"

    def open(self, user_id: UserId, device_id: str) -> KeyStore:
        """The device's keys; a new and empty store where there is none yet.

        Raises:
            KeysLost: the file is damaged.
            Unreachable: the file can't be used now; to be tried again.
        """
        path = self.path(user_id, device_id)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise Unreachable(f"{path}: can't be used: {error.strerror}; is the folder writable?") from error
        try:
            store = KeyStore(user_id, device_id, str(self._folder), database_name=path.name)
            faults = store.database.pragma("quick_check")
        except Exception as error:
            name = sqlite_error(error)
            if name is None:
                raise
            raise (KeysLost if name in _DAMAGED else Unreachable)(f"{path}: can't be used: {error}") from error
        if faults != "ok":
            store.close()
            raise KeysLost(f"{path}: is damaged: {faults!r:.200}")
        return store

    def path(self, user_id: UserId, device_id: str) -> Path:
        """Where a device's keys are, whether there are any yet or not."""
        # nio's own name, of both ids in full, can be longer than file systems allow. One file for two devices of an
        # account would lose the room keys that both are given: it keeps each under its own id alone.
        digest = hashlib.sha256(f"{user_id}\0{device_id}".encode()).hexdigest()
        return self._folder / f"{re.sub(r'[^a-z0-9._-]', '_', user_id[1:])[:_LONGEST_NAME]}-{digest[:16]}.db"
