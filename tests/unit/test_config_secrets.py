"""Variables, files with secrets, and that neither is ever told."""

import os
import traceback
from pathlib import Path

import pytest
from pydantic import SecretStr

from mindbridge.config.load import load
from mindbridge.config.schema import CommandBackend
from mindbridge.config.variables import expand
from tests.unit.config_files import (
    SMALL,
    load_agent,
    load_text,
    only_fault,
    places,
    refusal,
    with_account,
    with_agent_key,
    with_backend,
    write,
)

ENVIRON = {"A": "1", "LONG_NAME_2": "two", "_x": "x", "SHAPED": "${A} $${ yes\n- *x", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("${A}", "1"),
        ("a${A}b${LONG_NAME_2}${_x}c", "a1btwoxc"),
        ("${SHAPED}", "${A} $${ yes\n- *x"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("$${", "${"),
        ("$A $ $$ {A} $}", "$A $ $$ {A} $}"),
        ("${EMPTY}", ""),
    ],
)
def test_variables_are_put_in_once_and_the_rest_stays(text: str, meant: str) -> None:
    expanded = expand(text, ENVIRON)

    assert (expanded.text, expanded.problems) == (meant, ())


@pytest.mark.parametrize("text", ["${", "${}", "${A", "${A-B}", "${1A}", "${A:-x}", "${ A }", "x ${Ä}", "${${A}}"])
def test_a_broken_variable_is_a_problem(text: str) -> None:
    assert len(expand(text, ENVIRON).problems) == 1


def test_every_unset_variable_is_told_at_its_value(tmp_path: Path) -> None:
    text = SMALL.replace("@one:example.org", "${USER_ID}") + '    instructions: ["${A}", "${B} ${C} ${B}", x]\n'

    error = refusal(tmp_path, text, {"A": "1"})

    assert places(error) == [
        (7, 16, "agents.one.account.user_id"),
        (11, 28, "agents.one.instructions[1]"),
        (11, 28, "agents.one.instructions[1]"),
    ]
    assert [name for name in ("USER_ID", " B ", " C ") if name in str(error)] == ["USER_ID", " B ", " C "]


def test_text_from_the_environment_is_never_parsed(tmp_path: Path) -> None:
    environ = {"ROLE": '"quoted" # no comment\nthreads: false', "PASSWORD": "true"}
    text = with_agent_key("role: ${ROLE}").replace("secret-one", "${PASSWORD}")

    agent = load_agent(tmp_path, text, environ)

    assert (agent.role, agent.threads) == ('"quoted" # no comment\nthreads: false', True)
    assert agent.account.password == SecretStr("true")


def test_a_variable_is_text_where_a_boolean_or_number_is_needed(tmp_path: Path) -> None:
    text = with_agent_key("threads: ${THREADS}\n    turns_at_once: ${TURNS}")

    assert places(refusal(tmp_path, text, {"THREADS": "true", "TURNS": "4"})) == [
        (11, 14, "agents.one.threads"),
        (12, 20, "agents.one.turns_at_once"),
    ]


def test_keys_take_no_variables(tmp_path: Path) -> None:
    assert places(refusal(tmp_path, SMALL.replace("  one:", "  ${A}:"), {"A": "one"})) == [(5, 3, 'agents."${A}"')]


@pytest.mark.parametrize(("key", "field"), [("password_file", "password"), ("access_token_file", "access_token")])
@pytest.mark.parametrize(
    ("content", "secret"), [(b"pw", "pw"), (b"pw\n", "pw"), (b"pw\r\n", "pw"), (b"\xef\xbb\xbfpw\n", "pw")]
)
def test_a_file_holds_the_secret_without_one_line_break(
    tmp_path: Path, key: str, field: str, content: bytes, secret: str
) -> None:
    (tmp_path / "pw.txt").write_bytes(content)

    account = load_agent(tmp_path, with_account(f"{key}: ./pw.txt")).account

    assert getattr(account, field) == SecretStr(secret)
    assert getattr(account, key) == tmp_path / "pw.txt"


