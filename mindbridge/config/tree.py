"""A configuration file as plain values, each with its place in the file, and what is wrong with it so far."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from mindbridge.config.faults import ConfigError, Fault, KeyPath, Place, dotted

SECRETS = frozenset({"password", "access_token"})

Section: TypeAlias = "dict[str, object]"


@dataclass(slots=True)
class Tree:
    """What a file says, and where.

    `data` holds dicts, tuples, str, int, float, bool and None. `unknown` are the paths whose values could not be read,
    as `faults` already tells; `foreign` those of texts with something out of the environment. `values` and `keys` tell
    where the value at a path begins, and its key.
    """

    file: Path
    data: Section = field(default_factory=dict, repr=False)
    faults: list[Fault] = field(default_factory=list)
    unknown: set[KeyPath] = field(default_factory=set)
    foreign: set[KeyPath] = field(default_factory=set)
    values: dict[KeyPath, Place] = field(default_factory=dict)
    keys: dict[KeyPath, Place] = field(default_factory=dict)

    def blame(self, path: KeyPath, message: str, at: Place | None = None) -> None:
        """Adds a fault, at the value of `path` unless told where; a value that is missing is told at its holder."""
        holder = path
        while at is None:
            at = self.values.get(holder)
            holder = holder[:-1]
        secret = next((index for index, part in enumerate(path) if _names_secret(index, part)), len(path))
        self.faults.append(Fault(at.line, at.column, dotted(path[: secret + 1]), message))

    def is_secret(self, path: KeyPath) -> bool:
        """Whether the value at `path` may not be told: a password, a token, or out of the environment."""
        return path in self.foreign or any(_names_secret(index, part) for index, part in enumerate(path))

    def is_unknown(self, path: KeyPath) -> bool:
        """Whether the value at `path`, or what should hold it, could not be read."""
        return any(path[:length] in self.unknown for length in range(len(path) + 1))

    def section(self, path: KeyPath) -> Section:
        """The mapping at `path`; an empty one where there is none."""
        value = self.value(path)
        return value if isinstance(value, dict) else {}

    def value(self, path: KeyPath) -> object:
        """The value at `path`, None where there is none."""
        value: object = self.data
        for part in path:
            if isinstance(value, dict):
                value = value.get(part)
            elif isinstance(value, tuple) and isinstance(part, int) and part < len(value):
                value = value[part]
            else:
                return None
        return value

    def refuse_if_faulty(self) -> None:
        """Raises `ConfigError` with all faults so far, if there are any."""
        if self.faults:
            raise ConfigError(self.file, self.faults)


def _names_secret(index: int, part: str | int) -> bool:
    return part in SECRETS and index != 1  # there stands the name of an agent
