"""Outgoing events, whole, as they stand in a room."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from mindbridge.ids import EventId, QuestionId
from mindbridge.matrix.content import button, edit, notice, question_metadata, reply, with_target
from mindbridge.questions.lifecycle import State
from mindbridge.questions.model import INSTRUCTION, Option, Prose, Question, Reply
from mindbridge.questions.render import Part, Text, answered_line, render_reply

ROOT, LATEST, ASKED = EventId("$root"), EventId("$latest"), EventId("$asked")
QUESTION_ID = QuestionId("question_1")
ALICE = "@alice:example.org"
OPTIONS = (
    Option(number=1, emoji="🚀", label="Fast and <b>automated</b>", value="fast", button="🚀"),
    Option(number=2, emoji="❤️", label="Careful @room", value={"secret": 1}, button="❤️", description="slowly"),
)
QUESTION = Question(text="What approach?", options=OPTIONS)
METADATA: dict[str, Any] = {
    "version": 1,
    "question_id": "question_1",
    "revision": 1,
    "state": "open",
    "kind": "choice",
    "multiple": False,
    "options": [
        {"number": 1, "emoji": "🚀", "label": "Fast and <b>automated</b>", "button": "🚀"},
        {"number": 2, "emoji": "❤️", "label": "Careful @room", "button": "❤️"},
    ],
}
IN_THREAD = {
    "rel_type": "m.thread",
    "event_id": "$root",
    "is_falling_back": True,
    "m.in_reply_to": {"event_id": "$latest"},
}
TEXT = Text(body="Hello **you**", formatted_body="Hello <strong>you</strong>")
BOTH_FORMS = {
    "body": "Hello **you**",
    "format": "org.matrix.custom.html",
    "formatted_body": "Hello <strong>you</strong>",
}


@pytest.fixture
def asking() -> Part:
    (part,) = render_reply(Reply((Prose("Before."), QUESTION, Prose("After."))))
    return part


def test_reply_in_a_thread_is_text_with_the_threads_relation_and_its_fallback() -> None:
    assert json.loads(reply(TEXT, ROOT, LATEST)) == {
        "msgtype": "m.text",
        **BOTH_FORMS,
        "m.mentions": {},
        "m.relates_to": IN_THREAD,
    }


def test_reply_outside_threads_is_text_that_relates_to_nothing() -> None:
    assert json.loads(reply(TEXT, None, LATEST)) == {"msgtype": "m.text", **BOTH_FORMS, "m.mentions": {}}


def test_question_is_a_reply_that_carries_what_clients_may_know_of_it(asking: Part) -> None:
    sent = json.loads(reply(asking.text(), ROOT, LATEST, question_metadata(QUESTION_ID, QUESTION, State.OPEN)))
    assert sent == {
        "msgtype": "m.text",
        "body": "Before.\n\nWhat approach?\n\n1. 🚀 Fast and <b>automated</b>\n2. ❤️ Careful @room\n   slowly\n\n"
        f"{INSTRUCTION}\n\nAfter.",
        "format": "org.matrix.custom.html",
        "formatted_body": asking.text().formatted_body,
        "m.mentions": {},
        "m.relates_to": IN_THREAD,
        "dev.mindbridge.question": METADATA,
    }


def test_option_values_stay_with_the_bridge() -> None:
    assert "secret" not in json.dumps(question_metadata(QUESTION_ID, QUESTION, State.OPEN))


def test_metadata_tells_the_state_and_the_revision() -> None:
    assert question_metadata(QUESTION_ID, QUESTION, State.ANSWERED, 3) == METADATA | {
        "state": "answered",
        "revision": 3,
    }


def test_notice_in_a_thread_is_a_notice_with_the_threads_relation() -> None:
    assert json.loads(notice(TEXT, ROOT, LATEST)) == {
        "msgtype": "m.notice",
        **BOTH_FORMS,
        "m.mentions": {},
        "m.relates_to": IN_THREAD,
    }


def test_notice_outside_threads_replies_to_what_it_is_about() -> None:
    assert json.loads(notice(TEXT, None, LATEST)) == {
        "msgtype": "m.notice",
        **BOTH_FORMS,
        "m.mentions": {},
        "m.relates_to": {"m.in_reply_to": {"event_id": "$latest"}},
    }


def test_notice_to_someone_mentions_only_them() -> None:
    assert json.loads(notice(TEXT, ROOT, LATEST, (ALICE,)))["m.mentions"] == {"user_ids": [ALICE]}


def test_words_that_look_like_mentions_mention_nobody() -> None:
    text = Text(body=f"@room {ALICE}", formatted_body=f'@room <a href="https://matrix.to/#/{ALICE}">Alice</a>')
    assert json.loads(reply(text, ROOT, LATEST))["m.mentions"] == {}
    assert json.loads(notice(text, ROOT, LATEST))["m.mentions"] == {}


def test_button_is_an_annotation_of_its_question_and_known_as_a_button() -> None:
    assert with_target(button("❤️"), ASKED) == {
        "m.relates_to": {"rel_type": "m.annotation", "event_id": "$asked", "key": "❤️"},
        "dev.mindbridge.button": True,
    }


def test_closing_edit_has_one_line_outside_and_all_the_rest_inside(asking: Part) -> None:
    line = answered_line(OPTIONS[0], "Alice", datetime(2026, 11, 30, 12, tzinfo=UTC))
    metadata = question_metadata(QUESTION_ID, QUESTION, State.ANSWERED)

    assert with_target(edit(line, asking.text(line), metadata), ASKED) == {
        "msgtype": "m.text",
        "body": "* ✔ 1. 🚀 Fast and <b>automated</b> · Alice · 2026-11-30 12:00 UTC",
        "m.mentions": {},
        "m.new_content": {
            "msgtype": "m.text",
            "body": "Before.\n\nWhat approach?\n\n1. 🚀 Fast and <b>automated</b>\n2. ❤️ Careful @room\n   slowly\n\n"
            "✔ 1. 🚀 Fast and <b>automated</b> · Alice · 2026-11-30 12:00 UTC\n\nAfter.",
            "format": "org.matrix.custom.html",
            "formatted_body": asking.text(line).formatted_body,
            "m.mentions": {},
            "dev.mindbridge.question": METADATA | {"state": "answered"},
        },
        "m.relates_to": {"rel_type": "m.replace", "event_id": "$asked"},
    }
    assert INSTRUCTION not in json.dumps(with_target(edit(line, asking.text(line), metadata), ASKED))
    assert "✔ 1. 🚀 Fast and &lt;b&gt;automated&lt;/b&gt; · Alice" in asking.text(line).formatted_body


def test_what_relates_to_an_event_already_is_sent_as_it_was_recorded() -> None:
    for content in (reply(TEXT, ROOT, LATEST), reply(TEXT, None, LATEST), notice(TEXT, None, LATEST)):
        assert with_target(content, None) == json.loads(content)


def test_content_is_compact_json_with_its_characters_as_they_are() -> None:
    assert button("🚀") == '{"m.relates_to":{"rel_type":"m.annotation","key":"🚀"},"dev.mindbridge.button":true}'
