"""A bridge that notes each step it reaches and ends itself by SIGKILL at one of them; started instead of `mindbridge`.

It writes the points that it passed into `points` in its folder. A kill rule in `kill.json` there counts from the moment
at which it was written.
"""

import json
import os
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from mindbridge import steps
from mindbridge.cli.main import main
from mindbridge.steps import Side, Step

PROGRAM = (str(Path(__file__)),)
POINTS, RULE = "points", "kill.json"


@dataclass(frozen=True)
class Point:
    """Right before or right after a step, for the `nth` time since the rule was written."""

    step: Step
    side: Side
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.side} {self.step} number {self.nth}"


def kill_at(folder: Path, point: Point) -> None:
    """Writes the rule for the bridge in this folder."""
    written = folder / "rule being written"
    written.write_text(json.dumps(asdict(point)), "utf-8")
    written.replace(folder / RULE)


def spare(folder: Path) -> None:
    """Takes the rule away."""
    (folder / RULE).unlink()


def points_passed(folder: Path) -> list[tuple[Step, Side]]:
    """All points that the bridge in this folder has passed since its first start."""
    path = folder / POINTS
    lines = [line.split() for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    return [(Step(step), "before" if side == "before" else "after") for step, side in lines]


class Watcher:
    """Notes each point; kills at the one that the rule names."""

    def __init__(self, folder: Path) -> None:
        self._rule_file = folder / RULE
        self._rule: Point | None = None
        self._times = 0
        # Unbuffered: a killed process flushes nothing.
        self._points = (folder / POINTS).open("ab", buffering=0)

    def __call__(self, step: Step, side: Side) -> None:
        self._points.write(f"{step} {side}\n".encode())
        if self._rule is None and self._rule_file.exists():
            self._rule = Point(**json.loads(self._rule_file.read_text("utf-8")))
        if self._rule is not None and (step, side) == (self._rule.step, self._rule.side):
            self._times += 1
            if self._times == self._rule.nth:
                os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    steps.watcher = Watcher(Path.cwd())
    sys.exit(main())
