"""The examples of the documentation are true: configurations load, agents reply, blocks ask, output is as shown."""

import configparser
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mindbridge.agents.backend import make_backend
from mindbridge.agents.turn import Selection, Turn
from mindbridge.cli.main import _parser, main
from mindbridge.config.faults import ConfigError
from mindbridge.config.load import load_config
from mindbridge.ids import QuestionId
from mindbridge.matrix.content import question_metadata
from mindbridge.questions.lifecycle import State
from mindbridge.questions.read import read_reply
from mindbridge.questions.render import render_reply
from tests.unit.doc_pages import DOCS, PAGES, ROOT, Fence, modules_forgotten, page
from tests.unit.sample_turn import selection, turn

QUESTIONS, AGENTS, COMMANDS = page("docs/questions.md"), page("docs/agents.md"), page("docs/commands.md")
CONFIGURATION, OPERATION = page("docs/configuration.md"), page("docs/operation.md")
ENVIRON = {"ASSISTANT_PASSWORD": "pw"}


@pytest.fixture(autouse=True)
def agents_are_imported_anew() -> Iterator[None]:
    with modules_forgotten():
        yield


def fences(language: str, pages: list[Path] = PAGES) -> list[Any]:
    """All examples of a language, each named by its page and heading."""
    found = [(path, fence) for path in pages for fence in page(path).fences(language)]
    return [pytest.param(fence, id=f"{path.relative_to(ROOT)}: {fence.heading}") for path, fence in found]


# The first agent


@pytest.mark.parametrize(("language", "file"), [("python", "agent.py"), ("yaml", "config.yaml")])
def test_readme_shows_the_first_example_as_it_is(language: str, file: str) -> None:
    assert page("README.md").fence(language) == (ROOT / "examples/first" / file).read_text("utf-8")


# Configurations


