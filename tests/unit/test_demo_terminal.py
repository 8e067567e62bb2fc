"""The demo's little client: what it reads from the server, what it shows, what a click and a typed line mean."""

import asyncio
import io
import os
from pathlib import Path
from typing import Any

import pytest

from mindbridge.demo.chat import click_on
from mindbridge.demo.conversation import Conversation
from mindbridge.demo.screen import Screen
from mindbridge.demo.timeline import (
    Edit,
    Joined,
    Message,
    OptionShown,
    QuestionShown,
    Reaction,
    Redaction,
    Seen,
    read_event,
)
from mindbridge.demo.typed_lines import typed_lines
from mindbridge.ids import EventId, QuestionId, UserId

YOU, AGENT = UserId("@you:x"), UserId("@agent:x")
NAMES = {YOU: "You", AGENT: "Assistant"}
ROOT = EventId("$root")


def question(*buttons: str, state: str = "open") -> QuestionShown:
    options = (OptionShown(number=n, emoji=key, label="x", button=key) for n, key in enumerate(buttons, start=1))
    return QuestionShown(question_id=QuestionId("q"), state=state, options=tuple(options))


def asked(event_id: str, *buttons: str) -> Message:
    text = "\n".join(("What?", "", *(f"{number}. {key}" for number, key in enumerate(buttons, start=1)), "", "React."))
    shown = question(*buttons)
    return Message(event_id=EventId(event_id), sender=AGENT, text=text, thread_id=ROOT, question=shown)


def button(target: Message, key: str, sender: UserId = AGENT) -> Reaction:
    event_id = EventId(f"{target.event_id} {key} {sender}")
    return Reaction(event_id=event_id, sender=sender, target=target.event_id, key=key)


def closing(target: Message, line: str, sender: UserId = AGENT) -> Edit:
    text = target.text.replace("React.", line)
    event_id = EventId(f"{target.event_id} edit {sender}")
    return Edit(
        event_id=event_id, sender=sender, original=target.event_id, text=text, question=question(state="answered")
    )


def said(text: str, sender: UserId = AGENT, thread: EventId | None = ROOT, **more: Any) -> Message:
    return Message(event_id=EventId(f"${text}"), sender=sender, text=text, thread_id=thread, **more)


def conversation(*events: Seen) -> Conversation:
    remembered = Conversation()
    for event in events:
        remembered.add(event)
    return remembered


def shown(*events: Seen, coloured: bool = False, prompts: bool = False) -> str:
    """What the terminal shows of these events."""
    out = io.StringIO()
    screen = Screen(out, NAMES, YOU, coloured=coloured, wraps=False, prompts=prompts)
    remembered = Conversation()
    for event in events:
        remembered.add(event)
        screen.show(event, remembered)
    return out.getvalue()


# Reading


def raw(event_type: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"event_id": "$1", "type": event_type, "sender": AGENT, "origin_server_ts": 1, "content": content} | more


def test_events_are_read_as_the_server_tells_them() -> None:
    thread = {"rel_type": "m.thread", "event_id": "$root", "is_falling_back": True, "m.in_reply_to": {"event_id": "$2"}}
    text = {"msgtype": "m.text", "body": "hello"}
    asking = {"version": 1, "question_id": "q", "state": "open", "options": [vars(question("🚀").options[0])]}
    replacement = {"rel_type": "m.replace", "event_id": "$0"}
    replacing = {"body": "* new", "m.new_content": {"body": "new"}, "m.relates_to": replacement}
    annotation = {"m.relates_to": {"rel_type": "m.annotation", "event_id": "$0", "key": "🚀"}}
    about: dict[str, Any] = {"event_id": EventId("$1"), "sender": AGENT}
    assert read_event(raw("m.room.message", text)) == Message(**about, text="hello")
    assert read_event(raw("m.room.message", text, unsigned={"transaction_id": "t"})) == Message(
        **about, text="hello", from_here=True
    )
    assert read_event(
        raw("m.room.message", {**text, "m.relates_to": thread, "dev.mindbridge.question": asking})
    ) == Message(**about, text="hello", thread_id=ROOT, question=question("🚀"))
    assert read_event(raw("m.room.message", {"msgtype": "m.notice", "body": "no"})) == Message(
        **about, text="no", is_notice=True
    )
    assert read_event(raw("m.room.message", replacing)) == Edit(**about, original=EventId("$0"), text="new")
    assert read_event(raw("m.reaction", annotation)) == Reaction(**about, target=EventId("$0"), key="🚀")
    assert read_event(raw("m.room.redaction", {"redacts": "$0"})) == Redaction(**about, target=EventId("$0"))
    assert read_event(raw("m.room.member", {"membership": "join"}, state_key=YOU)) == Joined(**about, user=YOU)


@pytest.mark.parametrize(
    "event",
    [
        {},
        raw("m.room.message", {}),
        raw("m.room.message", {"body": 5}),
        raw("m.room.message", {"body": "x", "dev.mindbridge.question": "mine"}),
        raw("m.reaction", {}),
        raw("m.reaction", {"m.relates_to": {"rel_type": "m.annotation", "event_id": "$0"}}),
        raw("m.room.redaction", {}),
        raw("m.room.member", {"membership": "leave"}, state_key=YOU),
        raw("m.room.name", {"name": "x"}),
    ],
)
def test_events_that_say_nothing_to_this_client_are_left_out(event: dict[str, Any]) -> None:
    assert read_event(event) is None


# Showing


