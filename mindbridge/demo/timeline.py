"""What a person's client sees in a room, as plain values, and what it makes of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mindbridge.ids import EventId, QuestionId, UserId


class OptionShown(BaseModel, frozen=True):
    """One option, as a question's metadata tells it."""

    number: int
    emoji: str
    label: str
    button: str


class QuestionShown(BaseModel, frozen=True):
    """A message's `dev.mindbridge.question` (contract, section 3)."""

    question_id: QuestionId
    state: str
    options: tuple[OptionShown, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Any event. `from_here`: this very client sent it."""

    event_id: EventId
    sender: UserId
    from_here: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Seen):
    """A new message; `question` where it claims to be one."""

    text: str
    is_notice: bool = False
    thread_id: EventId | None = None
    question: QuestionShown | None = None

    @property
    def options(self) -> tuple[OptionShown, ...]:
        """The options that the message offers; none where it asks nothing."""
        return () if self.question is None else self.question.options


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit(Seen):
    """A replacement of `original` with a new text and a new state of its question."""

    original: EventId
    text: str
    question: QuestionShown | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction(Seen):
    """An annotation of `target`."""

    target: EventId
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction(Seen):
    """`target` was withdrawn."""

    target: EventId


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined(Seen):
    """`user` came into the room."""

    user: UserId


class _Lenient(BaseModel):
    model_config = ConfigDict(populate_by_name=True)


class _Relation(_Lenient):
    rel_type: str | None = None
    event_id: EventId | None = None
    key: str | None = None


class _NewContent(_Lenient):
    body: str
    question: QuestionShown | None = Field(None, alias="dev.mindbridge.question")


class _Content(_Lenient):
    body: str | None = None
    msgtype: str | None = None
    membership: str | None = None
    redacts: EventId | None = None
    relation: _Relation = Field(_Relation(), alias="m.relates_to")
    new_content: _NewContent | None = Field(None, alias="m.new_content")
    question: QuestionShown | None = Field(None, alias="dev.mindbridge.question")


class _Unsigned(_Lenient):
    transaction_id: str | None = None


class _Event(_Lenient):
    event_id: EventId
    type: str
    sender: UserId
    state_key: UserId | None = None
    content: _Content
    unsigned: _Unsigned = _Unsigned()


class _About(TypedDict):
    event_id: EventId
    sender: UserId
    from_here: bool


def read_event(event: Mapping[str, object]) -> Seen | None:
    """What an event of a sync response says; None for what this client does not show, or can't read."""
    try:
        read = _Event.model_validate(event)
    except ValidationError:
        return None
    content, relation = read.content, read.content.relation
    from_here = read.unsigned.transaction_id is not None
    about: _About = {"event_id": read.event_id, "sender": read.sender, "from_here": from_here}
    match read.type, relation.rel_type, content.new_content:
        case "m.room.message", "m.replace", _NewContent() as new if relation.event_id:
            return Edit(**about, original=relation.event_id, text=new.body, question=new.question)
        case "m.room.message", rel_type, _ if content.body is not None:
            return Message(
                **about,
                text=content.body,
                is_notice=content.msgtype == "m.notice",
                thread_id=relation.event_id if rel_type == "m.thread" else None,
                question=content.question,
            )
        case "m.reaction", "m.annotation", _ if relation.event_id and relation.key is not None:
            return Reaction(**about, target=relation.event_id, key=relation.key)
        case "m.room.redaction", _, _ if content.redacts:
            return Redaction(**about, target=content.redacts)
        case "m.room.member", _, _ if content.membership == "join" and read.state_key:
            return Joined(**about, user=read.state_key)
        case _:
            return None
