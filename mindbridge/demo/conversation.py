"""A room as a client remembers it: messages with the buttons that their authors put under them, and their edits."""

from collections.abc import Iterator

from mindbridge.demo.timeline import Edit, Message, QuestionShown, Reaction, Redaction, Seen
from mindbridge.ids import EventId, UserId


class Conversation:
    """All that was seen in one room, in the server's order."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self._positions: dict[EventId, int] = {}
        self._redacted: set[EventId] = set()

    def add(self, event: Seen) -> bool:
        """Remember an event; False where it is known already."""
        if event.event_id in self._positions:
            return False
        self._positions[event.event_id] = len(self.seen)
        self.seen.append(event)
        if isinstance(event, Redaction):
            self._redacted.add(event.target)
        return True

    def after(self, event_id: EventId) -> list[Seen]:
        """What was seen behind this event; nothing where the event itself was not seen yet."""
        position = self._positions.get(event_id, len(self.seen))
        return self.seen[position + 1 :]

    def message(self, event_id: EventId) -> Message | None:
        """The message with this id."""
        position = self._positions.get(event_id)
        event = None if position is None else self.seen[position]
        return event if isinstance(event, Message) else None

    def messages(self) -> Iterator[Message]:
        """All messages, oldest first."""
        return (event for event in self.seen if isinstance(event, Message))

    def edits(self, message: Message) -> list[Edit]:
        """The message's edits by its own sender, oldest first; anyone else's change nothing."""
        return [
            event
            for event in self.seen
            if isinstance(event, Edit) and event.original == message.event_id and event.sender == message.sender
        ]

    def text(self, message: Message) -> str:
        """What the message says by now."""
        edits = self.edits(message)
        return edits[-1].text if edits else message.text

    def question(self, message: Message) -> QuestionShown | None:
        """What the message asks, in its state by now."""
        told = [message.question, *(edit.question for edit in self.edits(message))]
        return next((question for question in reversed(told) if question is not None), None)

    def buttons(self, message: Message) -> list[Reaction]:
        """The buttons that the message's sender ever put under it, in order."""
        return [
            event
            for event in self.seen
            if isinstance(event, Reaction) and event.target == message.event_id and event.sender == message.sender
        ]

    def is_withdrawn(self, event: Seen) -> bool:
        """Whether the event was redacted."""
        return event.event_id in self._redacted

    def is_open(self, message: Message) -> bool:
        """Whether the message is a question that waits for its answer."""
        question = self.question(message)
        return question is not None and question.state == "open"

    def is_complete(self, message: Message) -> bool:
        """Whether nothing of the message is still to come: it asks nothing, or it has all its buttons, or is closed."""
        question = self.question(message)
        if question is None or question.state != "open":
            return True
        return {option.button for option in question.options} <= {button.key for button in self.buttons(message)}

    def thread_for(self, user: UserId) -> EventId | None:
        """Where `user` would talk on: the thread of the newest word to them, None since they began anew outside."""
        for message in reversed(list(self.messages())):
            if message.sender == user and message.thread_id is None:
                return None
            if message.sender != user and message.thread_id is not None:
                return message.thread_id
        return None