def test_a_question_is_shown_with_its_buttons_once_all_are_there() -> None:
    menu = asked("$q", "🚀", "🔍")
    assert shown(menu, button(menu, "🚀")) == (
        "Assistant ↳ What?\n\n            1. 🚀\n            2. 🔍\n\n            React.\n"
    )
    assert shown(menu, button(menu, "🚀"), button(menu, "🔍")).endswith("            React.\n            [🚀] [🔍]\n")


def test_a_click_is_shown_and_is_no_button() -> None:
    menu, newer = asked("$q", "🚀", "🔍"), asked("$newer", "🍵", "☕")
    assert shown(menu, button(menu, "🚀"), button(menu, "🚀", YOU)).endswith("React.\nYou         clicked 🚀\n")
    assert shown(menu, newer, button(menu, "🔍", YOU)).endswith("You         clicked 🔍 under an earlier question\n")


def test_an_edit_shows_the_lines_that_are_new() -> None:
    menu = asked("$q", "🚀", "🔍")
    assert shown(menu, closing(menu, "✔ 1. 🚀 x · You")).endswith("React.\nAssistant ↳ ✔ 1. 🚀 x · You\n")


def test_an_edit_by_someone_else_shows_nothing() -> None:
    menu = asked("$q", "🚀", "🔍")
    assert shown(menu, closing(menu, "✔ 1. 🚀 x · You", YOU)) == shown(menu)


def test_buttons_that_come_after_the_answer_are_not_shown() -> None:
    menu = asked("$q", "🚀")
    assert "[🚀]" not in shown(menu, closing(menu, "✔ 1. 🚀 x · You"), button(menu, "🚀"))


def test_an_own_message_that_was_typed_at_this_prompt_is_not_shown_again() -> None:
    here, elsewhere = said("hello", YOU, from_here=True), said("hello", YOU)
    assert shown(here, prompts=True) == ""
    assert shown(elsewhere, prompts=True) == "You       ↳ hello\n"
    assert shown(here) == "You       ↳ hello\n"


def test_nobody_can_steer_the_terminal() -> None:
    assert shown(said("a\x1b[2Jb\r\x07c\x9bd", thread=None)) == "Assistant   a[2Jbcd\n"
    menu = asked("$q", "🚀")
    assert shown(menu, button(menu, "\x1b[2J", YOU)).endswith("clicked [2J\n")


def test_what_comes_takes_the_prompts_place_and_the_prompt_follows() -> None:
    out = io.StringIO()
    screen = Screen(out, NAMES, YOU, coloured=False, wraps=False, prompts=True)
    screen.prompt()
    screen.show(event := said("hi"), conversation(event))
    screen.typed()
    screen.tell("told")
    screen.leave()
    assert out.getvalue() == "You         \r\x1b[KAssistant ↳ hi\nYou       ↳ told\n"


def test_colours_come_only_where_they_are_wanted() -> None:
    assert "\x1b[1m" in shown(said("hi"), coloured=True)
    assert "\x1b" not in shown(said("hi"), coloured=False)


# Talking


def test_what_is_typed_goes_to_the_thread_that_an_agent_answered_in() -> None:
    root = said("hello", YOU, None)
    assert conversation().thread_for(YOU) is None
    assert conversation(root).thread_for(YOU) is None
    assert conversation(root, said("hi")).thread_for(YOU) == ROOT
    assert conversation(root, said("hi"), said("1", YOU)).thread_for(YOU) == ROOT
    assert conversation(root, said("hi"), said("new", YOU, None)).thread_for(YOU) is None
    other = EventId("$new")
    assert conversation(root, said("hi"), said("new", YOU, None), said("ho", thread=other)).thread_for(YOU) == other


def test_a_click_means_the_newest_open_question_that_has_the_button() -> None:
    older, newer = asked("$older", "🍵", "☕️"), asked("$newer", "🌅", "1️⃣")
    both = conversation(older, newer)
    assert click_on(both, "🌅") == (newer, "🌅")
    assert click_on(both, "☕") == (older, "☕️")
    assert click_on(both, "1") == (newer, "1️⃣")
    assert click_on(both, "2") == (newer, "2️⃣")
    assert click_on(both, "👀") == (newer, "👀")
    assert click_on(conversation(older, newer, closing(newer, "✔")), "🌅") == (older, "🌅")
    assert click_on(conversation(older, closing(older, "✔")), "🍵") == (older, "🍵")
    assert click_on(conversation(said("hello")), "🍵") is None


# Typing


async def lines_of(data: bytes) -> list[str]:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as stdin, os.fdopen(write_end, "wb") as typing:
        lines = typed_lines(stdin)
        reading = asyncio.create_task(_collect(lines))
        typing.write(data)
        typing.close()
        return await reading


async def _collect(lines: Any) -> list[str]:
    return [line async for line in lines]


async def test_lines_come_whole_from_a_pipe_the_last_one_too() -> None:
    assert await lines_of("hello\n\n🚀\nlast".encode()) == ["hello", "", "🚀", "last"]
    assert await lines_of(b"") == []


async def test_a_line_comes_as_soon_as_it_is_typed() -> None:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as stdin, os.fdopen(write_end, "wb", buffering=0) as typing:
        lines = typed_lines(stdin)
        typing.write("one\n\N{ROCKET}".encode()[:-2])
        assert await anext(lines) == "one"
        typing.write("\N{ROCKET}\n".encode()[2:])
        assert await anext(lines) == "\N{ROCKET}"


async def test_lines_come_from_a_file_and_none_from_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("hello\n1\n")
    for source, lines in ((path, ["hello", "1"]), (Path(os.devnull), [])):
        with source.open() as file:
            assert await _collect(typed_lines(file)) == lines
    assert await _collect(typed_lines(None)) == []