def test_a_password_keeps_blanks_and_inner_line_breaks(tmp_path: Path) -> None:
    (tmp_path / "pw.txt").write_text(" ${A}\n\n")

    account = load_agent(tmp_path, with_account("password: null", "password_file: pw.txt")).account

    assert account.password == SecretStr(" ${A}\n")


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"pw\0", b"\xff\xfe\x00", b"x" * 100_000], ids=["empty", "a line", "NUL", "no text", "long"]
)
def test_a_file_without_a_usable_secret_is_one_fault(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pw.txt").write_bytes(content)

    fault = only_fault(tmp_path, with_account("password_file: pw.txt"))

    assert (fault.line, fault.column, fault.path) == (8, 22, "agents.one.account.password_file")


@pytest.mark.parametrize("name", ["none.txt", "folder", "loop", "none/pw.txt", "x" * 300, '""', "~bob/pw", "5", "[a]"])
def test_a_file_that_can_not_be_read_is_one_fault(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")

    fault = only_fault(tmp_path, with_account(f"password_file: {name}"))

    assert (fault.line, fault.column, fault.path) == (8, 22, "agents.one.account.password_file")


@pytest.mark.parametrize("key", ["password", "access_token"])
@pytest.mark.parametrize("secret", ['""', "${EMPTY}"])
def test_an_empty_secret_is_refused(tmp_path: Path, key: str, secret: str) -> None:
    fault = only_fault(tmp_path, with_account(f"{key}: {secret}"), ENVIRON)

    assert (fault.line, fault.path) == (8, f"agents.one.account.{key}")


@pytest.mark.parametrize("token", ["a b", "a\\nb", "ä", "a\\t", " a"])
def test_an_access_token_that_no_header_can_carry_is_refused(tmp_path: Path, token: str) -> None:
    fault = only_fault(tmp_path, with_account(f'access_token: "{token}"'))

    assert (fault.line, fault.path) == (8, "agents.one.account.access_token")


def test_bytes_in_the_environment_that_are_no_text_are_refused(tmp_path: Path) -> None:
    fault = only_fault(tmp_path, with_account("password: ${BYTES}"), {"BYTES": os.fsdecode(b"pw\xff")})

    assert (fault.line, fault.column, fault.path) == (8, 17, "agents.one.account.password")


@pytest.mark.parametrize(
    "written",
    [
        "hunter2",
        '"hunter2"',
        "*hunter2",
        "!hunter2",
        "!hunter2 x",
        "!hunter2!x y",
        "&hunter2",
        "&hunter2 x: &hunter2 y",
        "@hunter2",
        "%hunter2",
        "`hunter2",
        "|hunter2",
        ">hunter2",
        '"hunter2',
        "'hunter2",
        "'a'hunter2",
        "hunter2: x: y",
        "x: hunter2: y",
        "{hunter2: 1, hunter2: 2}",
        "{hunter2}",
        "{hunter2",
        "[hunter2]",
        "[hunter2",
        "[hunter2}",
        "- hunter2",
        "\n        hunter2: 1\n        hunter2: 2",
        "\n        hunter2: ${NOT_SET}",
        "? hunter2",
        "${hunter2",
        "${NOT_SET}hunter2",
        "$${hunter2",
        '"hunter2\\ud800"',
        '"hunter2\\q"',
        "hunter2\0",
        '"\\Uhunter2"',
        "\n  hunter2",
        "\n        - !hunter2 x",
        "{? [hunter2] : 1}",
        "{<<: hunter2}",
        "{!hunter2 a: 1}",
        "hunter2\n      password: hunter2",
        "${FROM_ENVIRONMENT}",
    ],
)
@pytest.mark.parametrize("key", ["password", "access_token"])
def test_no_error_tells_a_secret_however_it_is_written(tmp_path: Path, key: str, written: str) -> None:
    text = with_account(f"{key}: {written}") + "    unknown_key: 1\n"

    error = refusal(tmp_path, text, {"FROM_ENVIRONMENT": "hunter2"})

    told = "".join(traceback.format_exception(error)) + repr(error) + repr(error.faults)
    assert "hunter2" not in told.replace("is not set", "")


@pytest.mark.parametrize(
    "text",
    [
        SMALL.replace("https://matrix.example.org", "${V}"),
        SMALL.replace("@alice:example.org", "${V}"),
        SMALL.replace("@one:example.org", "${V}"),
        SMALL.replace("demo", "${V}"),
        "journal: ~${V}\n" + SMALL,
        with_agent_key("display_name: ${V}\\x${EMPTY_LINE}"),
        with_agent_key("rooms: ['${V}']"),
        with_agent_key("respond: ${V}"),
        with_agent_key("threads: ${V}"),
        with_agent_key("instructions: ${V}"),
        with_agent_key("questions: {answerers: '${V}'}"),
        with_agent_key("questions: {answerers: ['${V}']}"),
        with_agent_key("questions: {expires_in: '${V}'}"),
        with_agent_key("turns_at_once: x${V}"),
        with_backend("type: command", "command: run ${V}"),
        with_backend("type: demo", "timeout: ${V}"),
        with_backend("type: python", "python: ${V}"),
        with_account("access_token: a ${V}"),
        with_account("password_file: ./${V}"),
        with_account("password: ${V}${V2}"),
    ],
)
def test_no_error_tells_what_came_out_of_the_environment(tmp_path: Path, text: str) -> None:
    error = refusal(tmp_path, text, {"V": "hunter2", "EMPTY_LINE": "\n"})

    assert "hunter2" not in str(error)


@pytest.mark.parametrize(
    "account",
    [
        "account:\n      password:hunter2",
        "account: password:hunter2",
        "account: {user_id: '@one:example.org', password:hunter2}",
        "account: {user_id: '@one:example.org', 'password:hunter2': 1}",
        "account: {user_id: '@one:example.org', password: x, 'access_token:hunter2': 1}",
        "account:\n      user_id: '@one:example.org'\n      password:hunter2",
        "account:\n      password:hunter2\n      user_id: '@one:example.org'",
        "account: [password: hunter2]",
        "account:password: hunter2",
    ],
)
def test_no_error_tells_a_password_that_runs_into_its_key(tmp_path: Path, account: str) -> None:
    text = SMALL.replace('account:\n      user_id: "@one:example.org"\n      password: secret-one', account)

    assert "hunter2" not in str(refusal(tmp_path, text))


def test_secrets_in_places_without_a_shape_are_not_told(tmp_path: Path) -> None:
    """A password in the homeserver's address, or a token in a command that is no list."""
    text = SMALL.replace("https://", "https://bridge:hunter2@").replace(
        "type: demo", "type: command\n      command: agent --token hunter2"
    )

    error = refusal(tmp_path, text)

    assert len(error.faults) == 2
    assert "hunter2" not in str(error)


def test_a_good_configurations_repr_tells_no_secret(tmp_path: Path) -> None:
    (tmp_path / "token.txt").write_text("hunter2")
    text = with_backend("type: command", 'command: ["agent", "--key", "${KEY}"]')
    text = text.replace("password: secret-one", "access_token_file: token.txt")

    loaded = load(write(tmp_path, text), {"KEY": "hunter2"})

    assert loaded.config.agents["one"].account.access_token == SecretStr("hunter2")
    assert isinstance(backend := loaded.config.agents["one"].backend, CommandBackend)
    assert backend.command == ("agent", "--key", "hunter2")
    assert "hunter2" not in f"{loaded!r} {loaded.config} {loaded.tree}"
    assert "secret-one" not in repr(load_text(tmp_path, SMALL))
