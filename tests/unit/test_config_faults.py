"""What is wrong with a file whose YAML is good: everything at once, each with its place and what would be right."""

from pathlib import Path

import pytest

from mindbridge.config.faults import ConfigError, Fault, dotted, printable
from tests.unit.config_files import (
    SMALL,
    load_text,
    only_fault,
    places,
    refusal,
    with_account,
    with_agent_key,
    with_backend,
)

MANY = """\
homeserver: matrix.example.org
journl: ./journal
access:
  users: []
  bots: "*"
  users: ["@a:b"]
agents:
  assistant:
    account:
      user_id: "@assistant:example.org"
      password: ${NOPE}
      password_file: ./nothing
      device_id: X
    display_name: 007
    instructions: Be brief
    backend: {type: http}
    rooms: [lobby, 5, ~]
    respond: on
    threads: yes
    stream: true
    questions:
      max_options: 11
      answerers: ["@a:b", "@*:b"]
      expires_in: 24h
    turns_at_once: 4.0
  second one:
    account: {user_id: "@Assistant:example.org"}
    backend: {command: python3 agent.py, type: command, timeout: 120, attempts: true}
  third:
    account: {user_id: third, pasword: hunter2}
    backend: {type: python, python: agent.py, command: [x], timeout: 0s}
  fourth: hello
"""


def test_every_fault_is_told_at_once_in_order(tmp_path: Path) -> None:
    error = refusal(tmp_path, MANY)

    assert places(error) == [
        (1, 13, "homeserver"),
        (2, 1, "journl"),
        (4, 10, "access.users"),
        (5, 9, "access.bots"),
        (6, 3, "access.users"),
        (11, 17, "agents.assistant.account.password"),
        (12, 7, "agents.assistant.account.password_file"),
        (12, 22, "agents.assistant.account.password_file"),
        (13, 18, "agents.assistant.account.device_id"),
        (14, 19, "agents.assistant.display_name"),
        (15, 19, "agents.assistant.instructions"),
        (16, 21, "agents.assistant.backend.type"),
        (17, 13, "agents.assistant.rooms[0]"),
        (17, 20, "agents.assistant.rooms[1]"),
        (17, 23, "agents.assistant.rooms[2]"),
        (18, 14, "agents.assistant.respond"),
        (19, 14, "agents.assistant.threads"),
        (20, 5, "agents.assistant.stream"),
        (22, 20, "agents.assistant.questions.max_options"),
        (23, 27, "agents.assistant.questions.answerers[1]"),
        (24, 19, "agents.assistant.questions.expires_in"),
        (25, 20, "agents.assistant.turns_at_once"),
        (26, 3, 'agents."second one"'),
        (27, 14, 'agents."second one".account'),
        (27, 24, 'agents."second one".account.user_id'),
        (28, 24, 'agents."second one".backend.command'),
        (28, 66, 'agents."second one".backend.timeout'),
        (28, 81, 'agents."second one".backend.attempts'),
        (30, 14, "agents.third.account"),
        (30, 24, "agents.third.account.user_id"),
        (30, 31, "agents.third.account.pasword"),
        (31, 37, "agents.third.backend.python"),
        (31, 47, "agents.third.backend.command"),
        (31, 70, "agents.third.backend.timeout"),
        (32, 11, "agents.fourth"),
    ]
    assert all(", " in fault.message or "?" in fault.message for fault in error.faults), (
        "what would be right is missing"
    )


def test_an_error_is_a_line_for_each_fault() -> None:
    faults = [Fault(12, 3, "b", "is bad, must be good"), Fault(2, 30, "a", "is bad, must be good")]

    assert str(ConfigError(Path("config.yaml"), faults)) == (
        "config.yaml:2:30 a: is bad, must be good\nconfig.yaml:12:3 b: is bad, must be good"
    )


def test_paths_and_files_are_printable_whatever_they_hold() -> None:
    assert dotted(("agents", "a\nb", "rooms", 0)) == 'agents."a\\nb".rooms[0]'
    assert dotted(("\x1b[0m", "a.b")) == '"\\u001b[0m"."a.b"'
    assert printable(Path("a\nb\udcff.yaml")) == "a�b�.yaml"


