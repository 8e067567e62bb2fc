"""What live tests say and look for in a room."""

import json
import secrets
from collections.abc import Callable, Iterable
from typing import Any

from tests.live.person import Event, Person

Wanted = Callable[[Event], bool]


def is_message(text: str, sender: str | None = None) -> Wanted:
    """A message (no edit) that contains the text."""

    def wanted(event: Event) -> bool:
        content = event["content"]
        return (
            event["type"] == "m.room.message"
            and text in content.get("body", "")
            and "m.new_content" not in content
            and sender in {None, event["sender"]}
        )

    return wanted


def is_button(key: str, question: str | None = None) -> Wanted:
    """A button of the bridge with this key."""

    def wanted(event: Event) -> bool:
        relation = event["content"].get("m.relates_to", {})
        return (
            event["type"] == "m.reaction"
            and bool(relation.get("key") == key)
            and event["content"].get("dev.mindbridge.button") is True
            and question in {None, relation.get("event_id")}
        )

    return wanted


def is_edit_of(event_id: str) -> Wanted:
    """A replacement of the event."""

    def wanted(event: Event) -> bool:
        relation = event["content"].get("m.relates_to", {})
        return (relation.get("rel_type"), relation.get("event_id")) == ("m.replace", event_id)

    return wanted


def is_notice(sender: str | None = None) -> Wanted:
    """A notice."""
    return lambda event: event["content"].get("msgtype") == "m.notice" and sender in {None, event["sender"]}


def is_question(text: str = "", sender: str | None = None) -> Wanted:
    """A message of the bridge that asks."""
    says = is_message(text, sender)
    return lambda event: "dev.mindbridge.question" in event["content"] and says(event)


def is_join_of(*user_ids: str) -> Wanted:
    """One of these accounts joined."""

    def wanted(event: Event) -> bool:
        is_join = event["type"] == "m.room.member" and event["content"].get("membership") == "join"
        return is_join and event["state_key"] in user_ids

    return wanted


def said_in(person: Person, room: str, sender: str) -> list[str]:
    """All that the account said in the room so far, notices included, edits not."""
    return [each["content"]["body"] for each in person.timeline(room) if is_message("", sender)(each)]


def root_of(event: Event) -> str:
    """The root of the thread in which a message is."""
    relation = event["content"]["m.relates_to"]
    assert relation["rel_type"] == "m.thread"
    return str(relation["event_id"])


def block(question: str, *options: str | tuple[str, str] | Event) -> str:
    """A block that asks this; an option is a label, an emoji with a label, or as it stands in the block."""
    written = [
        {"label": option}
        if isinstance(option, str)
        else option
        if isinstance(option, dict)
        else {"emoji": option[0], "label": option[1]}
        for option in options
    ]
    payload = json.dumps({"question": question, "options": written}, ensure_ascii=False)
    return f"```interactive\n{payload}\n```"


async def room_with(person: Person, *accounts: str, others: Iterable[Person] = (), **more: Any) -> str:
    """A new room of the person's in which these accounts and other people are as well."""
    room = await person.create_room(invite=[*accounts, *(other.user_id for other in others)], **more)
    for other in others:
        await other.join(room)
    for account in accounts:
        await person.wait_for(room, is_join_of(account))
    return room


async def hear_from(person: Person, room: str, *accounts: str) -> str:
    """Has these accounts answer a new message: what came before it is then settled, and seen by the person.

    Gives what each of them said.
    """
    text = f"Still there? {secrets.token_hex(4)}"
    sent = await person.send_text(room, text, mentions=accounts)
    for account in accounts:
        await person.wait_for(room, is_message(f"You said: {text}", account), after=sent)
    return f"You said: {text}"


async def buttons_of(person: Person, room: str, question: str) -> list[str]:
    """The keys of the agent's buttons under the question as they are now, in the order in which they came."""
    events = await person.relations(room, question, "m.annotation")
    return [each["content"]["m.relates_to"]["key"] for each in events if each["content"].get("dev.mindbridge.button")]


async def ask(person: Person, room: str, text: str = "ask me", **more: object) -> Event:
    """Says something that makes the agent ask; the question once it has all its buttons."""
    sent = await person.send_text(room, text, **more)  # type: ignore[arg-type]
    question = await person.wait_for(room, is_question(), after=sent)
    last = question["content"]["dev.mindbridge.question"]["options"][-1]
    await person.wait_for(room, is_button(last["button"], question["event_id"]))
    return question
