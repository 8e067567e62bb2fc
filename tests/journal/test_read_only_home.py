"""`mindbridge journal` where nothing can be written beside the journal."""

import json
from pathlib import Path

import pytest

from mindbridge.cli.main import main
from mindbridge.journal.database import FILE_NAME, Database
from tests.journal.sample_rows import queue, turn
from tests.journal.test_backup import CONFIGURATION
from tests.journal.test_reports import ask

READING = (["status"], ["questions"], ["show", "question_q"], ["why", "$of q"], ["export"], ["backup"])


def forbid_files_beside(journal: Path) -> None:
    """SQLite follows no link in the place of a file that it makes; unlike a folder's mode that binds root too."""
    for kind in ("wal", "shm"):
        beside = journal.with_name(f"{journal.name}-{kind}")
        if not beside.exists():
            beside.symlink_to("nowhere")


def command(tmp_path: Path, *words: str) -> list[str]:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIGURATION)
    target = [str(tmp_path / "copy.sqlite3")] if words == ("backup",) else []
    return ["journal", *words, "-c", str(config), *target]


@pytest.mark.parametrize("words", READING, ids=lambda words: words[0])
async def test_commands_that_only_read_work_after_a_clean_stop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    database = await Database.open(tmp_path / "home")
    await ask(database)
    await database.close()
    forbid_files_beside(database.path)
    there = sorted(path.name for path in database.path.parent.iterdir())

    status = main(command(tmp_path, *words))

    output = capsys.readouterr()
    assert (status, output.err) == (0, "")
    assert output.out
    assert sorted(path.name for path in database.path.parent.iterdir()) == there


async def test_what_is_only_in_the_log_is_not_passed_over(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "copied" / "home"
    home.mkdir(parents=True)
    await queue(database, turn())
    for path in database.path.parent.glob(f"{FILE_NAME}*"):
        if not path.name.endswith("-shm"):
            (home / path.name).write_bytes(path.read_bytes())
    forbid_files_beside(home / FILE_NAME)

    assert main(command(home.parent, "status")) == 1

    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"{home / FILE_NAME}: can't be read: ")


async def test_reading_beside_a_running_bridge_sees_what_it_wrote_last(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await queue(database, turn())
    assert main(command(tmp_path, "show", "turn_one", "--json")) == 0
    assert json.loads(capsys.readouterr().out)["turn"]["text"] == "message one"


def test_home_that_can_not_be_looked_into_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "x" * 300
    config = tmp_path / "config.yaml"
    config.write_text(CONFIGURATION.replace("./home", f"./{name}"))

    assert main(["journal", "status", "-c", str(config)]) == 1

    assert capsys.readouterr().err.startswith(f"{tmp_path / name / FILE_NAME}: can't be read: ")
