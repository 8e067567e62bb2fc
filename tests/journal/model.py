"""A small model of which answers count: it knows a room's timeline, and when agents asked; no journal, no SQL."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mindbridge.events import Message, Reaction, Redaction, RoomEvent
from mindbridge.ids import AgentName, EventId, QuestionId, UserId
from mindbridge.journal.records import NewQuestion, QueuedTurn

KEYS = {"🚀": 1, "🔍": 2, "1️⃣": 1, "2️⃣": 2}
"""What answers a question as a reaction. Every question of the model has these two options."""

_NUMBERS = {"1": 1, "2": 2}


@dataclass(slots=True)
class Asked:
    """A question; the places are those of events in the order in which they were first shown to an account."""

    agent: AgentName
    thread: EventId | None
    text: str
    requester: UserId
    event: EventId | None = None
    state: str = "posting"
    opened: int | None = None
    closed: int = 0
    taken: int | None = None


class Model:
    """What is true of the questions in one room."""

    def __init__(self, accounts: dict[UserId, AgentName], people: Sequence[UserId]) -> None:
        self.questions: dict[QuestionId, Asked] = {}
        self.selected: dict[QuestionId, EventId] = {}
        self.verdicts: dict[EventId, str] = {}
        self._accounts = accounts
        self._people = people
        self._places: dict[EventId, int] = {}
        self._said: list[tuple[AgentName, EventId | None, EventId]] = []

    # What the bridge does

    def asks(self, turn: QueuedTurn, question: NewQuestion) -> None:
        """A turn has asked; the same text in the same thread closes what was asked before."""
        for each in self.questions.values():
            same = (each.agent, each.thread, each.text) == (turn.agent, turn.thread_id, question.text)
            if same and each.state in {"posting", "open"}:
                each.state = "superseded"
        self.questions[question.question_id] = Asked(turn.agent, turn.thread_id, question.text, question.requester)

    def found(self, question: QuestionId) -> None:
        """The question's event, which may not have been shown to an account yet, was looked up."""
        if self.questions[question].opened is None:
            self._open(self.questions[question])

    def refused(self, question: QuestionId) -> None:
        """The homeserver does not take the question's message."""
        asked = self.questions[question]
        if asked.state == "posting":
            asked.state = "failed"

    # What an account is shown

    def judge(self, shown: Iterable[RoomEvent]) -> None:
        """An account is shown a part of the timeline; what no account was shown before is decided now."""
        events = list(shown)
        withdrawn = {event.target for event in events if isinstance(event, Redaction)}
        for event in events:
            if event.event_id in self._places:
                continue
            self._places[event.event_id] = 1 + len(self._places)
            is_withdrawn = event.event_id in withdrawn
            if isinstance(event, Redaction):
                self._take_back(event)
            elif isinstance(event, Message) and event.sender in self._accounts:
                self._hear(event)
            elif isinstance(event, Message):
                self._try_typed(event, withdrawn=is_withdrawn)
            elif isinstance(event, Reaction) and event.sender not in self._accounts:
                self._try_click(event, withdrawn=is_withdrawn)

    def _of_event(self, event: EventId) -> QuestionId | None:
        return next((name for name, each in self.questions.items() if each.event == event), None)

    def _open(self, asked: Asked) -> None:
        asked.opened = len(self._places)
        if asked.state == "posting":
            asked.state = "open"

    def _hear(self, event: Message) -> None:
        name = self._of_event(event.event_id)
        if name is not None:
            self._open(self.questions[name])
        if not event.is_notice:
            self._said.append((self._accounts[event.sender], event.thread_id, event.event_id))

    def _has_said_since(self, asked: Asked, place: int, *, anywhere: bool) -> bool:
        return any(
            agent == asked.agent and event != asked.event and self._places[event] > place
            for agent, thread, event in self._said
            if anywhere or thread == asked.thread
        )

    def _try_click(self, event: Reaction, *, withdrawn: bool) -> None:
        name = self._of_event(event.target)
        if name is None:
            self.verdicts[event.event_id] = "unknown_question"
        elif event.key not in KEYS:
            self.verdicts[event.event_id] = "not_an_option"
        else:
            self._try(name, KEYS[event.key], event, withdrawn=withdrawn)

    def _try_typed(self, event: Message, *, withdrawn: bool) -> None:
        number = _NUMBERS.get(event.text)
        name = None if number is None else self._meant(event)
        if number is not None and name is not None:
            self._try(name, number, event, withdrawn=withdrawn)

    def _meant(self, event: Message) -> QuestionId | None:
        """The question that a typed number means (contract, section 4)."""
        if event.reply_to is not None:
            return self._of_event(event.reply_to)
        in_room = sorted((each.opened, name) for name, each in self.questions.items() if each.opened is not None)
        in_order = [name for _, name in in_room]
        if event.thread_id is None:
            return self._meant_outside(in_order, event.sender)
        here = [name for name in in_order if self.questions[name].thread == event.thread_id]
        for name in here[-1:]:
            newest = self.questions[name]
            if newest.state == "answered" and not self._has_said_since(newest, newest.closed, anywhere=False):
                return name
        return next((name for name in reversed(here) if self.questions[name].state == "open"), None)

    def _meant_outside(self, in_order: list[QuestionId], sender: UserId) -> QuestionId | None:
        """The room's only open question, or else its newest, just answered; of two people only its requester's."""
        opened = [name for name in in_order if self.questions[name].state == "open"]
        for name in (opened or in_order)[-1:]:
            asked = self.questions[name]
            since = asked.opened if opened else asked.closed
            fits = len(opened) <= 1 and asked.state in {"open", "answered"} and asked.requester == sender
            return name if fits and not self._has_said_since(asked, since or 0, anywhere=True) else None
        return None

    def _try(self, name: QuestionId, number: int, event: Message | Reaction, *, withdrawn: bool) -> None:
        asked = self.questions[name]
        if asked.opened is None:
            self._open(asked)
        verdict = self._verdict(asked, number, event.sender, withdrawn=withdrawn)
        self.verdicts[event.event_id] = verdict
        if verdict == "selected":
            asked.state, asked.taken, asked.closed = "answered", number, len(self._places)
            self.selected[name] = event.event_id

    def _verdict(self, asked: Asked, number: int, sender: UserId, *, withdrawn: bool) -> str:
        if sender not in self._people:
            return "not_allowed"
        if withdrawn:
            return "withdrawn"
        if asked.state == "answered":
            return "same_option" if asked.taken == number else "already_answered"
        return {"open": "selected", "superseded": "superseded", "closed": "question_closed"}[asked.state]

    def _take_back(self, event: Redaction) -> None:
        name = self._of_event(event.target)
        if name is not None and self.questions[name].state in {"posting", "open"}:
            self.questions[name].state = "closed"
            self.verdicts[event.event_id] = "question_closed"
