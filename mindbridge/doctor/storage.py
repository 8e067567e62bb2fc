"""Whether the data home can be used, its journal is sound, and its disk has room."""

import os
import pwd
import shutil
from pathlib import Path

from mindbridge.doctor.findings import Finding, Status
from mindbridge.journal.condition import NEWEST_VERSION, Condition
from mindbridge.journal.database import FILE_NAME

LEAST_FREE_BYTES = 100_000_000


def home_fault(home: Path) -> Finding | None:
    """What keeps this user from working in the data home; None where a bridge of this user can, or could make it."""
    try:
        place = _existing(home)
        if not place.is_dir():
            return _fault(f"{place} is a file", f"move it away, or set `journal` to a folder other than {home}")
        path = home / FILE_NAME
        owner = _owner(path, home)
        if owner != os.geteuid():
            them, us = _user_name(owner), _user_name(os.geteuid())
            return _fault(
                f"{home} is used by the user {them}, this is {us}",
                f"do this as the user that runs the bridge: `sudo -u {them} mindbridge doctor …`",
            )
        for each in (place, path):
            if each.exists() and not os.access(each, os.W_OK):
                return _fault(f"{each} can't be written", f"let the user {_user_name(os.geteuid())} write it")
    except OSError as error:
        return _fault(
            f"{home} can't be looked at: {error.strerror}", f"let the user {_user_name(os.geteuid())} into it"
        )
    return None


def journal_check(home: Path, condition: Condition | None, process: int | None) -> Finding:
    """What to say of a journal that is sound, or not there yet.

    Args:
        home: the data home.
        condition: what the journal holds.
        process: that of the bridge that runs on it, where that is known.
    """
    path = home / FILE_NAME
    if condition is None:
        return Finding("journal", None, Status.OK, f"{path}: there is none yet; `mindbridge run` makes it")
    if condition.version > NEWEST_VERSION:
        found = (
            f"{path} was written by a newer mindbridge: version {condition.version}, this one knows {NEWEST_VERSION}"
        )
        return Finding("journal", None, Status.FAIL, found, "install the newer version again")
    found = f"{path} is sound"
    if condition.version < NEWEST_VERSION:
        found += f"; version {condition.version}, which `mindbridge run` brings to {NEWEST_VERSION}"
    if process is not None:
        found += f"; a bridge runs on it (process {process})"
    return Finding("journal", None, Status.OK, found)


def disk_check(home: Path) -> Finding:
    """Whether there is room on the data home's disk."""
    try:
        place = _existing(home)
        free = shutil.disk_usage(place).free
    except OSError as error:
        return Finding(
            "disk", None, Status.WARN, f"can't be told: {error.strerror}", "see to the journal's folder first"
        )
    found = f"{free / 1_000_000:,.0f} MB free"
    if free >= LEAST_FREE_BYTES:
        return Finding("disk", None, Status.OK, found)
    advice = f"make room on the disk of {place}: when it is full, nothing is taken in and nothing is sent"
    return Finding("disk", None, Status.WARN, found, advice)


def _fault(found: str, advice: str) -> Finding:
    return Finding("journal", None, Status.FAIL, found, advice)


def _existing(path: Path) -> Path:
    """The path, or the nearest folder above it that is there."""
    return next(each for each in (path, *path.parents) if each.exists())


def _owner(path: Path, home: Path) -> int:
    """Who runs the bridge, as far as files tell; whoever asks where they don't."""
    if path.exists():
        return path.stat().st_uid
    # A folder may be another's and writable to the bridge all the same. But what root makes in it, only root can read.
    return home.stat().st_uid if os.geteuid() == 0 and home.exists() else os.geteuid()


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
