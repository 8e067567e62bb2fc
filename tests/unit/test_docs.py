"""The documentation names all that there is: keys, commands, codes, fields; and its links lead somewhere."""

import argparse
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mindbridge.agents.turn import HistoryEntry, OpenQuestion, SelectedOption, Selection, Sender, Turn, TurnProblem
from mindbridge.bridge import turn_input
from mindbridge.cli.main import _parser
from mindbridge.config.schema import SECTIONS
from mindbridge.journal.records import CloseReason
from mindbridge.matrix.identity import Outcome
from mindbridge.questions import blocks, emoji_keys, fields, json_object, json_text, read
from mindbridge.questions.answers import TOLD, Verdict, typed_number
from mindbridge.questions.lifecycle import State
from mindbridge.questions.model import ProblemCode
from tests.unit.doc_pages import DOCS, PAGES, ROOT, anchor_of, codes_of, page

QUESTIONS, AGENTS = page("docs/questions.md"), page("docs/agents.md")
COMMANDS, CONFIGURATION = page("docs/commands.md"), page("docs/configuration.md")


def test_every_page_is_there() -> None:
    assert [path.stem for path in DOCS] == [
        "agents",
        "commands",
        "configuration",
        "encryption",
        "operation",
        "questions",
        "reliability",
    ]


# Configuration


def documented_default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    match field.default:
        case timedelta() as time:
            return f"`{time.days}d`" if time.days else f"`{time.total_seconds():g}s`"
        case Path() as path:
            return f"`./{path}`"
        case BaseModel():
            return "`{}`"
        case str() as text:
            return f"`{text}`"
        case value:
            return f"`{json.dumps(value)}`"


def test_every_key_of_the_configuration_stands_there_with_its_default() -> None:
    expected: dict[str, str] = {}
    for place, section in SECTIONS.items():
        prefix = "agents.NAME.backend" if "backend" in place else place
        for key, field in section.model_fields.items():
            expected[key if prefix == "the top level" else f"{prefix}.{key}"] = documented_default(field)
    rows = CONFIGURATION.section("All keys").rows()

    assert {key.strip("`"): default for key, _, default, _ in rows} == expected
    assert len(rows) == len(expected)


# Commands


def commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:  # noqa: SLF001 -- argparse has no public way to its options
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 -- likewise
            for command in action.choices.values():
                yield from commands(command)


ALL_COMMANDS = list(commands(_parser()))
RUNNABLE = [command for command in ALL_COMMANDS if "..." not in command.format_usage()]


def test_every_command_has_its_section() -> None:
    names = {command.prog for command in ALL_COMMANDS} - {"mindbridge"}

    assert {heading for heading in COMMANDS.headings() if heading.startswith("mindbridge")} == names


