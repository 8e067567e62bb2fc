"""How a file is read before its keys are judged: YAML as people mean it, and everything that is no configuration."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindbridge.config.faults import ConfigError
from mindbridge.config.load import load_config
from mindbridge.config.read import read_tree
from tests.unit.config_files import SMALL, load_agent, load_text, only_fault, places, refusal, with_agent_key, write

FILE = Path("config.yaml")


def read(value: str) -> object:
    tree = read_tree(FILE, f"key: {value}\n", {})
    assert tree.faults == []
    return tree.data["key"]


@pytest.mark.parametrize(
    "text",
    ["on", "off", "yes", "no", "Yes", "NO", "y", "n", "tRUE", "nULL", "0x1F", "0o17", "0b1", "1_000", "1:30",
     "190:20:30", "2026-11-30", "2026-11-30T12:00:00Z", "2026-11-30 12:00:00", "=", "1.2.3", ".inf", "+", ".", "e5"],
)  # fmt: skip
def test_what_only_yaml_1_1_takes_for_something_else_is_text(text: str) -> None:
    assert read(text) == text


@pytest.mark.parametrize("text", ["true", "null", "~", "5", "1.5", "022", ""])
def test_quoted_is_always_text(text: str) -> None:
    assert (read(f'"{text}"'), read(f"'{text}'")) == (text, text)
    assert read(f'!!str "{text}"') == text


@pytest.mark.parametrize(
    ("text", "meant"),
    [("5", 5), ("022", 22), ("08", 8), ("-3", -3), ("+3", 3), ("0", 0), ("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5)],
)
def test_numbers_are_decimal(text: str, meant: float) -> None:
    value = read(text)

    assert (value, type(value)) == (meant, type(meant))


def test_a_number_of_any_length_is_read() -> None:
    assert read("9" * 100_000) == float("inf")


@pytest.mark.parametrize("text", ["true", "True", "TRUE"])
def test_true_in_the_three_usual_cases_is_a_boolean(text: str) -> None:
    assert read(text) is True
    assert read({"true": "false", "True": "False", "TRUE": "FALSE"}[text]) is False


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL", "# a comment"])
def test_nothing_is_null(text: str) -> None:
    assert read(text) is None


def test_keys_are_text_whatever_they_look_like() -> None:
    assert read_tree(FILE, "{yes: 1, 5: 2, null: 3, true: 4, 1.5: 5}", {}).data == {
        "yes": 1, "5": 2, "null": 3, "true": 4, "1.5": 5,
    }  # fmt: skip


def test_yes_and_on_are_refused_where_a_boolean_is_needed(tmp_path: Path) -> None:
    fault = only_fault(tmp_path, with_agent_key("threads: yes"))

    assert (fault.line, fault.column, fault.path) == (11, 14, "agents.one.threads")
    assert fault.message == 'is the text "yes", must be true or false'


def test_a_number_is_refused_where_text_is_needed(tmp_path: Path) -> None:
    fault = only_fault(tmp_path, with_agent_key("display_name: 007"))

    assert fault.message == "is the number 7, must be text, in quotes"


def test_an_alias_gives_the_same_value_again(tmp_path: Path) -> None:
    text = SMALL.replace("type: demo", "type: demo\n    role: &role |\n      Two\n      lines\n    display_name: A")
    text += "    instructions: [*role]\n"

    assert load_agent(tmp_path, text).instructions == ("Two\nlines\n",)


def test_faults_inside_an_alias_are_told_for_each_use(tmp_path: Path) -> None:
    text = with_agent_key("questions: &questions {max_options: 0}")
    text += text.partition("agents:\n")[2].replace("one", "two").replace("&questions {max_options: 0}", "*questions")

    assert places(refusal(tmp_path, text)) == [
        (11, 41, "agents.one.questions.max_options"),
        (11, 41, "agents.two.questions.max_options"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        pytest.param("a: &a [*a]\n", 1, 4, id="itself"),
        pytest.param("a: &a {b: [{c: *a}]}\n", 1, 4, id="itself further down"),
        pytest.param(
            "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)), 1, 10,
            id="a billion laughs",
        ),
        pytest.param(
            "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 3_000)), 1, 10, id="a long chain"
        ),
    ],
)  # fmt: skip
def test_aliases_that_never_end_are_one_fault(tmp_path: Path, text: str, line: int, column: int) -> None:
    fault = only_fault(tmp_path, SMALL + text)

    assert (fault.line, fault.column, fault.path) == (line + 10, column, "(file)")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_nesting_without_end_is_one_fault(tmp_path: Path, opening: str) -> None:
    assert only_fault(tmp_path, f"a:\n  {opening * 20_000}").path == "(file)"


@pytest.mark.parametrize(
    "value",
    [
        "!!python/object:os.system {}",
        "!!python/name:os.system x",
        "!mine x",
        "!!int 5",
        "!!set {a}",
        "!abc",
        "!!binary aGk=",
    ],
)
def test_tags_are_refused(tmp_path: Path, value: str) -> None:
    fault = only_fault(tmp_path, with_agent_key(f"role: {value}"))

    assert (fault.line, fault.column, fault.path) == (11, 11, "agents.one.role")
    assert fault.message == "begins with ! and so is a tag, put text that begins with ! in quotes"


def test_a_room_id_without_quotes_is_told_to_need_them(tmp_path: Path) -> None:
    fault = only_fault(tmp_path, with_agent_key("rooms:\n    - !abc"))

    assert (fault.line, fault.path) == (12, "agents.one.rooms[0]")
    assert "quotes" in fault.message


@pytest.mark.parametrize("rooms", ["rooms: [#lobby:example.org]", "rooms:\n    - #lobby:example.org"])
def test_a_room_alias_without_quotes_is_told_to_need_them(tmp_path: Path, rooms: str) -> None:
    fault = only_fault(tmp_path, with_agent_key(rooms) + "    threads: true\n")

    assert fault.line in {11, 12}
    assert "#" in fault.message
    assert "quotes" in fault.message


@pytest.mark.parametrize(
    ("line", "column"),
    [("<<: {role: x}", 5), ("? [a]\n    : 5", 7), ('"": 5', 5), ("!!int 3: 5", 5), ('"\\ud800": 5', 5)],
)
def test_keys_that_are_no_words_are_refused(tmp_path: Path, line: str, column: int) -> None:
    fault = only_fault(tmp_path, with_agent_key(line))

    assert (fault.line, fault.column, fault.path) == (11, column, "agents.one")


def test_a_duplicate_key_is_told_at_the_second(tmp_path: Path) -> None:
    fault = only_fault(tmp_path, with_agent_key("threads: true\n    rooms: []\n    threads: false"))

    assert (fault.line, fault.column, fault.path) == (13, 5, "agents.one.threads")
    assert "line 11" in fault.message


@pytest.mark.parametrize(
    ("content", "line", "column"),
    [
        pytest.param("", 1, 1, id="empty"),
        pytest.param("\n\n", 1, 1, id="blank"),
        pytest.param("# nothing\n", 1, 1, id="only a comment"),
        pytest.param("---\n", 1, 1, id="an empty document"),
        pytest.param("- a\n", 1, 1, id="a list"),
        pytest.param("\n  hello\n", 2, 3, id="a word"),
        pytest.param(SMALL + "---\n" + SMALL, 11, 1, id="two documents"),
        pytest.param(b"\xef\xbb\xbf" + SMALL.encode(), 1, 1, id="a byte order mark"),
        pytest.param(SMALL.encode("utf-16"), 1, 1, id="UTF-16"),
        pytest.param("role: größe\n".encode("latin-1"), 1, 9, id="Latin-1"),
        pytest.param("a: b\nc: ä\xfcd".encode() + b"\xff", 2, 7, id="one bad byte"),
        pytest.param("a: b\nc: d\0", 2, 5, id="NUL"),
        pytest.param("a: b\nc: \x1b[0m", 2, 4, id="a control character"),
        pytest.param(b"a: " + b"b" * 300_000, 1, 1, id="far too long"),
        pytest.param("a: b: c", 1, 5, id="a colon too many"),
        pytest.param("a: 1\n  b: 2\n", 2, 4, id="bad indentation"),
        pytest.param("a:\n\tb: 1\n", 2, 1, id="a tab"),
        pytest.param("a: @alice:example.org", 1, 4, id="an at sign"),
        pytest.param("a: [*]", 1, 6, id="a star"),
        pytest.param("a: *b", 1, 4, id="an alias of nothing"),
        pytest.param("a: {b: ${NAME}}", 1, 9, id="a variable in braces"),
        pytest.param('a: 1\nb: "c\nd: 1\n', 2, 4, id="an open quote"),
        pytest.param("a: 1\nb: [c\n", 2, 4, id="an open bracket"),
        pytest.param('a: "\\UFFFFFFFF"', 1, 7, id="an impossible escape"),
        pytest.param(f"%YAML 1.{'9' * 5_000}\n---\na: b", 1, 9, id="an impossible version"),
        pytest.param("a: &x 1\nb: &x 2\n", 2, 4, id="an anchor twice"),
        pytest.param("!mine\na: 1\n", 1, 1, id="a tag around all"),
    ],
)
def test_what_is_no_configuration_is_one_fault_with_its_place(
    tmp_path: Path, content: str | bytes, line: int, column: int
) -> None:
    fault = only_fault(tmp_path, content)

    assert (fault.line, fault.column, fault.path) == (line, column, "(file)")


def test_a_missing_file_is_one_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"/none\.yaml:1:1 \(file\): is not there, "):
        load_config(tmp_path / "none.yaml", {})


def test_a_folder_is_one_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r":1:1 \(file\): is a folder, "):
        load_config(tmp_path, {})


def test_an_unreadable_file_is_one_fault(tmp_path: Path) -> None:
    loop = tmp_path / "loop.yaml"  # permissions would not stop root
    loop.symlink_to(loop)

    with pytest.raises(ConfigError, match=r"/loop\.yaml:1:1 \(file\): can't be read "):
        load_config(loop, {})


def test_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    assert load_text(tmp_path, SMALL.replace("\n", "\r\n")) == load_text(tmp_path, SMALL)


def assert_good_or_told(file: Path, text: str) -> None:
    try:
        load_config(file, {"NAME": "x"})
    except ConfigError as caught:
        error = caught
    else:
        return
    assert error.faults
    assert str(error).count("\n") == len(error.faults) - 1
    assert all(line.isprintable() for line in str(error).split("\n"))
    lines = len(text.splitlines()) + 1
    assert all(1 <= fault.line <= lines and fault.column >= 1 for fault in error.faults)


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("ab:-?[]{},#&*!|>'\"%@`\n\t \\$~\r\u2028\ud800<=0.")))
def test_any_text_is_good_or_told(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = write(tmp_path_factory.getbasetemp(), text.encode("utf-8", "surrogatepass"))

    assert_good_or_told(file, text)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, len(SMALL)),
    st.integers(0, 12),
    st.text(max_size=6) | st.sampled_from(["${NAME}", "${X}", "[key]", "command", "backend", "null", "\n"]),
)
def test_any_change_of_a_good_file_is_good_or_told(
    tmp_path_factory: pytest.TempPathFactory, start: int, length: int, put: str
) -> None:
    text = SMALL[:start] + put + SMALL[start + length :]
    file = write(tmp_path_factory.getbasetemp(), text.encode("utf-8", "surrogatepass"))

    assert_good_or_told(file, text)
