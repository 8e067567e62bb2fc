"""The table that every benchmark ends with."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One result and the most that it may be, in the same unit; a figure without a target is only told."""

    name: str
    result: float
    most: float | None
    unit: str = ""

    @property
    def missed(self) -> bool:
        """Whether it is over its target."""
        return self.most is not None and self.result > self.most


def print_table(title: str, figures: Sequence[Figure]) -> int:
    """Prints the figures; gives the exit status, 1 where a target was missed."""
    print(f"{title:<58}{'target':>13}{'result':>13}")
    for figure in figures:
        target = "" if figure.most is None else f"≤ {figure.most:g} {figure.unit}"
        result = f"{figure.result:.2f} {figure.unit}"
        print(f"{figure.name:<58}{target:>13}{result:>13}{'  MISSED' if figure.missed else ''}")
    return int(any(figure.missed for figure in figures))
