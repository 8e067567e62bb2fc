"""The values that reading, rendering and answering share. All frozen; all text is what a person sees, unescaped."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

DEFAULT_QUESTION = "Please choose an option:"
DEFAULT_LABEL = "Option"
DEFAULT_EMOJI = "❓"
INSTRUCTION = "React with an emoji or type the number to respond."
UNREADABLE = "(A question could not be read.)"


class ProblemCode(StrEnum):
    """What can be wrong with a reply (contract, section 5); stable once released."""

    OPTIONS_TRUNCATED = "options_truncated"
    BLOCK_UNREADABLE = "block_unreadable"
    BLOCK_CUT_OFF = "block_cut_off"
    BLOCK_NOT_LIVE = "block_not_live"
    EMOJI_REPLACED = "emoji_replaced"
    METADATA_TOO_LARGE = "metadata_too_large"
    REPLY_TOO_LONG = "reply_too_long"
    QUESTION_NOT_POSTED = "question_not_posted"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that was wrong with a reply: a stable code and a sentence for the agent."""

    code: ProblemCode
    message: str


@dataclass(frozen=True, slots=True)
class Option:
    """One choice of a question.

    `number` counts from 1. `emoji` is what the list shows. `button` is the reaction key as it is sent: the emoji,
    or the option's keycap where several options share the emoji. `value` keeps its JSON type.
    """

    number: int
    emoji: str
    label: str
    value: JsonValue
    button: str
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A live question: its text, its options in the order shown, numbered 1, 2, 3 …."""

    text: str
    options: tuple[Option, ...]
    kind: Literal["choice"] = "choice"
    multiple: bool = False


@dataclass(frozen=True, slots=True)
class Prose:
    """A stretch of the reply's own Markdown."""

    markdown: str


@dataclass(frozen=True, slots=True)
class PlainQuestion:
    """A block that asks nothing: shown as readable text, without instruction, numbers that count, or buttons.

    `lines` are the option lines to show under `text`, one each; `text` may be the sentence for an unreadable block.
    """

    text: str
    lines: tuple[str, ...] = ()


Segment = Prose | PlainQuestion | Question


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply as read: its segments in order, at most one of them a live `Question`, and what was wrong with it."""

    segments: tuple[Segment, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def question(self) -> Question | None:
        """The live question, if there is one."""
        return next((segment for segment in self.segments if isinstance(segment, Question)), None)
