"""What is wrong with a configuration file, and where, as a person is told."""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]
"""The way to a value: keys of mappings and, counted from 0, places in lists."""

_PLAIN_KEY = re.compile(r"[\w-]+")
_SHOWN_CHARACTERS = 60


class Place(NamedTuple):
    """A line and a column, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One thing that is wrong: `line` and `column` count from 1, `path` is dotted, `message` is one printable line."""

    line: int
    column: int
    path: str
    message: str


class ConfigError(Exception):
    """A configuration that can't be used, with all its faults.

    `str()` gives one `FILE:LINE:COLUMN path: what is wrong, what would be right` a line, sorted by position. No line
    holds a secret or anything that came out of an environment variable.
    """

    def __init__(self, file: Path, faults: Iterable[Fault]) -> None:
        self.file = file
        self.faults = tuple(sorted(set(faults)))
        super().__init__(
            "\n".join(
                f"{printable(file)}:{fault.line}:{fault.column} {fault.path}: {fault.message}" for fault in self.faults
            )
        )


def dotted(path: KeyPath) -> str:
    """`agents.assistant.rooms[0]`; `(file)` for the file as a whole.

    Keys that are no plain words stand in quotes, and only up to a colon, behind which there may be a secret.
    """
    words = ""
    for part in path:
        if isinstance(part, int):
            words += f"[{part}]"
        else:
            name, colon, _ = part.partition(":")
            words += "." * bool(words) + (part if _PLAIN_KEY.fullmatch(part) else quoted(name + colon))
    return words or "(file)"


def quoted(text: str) -> str:
    """The text in quotes on one printable line, cut off where it gets long."""
    shown = text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
    shown = json.dumps(shown, ensure_ascii=False)
    return "".join(char if char.isprintable() else char.encode("ascii", "backslashreplace").decode() for char in shown)


def printable(path: Path) -> str:
    """A file's name as it can be written to a terminal; bytes that are no text are shown as `�`."""
    name = os.fsencode(path).decode("utf-8", "replace")
    return "".join(char if char.isprintable() else "�" for char in name)
