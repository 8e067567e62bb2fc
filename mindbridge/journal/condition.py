"""The state that the journal is in, for those who look after it: read only, beside a running bridge."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from mindbridge.ids import AgentName, UserId
from mindbridge.journal.database import FILE_NAME, QUERIES, JournalError, damage_told_by, migrations, version_of
from mindbridge.journal.reading import connect_to_read

NEWEST_VERSION = migrations()[-1][0]
_LOCKS = Path("/proc/locks")


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """What the journal knows of an agent's account that somebody may have to look at.

    Args:
        agent: the agent.
        user_id: its account.
        wait_until: nothing is sent before this time, in milliseconds; 0 where it never had to wait.
        limited_at: when the server last said that it sends too much, in milliseconds; 0 if never.
        budget: what was learned of the server's limits, as JSON.
        parked: how many turns are parked.
        refused: how many deliveries the server refused, since the time that was asked for.
        uncertain: how many deliveries nobody knows the outcome of, since then.
    """

    agent: AgentName
    user_id: UserId
    wait_until: int
    limited_at: int
    budget: str | None
    parked: int
    refused: int
    uncertain: int


@dataclass(frozen=True, slots=True)
class Condition:
    """A sound journal.

    Args:
        version: the last migration that was done to it; 0 where the file is still empty.
        agents: what it knows of each agent; empty where the version is not the newest.
    """

    version: int
    agents: tuple[AgentRecord, ...]


def examine(home: Path, since_ms: int) -> Condition | None:
    """Reads all of the journal in a data home and checks it (SQLite's `quick_check`).

    Args:
        home: the data home.
        since_ms: deliveries that failed before this time, in milliseconds, don't count.

    Returns:
        What it holds; None where there is no journal yet.

    Raises:
        JournalError: it can't be read, or is no journal; JournalDamaged where the file is damaged.
    """
    path = home / FILE_NAME
    try:
        if not path.exists():
            return None
        with closing(connect_to_read(path)) as connection:
            version = version_of(path, connection.execute(QUERIES["kind_of_file"]).fetchone())
            fault = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
            if fault != "ok":
                raise _corrupt(fault)
            if version != NEWEST_VERSION:
                return Condition(version, ())
            rows = connection.execute(QUERIES["report_condition"], {"since": since_ms})
            return Condition(version, tuple(AgentRecord(**row) for row in rows))
    except OSError as error:
        raise JournalError(
            f"{path}: can't be read: {error.strerror}; is this the user that runs the bridge?"
        ) from error
    except sqlite3.Error as error:
        raise damage_told_by(error, path) or JournalError(
            f"{path}: can't be read: {error}; is this the user that runs the bridge?"
        ) from error


def _corrupt(fault: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(fault)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def running_bridge(home: Path) -> int | None:
    """The process of the bridge that runs on a data home; None where there is none, or the system does not tell.

    Linux lists who holds which lock; to try the lock itself would keep a bridge from starting at that moment.
    """
    try:
        holder = (home / "lock").read_text("ascii").strip()
        locks = [line.split() for line in _LOCKS.read_text("ascii").splitlines()]
    except (OSError, ValueError):
        return None
    held = any(words[1:2] == ["FLOCK"] and words[3:5] == ["WRITE", holder] for words in locks)
    return int(holder) if held else None