@pytest.mark.parametrize(
    ("left_out", "line", "column", "path"),
    [
        ("homeserver: https://matrix.example.org\n", 1, 1, "homeserver"),
        ('access:\n  users: ["@alice:example.org"]\n', 1, 1, "access"),
        (SMALL[SMALL.index("agents:") :], 1, 1, "agents"),
        ('      user_id: "@one:example.org"\n', 7, 7, "agents.one.account.user_id"),
        ("    backend:\n      type: demo\n", 6, 5, "agents.one.backend"),
    ],
)
def test_a_missing_key_is_told_where_it_should_stand(
    tmp_path: Path, left_out: str, line: int, column: int, path: str
) -> None:
    fault = only_fault(tmp_path, SMALL.replace(left_out, ""))

    assert (fault.line, fault.column, fault.path) == (line, column, path)
    assert fault.message.startswith("is missing, must be ")


@pytest.mark.parametrize(
    ("access", "line", "column", "path"),
    [
        ("", 1, 1, "access"),
        ("access:\n", 2, 8, "access"),
        ("access: {}\n", 2, 9, "access.users"),
        ("access:\n  bots: []\n", 3, 3, "access.users"),
        ("access:\n  users:\n", 3, 9, "access.users"),
        ("access:\n  users: []\n", 3, 10, "access.users"),
        ("access:\n  users: all\n", 3, 10, "access.users"),
    ],
)
def test_users_missing_or_empty_never_mean_everyone(
    tmp_path: Path, access: str, line: int, column: int, path: str
) -> None:
    """R7"""
    fault = only_fault(tmp_path, SMALL.replace('access:\n  users: ["@alice:example.org"]\n', access))

    assert (fault.line, fault.column, fault.path) == (line, column, path)
    assert '"*" means anyone' in fault.message


@pytest.mark.parametrize(
    ("line", "suggestion"),
    [
        ("display-name: One", "did you mean display_name?"),
        ("Threads: true", "did you mean threads?"),
        ("instruction: []", "did you mean instructions?"),
        ("max_options: 3", "it belongs to agents.NAME.questions"),
        ("password: x", "it belongs to agents.NAME.account"),
        ("users: []", "it belongs to access"),
        ("command: [x]", "it belongs to a backend of type command"),
        ("folder: x", "must be one of account, display_name, "),
        ("zzz: x", "must be one of account, display_name, "),
    ],
)
def test_an_unknown_key_comes_with_a_suggestion(tmp_path: Path, line: str, suggestion: str) -> None:
    fault = only_fault(tmp_path, with_agent_key(line))

    assert (fault.line, fault.column, fault.path) == (11, 5, f"agents.one.{line.partition(':')[0]}")
    assert fault.message.startswith(f"is no key here, {suggestion}")


def test_the_configurations_own_fields_are_no_keys(tmp_path: Path) -> None:
    assert only_fault(tmp_path, "folder: /tmp\n" + SMALL).path == "folder"


def test_a_key_of_another_backend_is_told_to_belong_there(tmp_path: Path) -> None:
    fault = only_fault(tmp_path, with_backend("type: demo", 'command: ["x"]'))

    assert (fault.line, fault.column, fault.path) == (11, 7, "agents.one.backend.command")
    assert fault.message == "is no key here, it belongs to a backend of type command"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (with_backend("type: http", "url: https://agent.example.org"), "agents.one.backend.type"),
        (with_backend("type: model", "model: openai:x"), "agents.one.backend.type"),
        (with_backend("type: demo", "url: https://agent.example.org"), "agents.one.backend.url"),
        (with_backend("type: demo", "model: openai:x"), "agents.one.backend.model"),
        (with_backend("type: demo", "base_url: https://x"), "agents.one.backend.base_url"),
        (with_backend("type: demo", "headers: {}"), "agents.one.backend.headers"),
        (with_agent_key("stream: true"), "agents.one.stream"),
        (with_agent_key("teach_blocks: true"), "agents.one.teach_blocks"),
        (with_agent_key("questions: {mode: both}"), "agents.one.questions.mode"),
        (with_agent_key("questions: {expires_in: 24h}"), "agents.one.questions.expires_in"),
        (with_agent_key("questions: {expires_in: 5}"), "agents.one.questions.expires_in"),
    ],
)
def test_what_has_no_function_yet_is_not_in_this_version(tmp_path: Path, text: str, path: str) -> None:
    fault = only_fault(tmp_path, text)

    assert fault.path == path
    assert "not in this version" in fault.message


@pytest.mark.parametrize("keep", ["23h", "0d", "366d", "90"])
def test_texts_are_kept_for_a_day_at_least(tmp_path: Path, keep: str) -> None:
    fault = only_fault(tmp_path, f"keep: {keep}\n{SMALL}")

    assert fault.path == "keep"
    assert ("at least 1d" in fault.message) == (keep == "23h")


