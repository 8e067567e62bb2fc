"""What the oldest Python that is supported can't do."""

import re
from pathlib import Path

import mindbridge

PACKAGE = Path(mindbridge.__file__).parent


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python before 3.11.5 matches `(?:…)*+` wrongly; an atomic group says the same."""
    found = [
        f"{path.name}:{number}"
        for path in PACKAGE.rglob("*.py")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search(r"(?<!\\)\)[*+?]\+", line)
    ]
    assert found == []
