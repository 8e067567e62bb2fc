"""Which Synapse the demo and the live tests use."""

from pathlib import Path

import pytest

from mindbridge.demo.homeserver import HomeserverError
from mindbridge.demo.synapse import find_synapse_python


def environment(folder: Path) -> Path:
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    return python


def test_the_environment_beside_is_found(tmp_path: Path) -> None:
    python = environment(tmp_path / ".synapse")
    assert find_synapse_python({}, tmp_path) == python


def test_a_named_environment_comes_first(tmp_path: Path) -> None:
    environment(tmp_path / ".synapse")
    named = environment(tmp_path / "named")
    assert find_synapse_python({"MINDBRIDGE_SYNAPSE": str(tmp_path / "named")}, tmp_path) == named


def test_a_missing_environment_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(HomeserverError, match="make setup"):
        find_synapse_python({}, tmp_path)
    with pytest.raises(HomeserverError, match="elsewhere"):
        find_synapse_python({"MINDBRIDGE_SYNAPSE": "elsewhere"}, tmp_path)
