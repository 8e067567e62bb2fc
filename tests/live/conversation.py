"""What live tests look for in a room."""

from collections.abc import Callable

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


async def buttons_of(person: Person, room: str, question: str) -> list[str]:
    """The keys of the agent's buttons under the question as they are now, in the order in which they came."""
    events = await person.relations(room, question, "m.annotation")
    return [each["content"]["m.relates_to"]["key"] for each in events if each["content"].get("dev.mindbridge.button")]


async def ask(person: Person, room: str, last_button: str = "🔍\ufe0f", text: str = "ask me", **more: object) -> Event:
    """Says something that makes the agent ask; the question once it has all its buttons."""
    sent = await person.send_text(room, text, **more)  # type: ignore[arg-type]
    question = await person.wait_for(room, lambda event: "dev.mindbridge.question" in event["content"], after=sent)
    await person.wait_for(room, is_button(last_button, question["event_id"]))
    return question
