import io
import json
import sys
from pathlib import Path

import pytest

from mindbridge.cli import preview

REPLY = """I see **two** ways.

```interactive
{"question": "Which?", "options": [{"emoji": "🚀", "label": "Fast", "value": {"speed": [1, false, null]}},
                                   {"emoji": "🔍", "label": "Careful", "description": "by hand"}]}
```
"""


@pytest.fixture
def reply_file(tmp_path: Path) -> Path:
    file = tmp_path / "reply.md"
    file.write_text(REPLY, encoding="utf-8")
    return file


def give_input(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_preview_shows_message_buttons_and_nothing_else(reply_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert preview.run(str(reply_file), as_json=False) == 0

    captured = capsys.readouterr()
    assert captured.out == (
        "I see **two** ways.\n\nWhich?\n\n1. 🚀 Fast\n2. 🔍 Careful\n   by hand\n\n"
        "React with an emoji or type the number to respond.\n\nButtons: 🚀 🔍\ufe0f\n"
    )
    assert captured.err == ""


def test_preview_as_json_has_the_fields_of_the_contract(reply_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert preview.run(str(reply_file), as_json=True) == 0

    assert json.loads(capsys.readouterr().out) == {
        "body": "I see **two** ways.\n\nWhich?\n\n1. 🚀 Fast\n2. 🔍 Careful\n   by hand\n\n"
        "React with an emoji or type the number to respond.",
        "formatted_body": "<p>I see <strong>two</strong> ways.</p>\n<p>Which?</p>\n<p>1. 🚀 Fast<br>\n"
        "2. 🔍 Careful<br>\n&nbsp;&nbsp;&nbsp;by hand</p>\n<p>React with an emoji or type the number to respond.</p>",
        "question": {
            "text": "Which?",
            "kind": "choice",
            "multiple": False,
            "options": [
                {
                    "number": 1,
                    "emoji": "🚀",
                    "button": "🚀",
                    "label": "Fast",
                    "value": {"speed": [1, False, None]},
                    "description": None,
                },
                {
                    "number": 2,
                    "emoji": "🔍",
                    "button": "🔍\ufe0f",
                    "label": "Careful",
                    "value": "careful",
                    "description": "by hand",
                },
            ],
        },
        "buttons": ["🚀", "🔍\ufe0f"],
        "problems": [],
    }


def test_problems_are_results_and_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_input(monkeypatch, b'```interactive\n{"question": "Which?", "options": [{"label": "A"\n')

    assert preview.run("-", as_json=True) == 0

    shown = json.loads(capsys.readouterr().out)
    assert [problem["code"] for problem in shown["problems"]] == ["block_cut_off"]
    assert (shown["question"], shown["buttons"]) == (None, [])


def test_problems_stand_below_the_message(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    give_input(monkeypatch, b"hello\n\n```interactive\nnothing\n```\n")

    assert preview.run("-", as_json=False) == 0

    assert capsys.readouterr().out.startswith("hello\n\n(A question could not be read.)\n\nProblem: block_unreadable: ")


def test_only_as_many_options_are_shown_as_count(reply_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert preview.run(str(reply_file), as_json=True, max_options=1) == 0

    shown = json.loads(capsys.readouterr().out)
    assert shown["buttons"] == ["🚀"]
    assert [problem["code"] for problem in shown["problems"]] == ["options_truncated"]


def test_split_reply_is_shown_as_the_messages_it_becomes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_input(monkeypatch, ("word " * 7_000 + "\n\n" + REPLY).encode())

    assert preview.run("-", as_json=False) == 0

    out = capsys.readouterr().out
    assert out.startswith("--- message 1 of 2 ---\n\nword word")
    assert out.count("--- message") == 2
    assert out.endswith("Buttons: 🚀 🔍\ufe0f\n")


def test_json_of_a_split_reply_is_the_message_with_the_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_input(monkeypatch, ("word " * 7_000 + "\n\n" + REPLY + "\n\n" + "word " * 9_000).encode())

    assert preview.run("-", as_json=True) == 0

    shown = json.loads(capsys.readouterr().out)
    assert shown["question"]["text"] == "Which?"
    assert "2. 🔍 Careful" in shown["body"]


@pytest.mark.parametrize("data", [b"", b" \n\n"])
def test_empty_reply_is_said_to_post_nothing(
    data: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_input(monkeypatch, data)
    assert preview.run("-", as_json=False) == 0
    assert capsys.readouterr().out == "Nothing: an empty reply posts no message.\n"


def test_json_of_an_empty_reply_has_all_fields(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_input(monkeypatch, b"")
    assert preview.run("-", as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == {
        "body": "",
        "formatted_body": "",
        "question": None,
        "buttons": [],
        "problems": [],
    }


def test_bytes_that_are_no_text_are_replaced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_input(monkeypatch, b"caf\xe9 \xf0\x9f\x9a\x80")
    assert preview.run("-", as_json=False) == 0
    assert capsys.readouterr().out == "caf\ufffd 🚀\n"


def test_control_characters_of_a_reply_do_not_reach_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_input(monkeypatch, b"a\x1b[2Jb\r\nc")
    assert preview.run("-", as_json=False) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_terminal_without_emoji_gets_a_preview_all_the_same(reply_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="latin-1", write_through=True))

    assert preview.run(str(reply_file), as_json=False) == 0

    assert "1. ? Fast\n" in out.getvalue().decode("latin-1")


def test_json_loses_nothing_where_the_terminal_has_no_emoji(reply_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="latin-1", write_through=True))

    assert preview.run(str(reply_file), as_json=True) == 0

    assert json.loads(out.getvalue())["buttons"] == ["🚀", "🔍\ufe0f"]


@pytest.mark.parametrize("source", ["no-such-file.md", ".", "no\0name"])
def test_source_that_can_not_be_read_is_one_clear_error(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert preview.run(source, as_json=False) == 2

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"mindbridge preview: can't read {source!r}: ")
    assert captured.err.count("\n") == 1