@pytest.mark.parametrize(
    ("backend", "column", "path"),
    [
        ("", 13, "agents.one.backend"),
        (" demo", 14, "agents.one.backend"),
        (" [demo]", 14, "agents.one.backend"),
        (" {}", 14, "agents.one.backend.type"),
        (" {timeout: 5m}", 14, "agents.one.backend.type"),
        (" {type: }", 20, "agents.one.backend.type"),
        (" {type: Demo}", 21, "agents.one.backend.type"),
        (" {type: [demo]}", 21, "agents.one.backend.type"),
        (" {type: command}", 14, "agents.one.backend.command"),
        (" {type: python}", 14, "agents.one.backend.python"),
        (" {type: 5}", 21, "agents.one.backend.type"),
    ],
)
def test_a_backend_without_what_it_needs_is_refused(tmp_path: Path, backend: str, column: int, path: str) -> None:
    fault = only_fault(tmp_path, SMALL.replace("backend:\n      type: demo", f"backend:{backend}"))

    assert (fault.line, fault.column, fault.path) == (9, column, path)


@pytest.mark.parametrize(
    "name", ["backend", "questions", "password", "account", "command", "answerers", "type", "agents"]
)
def test_an_agent_may_be_named_like_a_key(tmp_path: Path, name: str) -> None:
    text = SMALL.replace("  one:\n", f"  {name}:\n")

    assert list(load_text(tmp_path, text).agents) == [name]
    assert places(refusal(tmp_path, text.replace("type: demo", "type: demo\n      attempts: many"))) == [
        (11, 17, f"agents.{name}.backend.attempts")
    ]


@pytest.mark.parametrize("agents", ["", " {}", " []", " one", "\n  one:", "\n  one: {}"])
def test_agents_that_are_none_are_refused(tmp_path: Path, agents: str) -> None:
    error = refusal(tmp_path, SMALL[: SMALL.index("agents:")] + f"agents:{agents}\n")

    assert all(fault.path.startswith("agents") for fault in error.faults)


@pytest.mark.parametrize("second", ["@one:example.org", "@One:Example.org"])
def test_two_agents_with_one_account_are_refused(tmp_path: Path, second: str) -> None:
    other = SMALL.partition("agents:\n")[2].replace("  one:", "  two:").replace("@one:example.org", second)

    fault = only_fault(tmp_path, SMALL + other)

    assert (fault.line, fault.column, fault.path) == (13, 16, "agents.two.account.user_id")
    assert "agents.one" in fault.message


@pytest.mark.parametrize("account", ["account:", "account: x", "account: []"])
def test_an_account_that_is_no_mapping_is_one_fault(tmp_path: Path, account: str) -> None:
    text = SMALL.replace("account:\n", f"{account}\n").replace('      user_id: "@one:example.org"\n', "")

    assert only_fault(tmp_path, text.replace("      password: secret-one\n", "")).path == "agents.one.account"


def test_an_empty_account_lacks_user_id_and_credential(tmp_path: Path) -> None:
    text = SMALL.replace('account:\n      user_id: "@one:example.org"\n      password: secret-one\n', "account: {}\n")

    assert places(refusal(tmp_path, text)) == [(6, 14, "agents.one.account"), (6, 14, "agents.one.account.user_id")]


def test_several_credentials_are_told_each(tmp_path: Path) -> None:
    text = with_account("access_token: x", "password: y", "access_token_file: ./none")

    assert places(refusal(tmp_path, text)) == [
        (9, 7, "agents.one.account.password"),
        (10, 7, "agents.one.account.access_token_file"),
        (10, 26, "agents.one.account.access_token_file"),
    ]


@pytest.mark.parametrize("credential", ["", "password:", "password: null", "password_file: ~"])
def test_an_account_without_credential_is_refused(tmp_path: Path, credential: str) -> None:
    fault = only_fault(tmp_path, with_account(*[credential] if credential else []))

    assert (fault.line, fault.column, fault.path) == (7, 7, "agents.one.account")
    assert "password, password_file, access_token or access_token_file" in fault.message


def test_device_id_goes_only_with_an_access_token(tmp_path: Path) -> None:
    fault = only_fault(tmp_path, with_account("password: x", "device_id: ABC"))

    assert (fault.line, fault.column, fault.path) == (9, 18, "agents.one.account.device_id")
    account = load_text(tmp_path, with_account("access_token: x", "device_id: ABC")).agents["one"].account
    assert account.device_id == "ABC"