@pytest.mark.parametrize("fence", fences("yaml"))
def test_configurations_load_unless_their_errors_are_shown(fence: Fence, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(fence.content)

    if fence.heading == "Errors":
        with pytest.raises(ConfigError):
            load_config(tmp_path / "config.yaml", ENVIRON)
    else:
        assert list(load_config(tmp_path / "config.yaml", ENVIRON).agents) == ["assistant"]


def test_errors_are_those_of_the_configuration_above_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = CONFIGURATION.section("Errors")
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(section.fence("yaml"))

    with pytest.raises(ConfigError) as caught:
        load_config(Path("config.yaml"), {})

    assert f"{caught.value}\n" == section.fence("text")


# Agents


@pytest.mark.parametrize("kind", ["command", "python", "demo"])
async def test_documented_agents_ask_and_take_the_answer(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = AGENTS.section(kind)
    (tmp_path / "config.yaml").write_text(section.fence("yaml"))
    for program in section.fences("python"):
        (tmp_path / "agent.py").write_text(program.content)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    config = load_config(tmp_path / "config.yaml", ENVIRON)
    backend = make_backend(config.agents["assistant"], config.folder)

    asked = read_reply(await backend.reply(turn(text="hello", instructions=("Be brief.",))))
    answered = await backend.reply(turn(kind="selection", selection=selection()))

    assert asked.problems == ()
    assert asked.question is not None
    assert answered.startswith("You chose")


# Blocks


@pytest.mark.parametrize("fence", fences("markdown"))
def test_blocks_ask_without_problems(fence: Fence) -> None:
    reply = read_reply(fence.content)

    assert reply.problems == ()
    assert reply.question is not None


@pytest.mark.parametrize(
    ("page_with_output", "heading_of_reply", "heading"),
    [(QUESTIONS, "The block", "What people see"), (COMMANDS, "mindbridge preview", "mindbridge preview")],
    ids=["questions", "preview"],
)
def test_preview_prints_what_is_shown(
    page_with_output: Any, heading_of_reply: str, heading: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reply = tmp_path / "reply.md"
    reply.write_text(page_with_output.section(heading_of_reply).fence("markdown"))

    assert main(["preview", str(reply)]) == 0

    printed = capsys.readouterr().out
    shown = page_with_output.section(heading).fence("text")
    assert printed.partition("Buttons: ")[0].strip() == shown.partition("Buttons: ")[0].strip()
    assert shown in printed


def test_preview_prints_the_json_that_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    section = COMMANDS.section("mindbridge preview")
    (tmp_path / "reply.md").write_text(section.fence("markdown"))

    assert main(["preview", "--json", str(tmp_path / "reply.md")]) == 0

    assert json.loads(capsys.readouterr().out) == json.loads(section.fence("json"))


def test_metadata_is_as_shown() -> None:
    (part,) = render_reply(read_reply(QUESTIONS.section("The block").fence("markdown")))
    shown = json.loads(QUESTIONS.section("For authors of clients and bots").fence("json"))
    assert part.question is not None

    assert question_metadata(QuestionId(shown["question_id"]), part.question, State.OPEN) == shown


REPAIRED = [
    '{"question": "Q", "options": ["A", "B",],}',
    "{'question': 'Q', 'options': ['A', 'B']}",
    "{“question”: “Q”, “options”: [“A”, “B”]}",
    '{"question": "Q", // which\n "options": ["A", "B"]}',
    '{"question": "Q", "options": [{"label": "A", "value": True}, "B"]}',
    '{"question": "Q\n", "options": ["A", "B"]}',
    '{"question": "Q", "options": ["A", "B"]',
]


@pytest.mark.parametrize("block", REPAIRED)
def test_what_is_said_to_be_mended_is_mended(block: str) -> None:
    reply = read_reply(f"```interactive\n{block}\n```")

    assert reply.problems == ()
    assert reply.question is not None
    assert (reply.question.text, [option.label for option in reply.question.options]) == ("Q", ["A", "B"])


# JSON


@pytest.mark.parametrize("fence", fences("json"))
def test_json_parses(fence: Fence) -> None:
    assert json.loads(fence.content)


def test_turn_is_a_turn_as_agents_get_it() -> None:
    shown = json.loads(AGENTS.section("The turn").fence("json"))

    told = Turn.model_validate_json(json.dumps(shown)).model_dump_json()

    assert list(json.loads(told).items()) == list(shown.items())


def test_selection_is_a_selection_as_agents_get_it() -> None:
    shown = json.loads(QUESTIONS.section("The selection").fence("json"))

    told = Selection.model_validate_json(json.dumps(shown)).model_dump_json()

    assert list(json.loads(told).items()) == list(shown.items())


# Commands


def typed_commands(script: str) -> Iterator[list[str]]:
    """The arguments of each `mindbridge` in a script."""
    for line in script.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        for number, word in enumerate(words[:-1]):
            if Path(word).name == "mindbridge" and words[number + 1] in {"run", "check", "preview", "demo", "journal"}:
                yield words[number + 1 :]


@pytest.mark.parametrize("fence", fences("sh"))
def test_scripts_can_be_typed(fence: Fence) -> None:
    checked = subprocess.run(["sh", "-n"], input=fence.content, text=True, capture_output=True, check=False)  # noqa: S607
    makefile = (ROOT / "Makefile").read_text("utf-8")

    assert checked.returncode == 0, checked.stderr
    for arguments in typed_commands(fence.content):
        _parser().parse_args(arguments)
    for target in re.findall(r"^make (\w+)", fence.content, re.MULTILINE):
        assert f"\n{target}:" in makefile


def test_scripts_hold_commands() -> None:
    scripts = "".join(fence.content for path in PAGES for fence in page(path).fences("sh"))

    assert [arguments[0] for arguments in typed_commands(scripts)].count("journal") > 1


def test_service_runs_the_bridge_and_does_not_restart_a_wrong_configuration() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.read_string(OPERATION.section("As a systemd service").fence("ini"))
    service = unit["Service"]
    ((command, *options),) = typed_commands(service["ExecStart"])

    assert command == "run"
    assert options == ["-c", "/etc/mindbridge/config.yaml"]
    assert service["RestartPreventExitStatus"] == "2"


def test_every_language_of_an_example_is_tested() -> None:
    languages = {fence.language for path in DOCS for fence in page(path).fences()}

    assert languages == {"ini", "json", "markdown", "python", "sh", "text", "yaml"}
