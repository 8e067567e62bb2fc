"""Single values that are not what their key needs: one fault each, at the value."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindbridge.config.faults import ConfigError
from mindbridge.config.load import load_config
from mindbridge.config.schema import SECTIONS
from tests.unit.config_files import (
    SMALL,
    only_fault,
    places,
    refusal,
    with_account,
    with_agent_key,
    with_backend,
    write,
)

BAD_USERS = [
    "alice",
    "@alice",
    "alice:example.org",
    "@:example.org",
    "@a b:example.org",
    "@alice:",
    "@alice:exa_mple.org",
    "@alice:example.org:",
    "@alice:example.org:123456",
    "@alice:example.org/x",
    "#alice:example.org",
    "",
    f"@{'a' * 300}:b",
    "@alice:example.org ",
    "@al\\u202eice:example.org",
    "@al\\nice:example.org",
]


@pytest.mark.parametrize(
    "address",
    [
        "matrix.example.org",
        "ftp://example.org",
        "https://",
        "https:///x",
        "https://example.org/_matrix/client",
        "https://example.org?x=1",
        "https://example.org/#x",
        "https://example.org?",
        "https://example.org:99999",
        "https://example.org:0",
        '"https://example.org:"',
        "https://example.org:port",
        "https://exa mple.org",
        "https://[::1",
        "https://example.org//x",
        "https://example.org/../x",
        "https://example.org/a%2Fb",
        '"https://example.org\\n"',
        '"https://example.org\\\\x"',
        "https://größe.example.org",
        '""',
        "https://user:hunter2@example.org",
    ],
)
def test_a_homeserver_that_is_no_plain_address_is_refused(tmp_path: Path, address: str) -> None:
    fault = only_fault(tmp_path, SMALL.replace("https://matrix.example.org", address))

    assert (fault.line, fault.column, fault.path) == (1, 13, "homeserver")
    assert "https://matrix.example.org" in fault.message
    assert "hunter2" not in fault.message


@pytest.mark.parametrize("user", [*BAD_USERS, "@*:example.org", "*", "@alice:*"])
def test_what_is_no_full_user_id_is_refused(tmp_path: Path, user: str) -> None:
    error = refusal(
        tmp_path, SMALL.replace("@one:example.org", user) + f'    questions: {{answerers: ["@a:b", "{user}"]}}\n'
    )

    assert places(error) == [(7, 16, "agents.one.account.user_id"), (11, 37, "agents.one.questions.answerers[1]")]


@pytest.mark.parametrize("pattern", [*BAD_USERS, "@*", "*:example.org", "**", "@a*"])
def test_what_is_no_pattern_of_user_ids_is_refused(tmp_path: Path, pattern: str) -> None:
    fault = only_fault(tmp_path, SMALL.replace('"@alice:example.org"', f'"{pattern}"'))

    assert (fault.line, fault.column, fault.path) == (3, 11, "access.users[0]")
    assert '"@*:example.org"' in fault.message


@pytest.mark.parametrize("pattern", ["*", "@*:*"])
def test_bots_that_would_be_everyone_are_refused(tmp_path: Path, pattern: str) -> None:
    fault = only_fault(tmp_path, SMALL.replace("agents:\n", f'  bots: ["{pattern}"]\nagents:\n'))

    assert (fault.line, fault.column, fault.path) == (4, 10, "access.bots[0]")


@pytest.mark.parametrize(
    "room", ["lobby", "#lobby", "lobby:example.org", "@a:b", "#:b", "!", "#a b:c", "!a b", "", "#a:b/c"]
)
def test_what_is_no_room_is_refused(tmp_path: Path, room: str) -> None:
    fault = only_fault(tmp_path, with_agent_key(f'rooms: ["#a:b", "{room}"]'))

    assert (fault.line, fault.column, fault.path) == (11, 21, "agents.one.rooms[1]")


@pytest.mark.parametrize(
    "time", ["1.5s", "120 s", "2min", "1h30m", "0s", "-5s", "366d", "9999999999s", "s", '"120"', "1:30"]
)
def test_what_is_no_time_is_refused(tmp_path: Path, time: str) -> None:
    fault = only_fault(tmp_path, with_backend("type: demo", f"timeout: {time}"))

    assert (fault.line, fault.column, fault.path) == (11, 16, "agents.one.backend.timeout")


@pytest.mark.parametrize("time", ["120", "022", "1.5"])
def test_a_time_without_unit_is_told_how_to_have_one(tmp_path: Path, time: str) -> None:
    fault = only_fault(tmp_path, with_backend("type: demo", f"timeout: {time}"))

    assert fault.path == "agents.one.backend.timeout"
    assert fault.message.endswith("must have a unit, such as 120s")


@pytest.mark.parametrize("time", ["true", "null", "[]", "{}"])
def test_a_time_of_another_type_is_refused(tmp_path: Path, time: str) -> None:
    fault = only_fault(tmp_path, with_backend("type: demo", f"timeout: {time}"))

    assert fault.message.endswith("must be a time with a unit, such as 120s")


@pytest.mark.parametrize(
    "reference",
    [
        "agent",
        "agent.py",
        "agent:",
        ":reply",
        "a-b:reply",
        "agent:re ply",
        "agent:reply:x",
        ".agent:reply",
        "agent..x:reply",
        "agent:class",
        "agent:reply()",
        "./agent:reply",
        "",
    ],
)
def test_what_names_no_python_function_is_refused(tmp_path: Path, reference: str) -> None:
    fault = only_fault(tmp_path, with_backend("type: python", f'python: "{reference}"'))

    assert (fault.line, fault.column, fault.path) == (11, 15, "agents.one.backend.python")
    assert "package.module:function" in fault.message


@pytest.mark.parametrize("program", ["", " "])
def test_a_command_without_a_program_is_refused(tmp_path: Path, program: str) -> None:
    fault = only_fault(tmp_path, with_backend("type: command", f'command: ["{program}", x]'))

    assert (fault.line, fault.column, fault.path) == (11, 16, "agents.one.backend.command")


@pytest.mark.parametrize("command", ["python3 agent.py", "[]", "", "{}", "5"])
def test_a_command_that_is_no_list_is_refused(tmp_path: Path, command: str) -> None:
    fault = only_fault(tmp_path, with_backend("type: command", f"command: {command}"))

    assert (fault.line, fault.path) == (11, "agents.one.backend.command")
    assert fault.message.endswith('must be a list of a program and its arguments, such as ["python3", "agent.py"]')


@pytest.mark.parametrize(("command", "index"), [('["python3", 5]', 1), ('["python3", null]', 1), ("[true]", 0)])
def test_parts_of_a_command_are_text(tmp_path: Path, command: str, index: int) -> None:
    fault = only_fault(tmp_path, with_backend("type: command", f"command: {command}"))

    assert fault.path == f"agents.one.backend.command[{index}]"


@pytest.mark.parametrize(
    "line",
    [
        "display_name: ''",
        "display_name: ' '",
        'display_name: "a\\nb"',
        f"display_name: {'x' * 257}",
        "display_name: [a]",
        "role: 5",
        "role: {}",
        "instructions:",
        "instructions: Be brief.",
        "rooms:",
        "rooms: '#a:b'",
        "respond: Always",
        "respond: true",
        "threads:",
        "threads: 1",
        "threads: 'true'",
        "questions:",
        "questions: []",
        "turns_at_once: 0",
        "turns_at_once: 101",
        "turns_at_once: '4'",
        "turns_at_once: true",
        "turns_at_once: 4.0",
    ],
)
def test_a_value_of_a_wrong_kind_is_one_fault_at_the_value(tmp_path: Path, line: str) -> None:
    key, _, value = line.partition(":")
    fault = only_fault(tmp_path, with_agent_key(line))

    column = 5 + len(key) + 1 + (value != "")
    assert (fault.line, fault.column, fault.path) == (11, column, f"agents.one.{key}")


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("questions: {max_options: 0}", "agents.one.questions.max_options"),
        ("questions: {max_options: 11}", "agents.one.questions.max_options"),
        ("questions: {max_options: 022}", "agents.one.questions.max_options"),
        ("questions: {max_options: five}", "agents.one.questions.max_options"),
        ("questions: {answerers: []}", "agents.one.questions.answerers"),
        ("questions: {answerers: everyone}", "agents.one.questions.answerers"),
        ("questions: {answerers: }", "agents.one.questions.answerers"),
        ("questions: {answerers: {a: b}}", "agents.one.questions.answerers"),
        ("questions: {answerers: ['@a:b', 5]}", "agents.one.questions.answerers[1]"),
        ("instructions: [Be brief., 5]", "agents.one.instructions[1]"),
    ],
)
def test_a_value_further_down_is_told_by_its_whole_path(tmp_path: Path, line: str, path: str) -> None:
    assert only_fault(tmp_path, with_agent_key(line)).path == path


@pytest.mark.parametrize("name", ["a b", "a/b", "..", "größe", "a.b", "-a", '""', "x" * 65, '"[key]"', '"a\\nb"'])
def test_an_agents_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    error = refusal(tmp_path, SMALL.replace("  one:\n", f"  {name}:\n"))

    assert places(error)[0][:2] == (5, 3)


@pytest.mark.parametrize("journal", ['""', '" "', "null", "5", "[]", "~bob/journal", "~/journal"])
def test_a_journal_that_is_no_folders_name_is_refused(tmp_path: Path, journal: str) -> None:
    fault = only_fault(tmp_path, f"journal: {journal}\n" + SMALL, {"HOME": "not/absolute"})

    assert (fault.line, fault.column, fault.path) == (1, 10, "journal")


KEYS = st.sampled_from(sorted({key for section in SECTIONS.values() for key in section.model_fields}))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | KEYS, inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(KEYS, VALUES, st.sampled_from([with_agent_key, with_account, with_backend]))
def test_any_value_of_any_key_is_good_or_told_by_its_path(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: object, text_with: Callable[[str], str]
) -> None:
    text = text_with(f"{key}: {json.dumps(value)}")

    try:
        load_config(write(tmp_path_factory.getbasetemp(), text), {})
    except ConfigError as error:
        paths = {fault.path for fault in error.faults}
    else:
        paths = set()

    assert all(path.startswith("agents.one") for path in paths), paths
