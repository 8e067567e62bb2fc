"""Turns as agents get them."""

from typing import Any

from mindbridge.agents.turn import Selection, Turn


def turn(**changes: Any) -> Turn:
    """A person's "hello" that starts a thread, with what the test changes."""
    fields: dict[str, Any] = {
        "turn_id": "turn_1",
        "attempt": 1,
        "agent": "assistant",
        "kind": "message",
        "room_id": "!room",
        "thread_id": "$hello",
        "event_id": "$hello",
        "sender": {"user_id": "@alice:example.org", "display_name": "Alice"},
        "text": "hello",
        "selection": None,
        "history": (),
        "open_questions": (),
        "problems": (),
    }
    return Turn.model_validate(fields | changes)


def selection(**changes: Any) -> Selection:
    """Alice's click on the first option, with what the test changes."""
    fields: dict[str, Any] = {
        "question_id": "question_1",
        "question_event_id": "$question",
        "thread_id": "$hello",
        "question_text": "What approach would you prefer?",
        "selected_option": {"number": 1, "key": "🚀", "label": "Fast and automated", "value": "fast"},
        "source_event_id": "$click",
        "answered_by": "@alice:example.org",
        "revision": 1,
        "asked_at": "2026-11-30T12:00:00Z",
        "answered_at": "2026-11-30T12:00:09Z",
        "older": False,
    }
    return Selection.model_validate(fields | changes)
