"""The turn that an agent gets (contract, section 5): JSON for programs, a typed object for Python.

Field names and their order are the contract's; `Turn.model_dump_json()` gives its JSON on one line, non-ASCII as it is.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class _Payload(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Sender(_Payload):
    """The person whose message or answer caused the turn."""

    user_id: str
    display_name: str


class SelectedOption(_Payload):
    """The option that was chosen (contract, section 4).

    `number` counts from 1, as shown. `key` is the option's emoji button if that was clicked, else its number as text.
    `value` keeps the type that it had in the agent's block: 0, false and "" too.
    """

    number: int
    key: str
    label: str
    value: JsonValue


class Selection(_Payload):
    """The answer that was taken (contract, section 4).

    `question_event_id` is the message that asked, `source_event_id` the reaction or message that answered. `asked_at`
    and `answered_at` are the server's times, ISO 8601 in UTC. `older`: the agent has said something newer in the thread
    since it asked.
    """

    question_id: str
    question_event_id: str
    thread_id: str | None
    question_text: str
    selected_option: SelectedOption
    source_event_id: str
    answered_by: str
    revision: int
    asked_at: str
    answered_at: str
    older: bool


class HistoryEntry(_Payload):
    """An earlier message of the thread; role `assistant` is the agent itself, `user` anyone else."""

    role: Literal["user", "assistant"]
    sender: str
    text: str


class OpenQuestion(_Payload):
    """A question of the agent in the thread that still waits for its answer."""

    question_id: str
    question_event_id: str
    question_text: str


class TurnProblem(_Payload):
    """Something that was wrong with the agent's previous reply in the thread: a stable code and a sentence."""

    code: str
    message: str


class Turn(_Payload):
    """One piece of work for an agent: a person's message, or an answer to one of its questions.

    `turn_id` stays the same when the turn is tried again; the first recorded reply is the only one that is sent.
    `attempt` counts from 1 and grows with failures, never with crashes. `thread_id` is the root of the thread that the
    reply goes to, None only in rooms where the agent talks without threads. For kind `selection`, `selection` is filled
    and `text` says the same in words. `history` (without the message that the turn is about) and `open_questions` are
    the thread's, oldest first. `problems` tells once what was wrong with the previous reply there.

    `role` and `instructions` are the configuration's, for Python agents; they are no part of the JSON.
    """

    version: Literal[1] = 1
    turn_id: str
    attempt: int
    agent: str
    kind: Literal["message", "selection"]
    room_id: str
    thread_id: str | None
    event_id: str
    sender: Sender
    text: str
    selection: Selection | None
    history: tuple[HistoryEntry, ...]
    open_questions: tuple[OpenQuestion, ...]
    problems: tuple[TurnProblem, ...]
    role: str | None = Field(default=None, exclude=True)
    instructions: tuple[str, ...] = Field(default=(), exclude=True)
