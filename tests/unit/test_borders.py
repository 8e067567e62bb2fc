"""The borders between the parts, as pyproject.toml draws them for import-linter; and that crossing one is seen."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 -- the tool of this very environment
        [LINT_IMPORTS, "--no-cache", "--no-logo"], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def test_no_part_crosses_a_border() -> None:
    linted = lint_imports(ROOT)
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.parametrize(
    ("module", "line", "seen"),
    [
        ("questions/intruder.py", "import asyncio", "mindbridge.questions.intruder -> asyncio"),
        ("questions/intruder.py", "import mindbridge.ids", "mindbridge.questions.intruder -> mindbridge.ids"),
        ("bridge/intruder.py", "import nio", "mindbridge.bridge.intruder -> nio"),
        ("matrix/intruder.py", "import sqlite3", "mindbridge.matrix.intruder -> sqlite3"),
        ("matrix/intruder.py", "import mindbridge.agents", "mindbridge.matrix.intruder -> mindbridge.agents"),
        ("journal/intruder.py", "import mindbridge.app", "mindbridge.journal.intruder -> mindbridge.app"),
        ("intruder.py", "", "mindbridge.intruder"),
    ],
)
def test_crossing_a_border_is_reported(tmp_path: Path, module: str, line: str, seen: str) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "mindbridge", tmp_path / "mindbridge", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "mindbridge" / module).write_text(f"{line}\n")

    linted = lint_imports(tmp_path)

    assert linted.returncode == 1, linted.stdout + linted.stderr
    assert seen in linted.stdout
