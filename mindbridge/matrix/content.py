"""The content of outgoing events, as the Matrix specification and the public contract (sections 3 and 4) want it.

Each function gives the content as JSON text. Where an event relates to one that is not sent yet, `with_target` puts its
event id in when it is.
"""

import json
from typing import Any

from mindbridge.ids import EventId, QuestionId
from mindbridge.questions.lifecycle import State
from mindbridge.questions.model import Question
from mindbridge.questions.render import Text

QUESTION_KEY = "dev.mindbridge.question"
BUTTON_KEY = "dev.mindbridge.button"


def _dump(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def question_metadata(question_id: QuestionId, question: Question, state: State, revision: int = 1) -> dict[str, Any]:
    """The value of `dev.mindbridge.question`: what a client may know of the question; values stay with the bridge."""
    return {
        "version": 1,
        "question_id": question_id,
        "revision": revision,
        "state": state.value,
        "kind": question.kind,
        "multiple": question.multiple,
        "options": [
            {"number": option.number, "emoji": option.emoji, "label": option.label, "button": option.button}
            for option in question.options
        ],
    }


def _thread_relation(thread_id: EventId | None, latest: EventId) -> dict[str, Any]:
    if thread_id is None:
        return {}
    in_reply_to = {"event_id": latest}
    relation = {"rel_type": "m.thread", "event_id": thread_id, "is_falling_back": True, "m.in_reply_to": in_reply_to}
    return {"m.relates_to": relation}


def _text(msgtype: str, text: Text, mentions: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "msgtype": msgtype,
        "body": text.body,
        "format": "org.matrix.custom.html",
        "formatted_body": text.formatted_body,
        "m.mentions": {"user_ids": list(mentions)} if mentions else {},
    }


def reply(text: Text, thread_id: EventId | None, latest: EventId, metadata: dict[str, Any] | None = None) -> str:
    """A message of an agent; `latest` is the event that clients without threads show as replied to."""
    content = _text("m.text", text) | _thread_relation(thread_id, latest)
    return _dump(content if metadata is None else content | {QUESTION_KEY: metadata})


def notice(text: Text, thread_id: EventId | None, about: EventId, mentions: tuple[str, ...] = ()) -> str:
    """The bridge's own words about the event `about`."""
    relation = _thread_relation(thread_id, about) or {"m.relates_to": {"m.in_reply_to": {"event_id": about}}}
    return _dump(_text("m.notice", text, mentions) | relation)


def words(text: Text) -> str:
    """The bridge's own words to a whole room."""
    return _dump(_text("m.notice", text))


def button(key: str) -> str:
    """A button under a question; its target is put in later."""
    return _dump({"m.relates_to": {"rel_type": "m.annotation", "key": key}, BUTTON_KEY: True})


def edit(line: str, text: Text, metadata: dict[str, Any]) -> str:
    """The closing edit of a question: all of `text` inside, one `line` outside; its target is put in later."""
    return _dump(
        {
            "msgtype": "m.text",
            "body": f"* {line}",
            "m.mentions": {},
            "m.new_content": _text("m.text", text) | {QUESTION_KEY: metadata},
            "m.relates_to": {"rel_type": "m.replace"},
        }
    )


def with_target(content: str, target: EventId | None) -> dict[str, Any]:
    """The content ready to be sent: with the event id of its target, if it has one."""
    ready: dict[str, Any] = json.loads(content)
    if target is not None and "m.relates_to" in ready:
        ready["m.relates_to"]["event_id"] = target
    return ready