@pytest.mark.parametrize("command", RUNNABLE, ids=lambda command: command.prog)
def test_every_command_is_shown_with_its_options(
    command: argparse.ArgumentParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    usage = command.format_usage().removeprefix("usage: ").strip().replace(" [-h]", "")

    assert usage in COMMANDS.section(command.prog).codes()


@pytest.mark.parametrize("command", ALL_COMMANDS, ids=lambda command: command.prog)
def test_every_option_is_explained(command: argparse.ArgumentParser) -> None:
    rows = COMMANDS.section("For all commands").rows()
    if command is not ALL_COMMANDS[0]:
        rows += COMMANDS.section(command.prog).rows()
    explained = {code.partition(" ")[0] for option, *_ in rows for code in codes_of(option)}
    options = {name for action in command._actions for name in action.option_strings}  # noqa: SLF001 -- as above

    assert options <= explained


def test_overview_links_every_command() -> None:
    top = {command.prog for command in ALL_COMMANDS if command.prog.count(" ") == 1}
    rows = COMMANDS.section("Commands").rows()

    assert {code for command, _ in rows for code in codes_of(command)} == top


def test_every_state_of_the_journal_is_named() -> None:
    scripts = sorted((ROOT / "mindbridge/journal/migrations").glob("*.sql"))
    migration = "".join(script.read_text("utf-8") for script in scripts)
    states = {
        state.strip(" '")
        for check in migration.split("CHECK (")[1:]
        if check.startswith(("state IN", "kind IN"))
        for state in check.partition("(")[2].partition(")")[0].split(",")
    }
    memberships = {"accepted", "joined", "left"}  # the journal's own business
    kinds_of_turns = {"message", "selection"}

    assert set(State) < states
    assert states - memberships - kinds_of_turns <= COMMANDS.section("mindbridge journal").codes()


def test_every_reason_why_a_question_is_closed_is_named() -> None:
    assert set(get_args(CloseReason)) <= COMMANDS.section("mindbridge journal").codes()


# Codes


def test_every_outcome_of_signing_stands_there_with_what_to_do() -> None:
    rows = page("docs/encryption.md").section("Signed devices").rows()

    assert sorted(code for outcomes, _ in rows for code in codes_of(outcomes)) == sorted(Outcome)
    assert all(advice for _, advice in rows)


def test_every_verdict_stands_there_with_who_is_told() -> None:
    told = {verdict.strip("`"): words for verdict, _, words in QUESTIONS.section("Verdicts").rows()}

    assert set(told) == set(Verdict)
    assert {verdict for verdict, words in told.items() if words != "no"} == TOLD | {Verdict.SELECTED}


def test_every_problem_stands_there() -> None:
    assert {code.strip("`") for code, _ in AGENTS.section("Problems").rows()} == set(ProblemCode)


def test_every_kind_of_broken_block_names_its_problem() -> None:
    rows = [row for row in QUESTIONS.section("Broken blocks").rows() if len(row) == len(["wrong", "seen", "problem"])]
    named = {problem.strip("`") for _, _, problem in rows} - {"none"}

    assert named == set(ProblemCode) - {ProblemCode.QUESTION_NOT_POSTED}


# Fields


def field_table(heading: str) -> list[str]:
    return [code for names, _ in AGENTS.section(heading).rows() for code in codes_of(names)]


def test_every_field_of_the_turn_is_explained_in_order() -> None:
    in_json = [name for name, field in Turn.model_fields.items() if not field.exclude]

    assert field_table("The turn") == in_json
    assert set(Turn.model_fields) - set(in_json) <= AGENTS.section("python").codes()


def test_every_field_of_the_selection_is_explained_in_order() -> None:
    assert field_table("The selection") == list(Selection.model_fields)


@pytest.mark.parametrize(
    ("model", "heading"),
    [
        (Sender, "The turn"),
        (HistoryEntry, "The turn"),
        (OpenQuestion, "The turn"),
        (TurnProblem, "The turn"),
        (SelectedOption, "The selection"),
    ],
)
def test_fields_of_nested_values_are_explained(model: type[BaseModel], heading: str) -> None:
    assert set(model.model_fields) <= AGENTS.section(heading).codes()


def test_every_variable_of_a_command_is_named() -> None:
    source = (ROOT / "mindbridge/agents/command.py").read_text("utf-8")
    variables = {name.strip("`") for name, _ in AGENTS.section("command").rows()}

    assert variables == {part.partition('"')[0] for part in source.split('"')[1::2] if part.startswith("MINDBRIDGE_")}


# Numbers


@pytest.mark.parametrize(
    ("what", "limit"),
    [
        ("a reply", f"{read.MAX_REPLY_BYTES // 1024} KB"),
        ("options of a question", f"at most {emoji_keys.MAX_OPTIONS}"),
        ("blocks of a reply that are read", f"{blocks.MAX_BLOCKS}"),
        ("a block's JSON", f"{json_text.MAX_STRICT_BYTES // 1024} KB, {json_text.MAX_DEPTH} levels deep"),
        ("JSON that is repaired", f"{json_object.MAX_REPAIR_BYTES // 1024} KB, "),
        ("question text, numbers, emoji, labels and values together", f"{fields.MAX_METADATA_BYTES:,} bytes"),
    ],
)
def test_limits_are_those_of_the_code(what: str, limit: str) -> None:
    limits = {row[0]: row[1] for row in QUESTIONS.section("Broken blocks").rows() if len(row) == len(["what", "limit"])}

    assert limit in limits[what]


def test_history_bounds_are_those_of_the_code() -> None:
    bounds = f"the newest {turn_input.MOST_ENTRIES} entries and {turn_input.MOST_BYTES // 1024} KB"

    assert any(bounds in token.content for token in AGENTS.section("The turn").tokens)


def test_every_documented_form_of_a_number_is_read() -> None:
    line = next(token.content for token in QUESTIONS.section("Answers").tokens if "a typed number: " in token.content)
    forms = codes_of(line.partition("a typed number: ")[2])

    assert len(forms) == len(["2", "2.", "2)", "２", "2️⃣", "option 2"])
    assert [typed_number(form) for form in forms] == [2] * len(forms)


# Links


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    broken = []
    for link in page(path).links():
        if link.startswith(("https://", "mailto:")):
            continue
        target, _, anchor = link.partition("#")
        file = path.parent / target if target else path
        if not file.exists() or (anchor and anchor not in map(anchor_of, page(file).headings())):
            broken.append(link)

    assert broken == []
