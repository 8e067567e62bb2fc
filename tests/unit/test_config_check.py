"""`mindbridge check`: one line about a good configuration, every error about another."""

import sys
from pathlib import Path

import pytest

from mindbridge.cli import check
from tests.unit.config_files import SMALL, with_agent_key, with_backend, write


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def errors(capsys: pytest.CaptureFixture[str], text: str) -> list[str]:
    status = check.run(write(Path(), text))
    output = capsys.readouterr()
    assert (status, output.out) == (2, "")
    return output.err.splitlines()


def is_good(capsys: pytest.CaptureFixture[str], text: str) -> bool:
    status = check.run(write(Path(), text))
    output = capsys.readouterr()
    assert output.err == "", output.err
    return (status, output.out.count("\n")) == (0, 1)


def test_a_good_configuration_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    second = SMALL.partition("agents:\n")[2].replace("one", "two")

    assert check.run(write(Path(), SMALL)) == 0
    assert check.run(write(Path(), SMALL + second)) == 0

    output = capsys.readouterr()
    assert output.err == ""
    assert output.out.splitlines() == [
        f"config.yaml: good: 1 agent (one), journal in {tmp_path / 'journal'}",
        f"config.yaml: good: 2 agents (one, two), journal in {tmp_path / 'journal'}",
    ]


def test_every_error_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    lines = errors(capsys, with_agent_key("threads: yes\n    respond: on"))

    assert [line.partition(": ")[0] for line in lines] == [
        "config.yaml:11:14 agents.one.threads",
        "config.yaml:12:14 agents.one.respond",
    ]


def test_a_missing_file_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.run(Path("none.yaml")) == 2
    assert capsys.readouterr().err.startswith("none.yaml:1:1 (file): is not there")


def test_variables_of_the_process_count(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGE_TEST_PASSWORD", "pw")

    assert is_good(capsys, SMALL.replace("secret-one", "${BRIDGE_TEST_PASSWORD}"))


def test_nothing_is_made(tmp_path: Path) -> None:
    check.run(write(Path(), SMALL))

    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


def test_a_journal_that_is_a_file_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    Path("journal").touch()

    assert [line.partition(": ")[0] for line in errors(capsys, SMALL)] == ["config.yaml:1:1 journal"]
    assert [line.partition(": ")[0] for line in errors(capsys, SMALL + "journal: ./journal\n")] == [
        "config.yaml:11:10 journal"
    ]


def command(program: str | Path) -> str:
    return with_backend("type: command", f'command: ["{program}", "x"]')


def test_a_program_in_path_or_with_its_folder_is_good(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("agent", "bin/agent"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("#!/bin/sh\n")
        Path(name).chmod(0o755)

    assert is_good(capsys, command("sh"))
    assert is_good(capsys, command("./agent"))
    assert is_good(capsys, command("bin/agent"))
    assert is_good(capsys, command(sys.executable))


@pytest.mark.parametrize(
    "program", ["agent", "no-such-program", "./none", "./folder", "/none/agent", "~/agent", "./agent"]
)
def test_a_program_that_can_not_be_started_is_an_error(capsys: pytest.CaptureFixture[str], program: str) -> None:
    Path("agent").write_text("#!/bin/sh\n")
    Path("agent").chmod(0o644)
    Path("folder").mkdir()

    lines = errors(capsys, command(program))

    assert [line.partition(": ")[0] for line in lines] == ["config.yaml:11:17 agents.one.backend.command[0]"]


def python(reference: str) -> str:
    return with_backend("type: python", f"python: {reference}")


def test_a_module_beside_the_file_or_installed_is_good_and_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("agent.py", "package/__init__.py", "package/agent.py", "space/deep/agent.py"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("raise AssertionError('was run')\n")

    for reference in ("agent:reply", "package:reply", "package.agent:reply", "space.deep.agent:reply"):
        assert is_good(capsys, python(reference))
    for installed in ("json:dumps", "sys:intern", "mindbridge.agents.demo:reply", "pydantic.main:x"):
        assert is_good(capsys, python(installed))
    assert not {"agent", "package", "space"} & set(sys.modules)


@pytest.mark.parametrize(
    "reference", ["none:x", "package.none:x", "agent.deep:x", "space:x", "space.none:x", "json.none:x"]
)
def test_a_module_that_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str], reference: str) -> None:
    Path("agent.py").touch()
    for folder in ("package", "space"):
        Path(folder).mkdir()
    Path("package/__init__.py").touch()

    lines = errors(capsys, python(reference))

    assert [line.partition(": ")[0] for line in lines] == ["config.yaml:11:15 agents.one.backend.python"]


def test_what_is_absent_is_told_for_all_agents(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    second = command(tmp_path / "none").partition("agents:\n")[2].replace("one:", "two:")

    lines = errors(capsys, python("none:reply") + second.replace("@one", "@two"))

    assert [line.partition(" ")[2].partition(": ")[0] for line in lines] == [
        "agents.one.backend.python",
        "agents.two.backend.command[0]",
    ]
