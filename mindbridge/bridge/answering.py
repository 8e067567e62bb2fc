"""Which question an event means to answer, and what becomes of the try (contract, section 4)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from mindbridge import ids
from mindbridge.agents.turn import SelectedOption, Selection
from mindbridge.bridge import wording
from mindbridge.bridge.closing import closing_edit
from mindbridge.bridge.question_book import QuestionBook
from mindbridge.bridge.roster import Roster
from mindbridge.events import Edit, JoinedRoom, Message, Reaction, Redaction, RoomEvent
from mindbridge.journal.records import (
    AskedQuestion,
    Decisions,
    Judged,
    NewDelivery,
    NewTurn,
    Said,
    Selected,
    Unanswered,
)
from mindbridge.matrix import content
from mindbridge.questions.answers import TOLD, Try, Verdict, judge, may_answer, option_typed, typed_number
from mindbridge.questions.emoji_keys import match_key
from mindbridge.questions.lifecycle import Happening, State, after
from mindbridge.questions.model import Option
from mindbridge.questions.render import part_from_json


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A try to answer `question` with `option`; `key` is what the agent will be told was used."""

    event: Message | Reaction
    question: AskedQuestion
    option: Option
    key: str


class Answering:
    """Judges what could be an answer; what it decides goes into `decisions` and the book."""

    def __init__(self, book: QuestionBook, roster: Roster, decisions: Decisions) -> None:
        self._book = book
        self._roster = roster
        self._decisions = decisions

    def try_reaction(self, room: JoinedRoom, event: Reaction, *, withdrawn: bool) -> None:
        """Judges a reaction."""
        question = next((each for each in self._book.in_room(room.room_id) if each.event_id == event.target), None)
        if question is None or self._roster.agent(question.agent) is None:
            self._record(event, None, Verdict.UNKNOWN_QUESTION, "The reaction is on no question of a configured agent.")
            return
        options = part_options(question)
        match = match_key(options, event.key)
        if match is None:
            gone = "The question's options are no longer kept."
            reason = "The reaction is no button of the question." if options else gone
            self._record(event, question, Verdict.NOT_AN_OPTION, reason)
            return
        key = str(match.option.number) if match.as_number else match.option.button
        self._judge(_Attempt(event, question, match.option, key), withdrawn=withdrawn, is_person=True)

    def try_typed(self, room: JoinedRoom, event: Message, *, withdrawn: bool) -> bool:
        """Whether a message is an answer, or a try to give one; if so it is judged and no ordinary message."""
        attempt = self._attempt_of(room, event)
        if attempt is None:
            return False
        config = self._roster.agent(attempt.question.agent)
        if config is None:
            return False
        is_number = typed_number(event.text) is not None
        permitted = may_answer(config.questions.answerers, attempt.question.requester, event.sender)
        if not is_number and not permitted:
            return False
        self._judge(attempt, withdrawn=withdrawn, is_person=not event.is_notice)
        return True

    def _attempt_of(self, room: JoinedRoom, event: Message) -> _Attempt | None:
        text = event.text
        configured = self._roster.config.agents
        recorded = [each for each in self._book.in_room(room.room_id) if each.agent in configured]
        if event.reply_to is not None:
            return _attempt(event, text, (each for each in recorded if each.event_id == event.reply_to), labels=True)
        # An event that could be read only later means what it meant at its place: nothing that was asked after it.
        asked = [each for each in recorded if each.opened_seq is not None and each.opened_seq < self._book.seq]
        here = sorted((each for each in asked if event.thread_id in (each.thread_id, each.event_id)), key=_opened_seq)
        late = [each for each in here[-1:] if _is_late(each, each.last_said_in_thread)]
        if attempt := _attempt(event, text, late, labels=False):
            return attempt
        opened = [each for each in here if each.state is State.OPEN]
        if opened:
            return _attempt(event, text, opened[-1:], labels=True)
        if event.thread_id is not None:
            return None
        return self._attempt_outside_threads(room, event, text, asked)

    def _attempt_outside_threads(
        self, room: JoinedRoom, event: Message, text: str, asked: list[AskedQuestion]
    ) -> _Attempt | None:
        """A number typed in the main timeline, by a client without threads, for a question in a thread."""
        if typed_number(text) is None:
            return None
        opened = [each for each in asked if each.state is State.OPEN]
        meant = [each for each in opened if len(opened) == 1 and each.last_said_in_room <= _opened_seq(each)]
        if not opened:
            newest = sorted(asked, key=_opened_seq)[-1:]
            meant = [each for each in newest if _is_late(each, each.last_said_in_room)]
        alone = self._roster.people_in(room) == 1
        fitting = [each for each in meant if alone or each.requester == event.sender]
        return _attempt(event, text, fitting, labels=False)

    def try_edit(self, room: JoinedRoom, event: Edit) -> None:
        """Judges an edit, which never answers."""
        if typed_number(event.text) is not None and self._book.in_room(room.room_id):
            self._record(event, None, Verdict.EDITED, "An edited message never answers.")

    def take_back(self, room: JoinedRoom, event: Redaction) -> None:
        """Closes a question whose own message was redacted."""
        question = next((each for each in self._book.in_room(room.room_id) if each.event_id == event.target), None)
        if question is None:
            return
        if after(question.state, Happening.CLOSED) is not question.state:
            self._book.close(question)
            self._record(event, question, Verdict.QUESTION_CLOSED, "It redacted the question, which closed it.")

    def _judge(self, attempt: _Attempt, *, withdrawn: bool, is_person: bool) -> None:
        event, question = attempt.event, attempt.question
        config = self._roster.agent(question.agent)
        if config is None:
            return
        if question.opened_seq is None and question.event_id is not None:
            # Whoever answers a question by its event has seen it, in a timeline that no account was shown whole.
            question = self._book.open(question, question.event_id, question.recorded_at)
            attempt = replace(attempt, question=question)
        verdict = judge(
            question.state,
            question.taken_number,
            Try(
                number=attempt.option.number,
                is_person=is_person and self._roster.is_person(event.sender),
                allowed=self._roster.may_talk(event.sender),
                may_answer=may_answer(config.questions.answerers, question.requester, event.sender),
                withdrawn=withdrawn,
            ),
        )
        self._record(event, question, verdict, _REASONS[verdict])
        if verdict is Verdict.SELECTED:
            self._select(attempt)
        elif verdict in TOLD and not config.questions.quiet:
            self._tell(attempt, verdict)

    def _record(self, event: RoomEvent, question: AskedQuestion | None, verdict: Verdict, reason: str) -> None:
        self._decisions.verdicts.append(
            Judged(
                event_id=event.event_id,
                question_id=None if question is None else question.question_id,
                sender=None if question is None else event.sender,
                verdict=verdict,
                reason=reason,
            )
        )

    def _select(self, attempt: _Attempt) -> None:
        event, question, option = attempt.event, attempt.question, attempt.option
        turn = ids.turn_id(question.agent, event.event_id)
        selected = Selected(
            question_id=question.question_id,
            source_event_id=event.event_id,
            turn_id=turn,
            answered_by=event.sender,
            answered_by_name=event.sender_name,
            number=option.number,
            key=attempt.key,
            answered_ts=event.server_ts,
            seq=self._book.seq,
        )
        selection = _selection(question, selected, option)
        self._decisions.selections.append(selected)
        self._decisions.said.append(
            Said(
                room_id=question.room_id,
                thread_id=question.thread_id,
                event_id=event.event_id,
                sender=event.sender,
                text=wording.chose(option),
            )
        )
        self._decisions.turns.append(
            NewTurn(
                turn_id=turn,
                agent=question.agent,
                kind="selection",
                room_id=question.room_id,
                thread_id=question.thread_id,
                source_event_id=event.event_id,
                sender=event.sender,
                sender_name=event.sender_name,
                text=wording.selection_text(selection, event.sender_name),
                selection=selection.model_dump_json(),
            )
        )
        self._decisions.deliveries.append(
            closing_edit(
                Unanswered(
                    question_id=question.question_id,
                    delivery_id=question.delivery_id,
                    agent=question.agent,
                    room_id=question.room_id,
                    part=question.part,
                ),
                after(question.state, Happening.ANSWERED),
                wording.taken_line(option, event.sender_name, event.server_ts),
            )
        )
        self._book.change(
            question,
            state=after(question.state, Happening.ANSWERED),
            closed_seq=self._book.seq,
            taken_number=option.number,
            taken_by_name=event.sender_name,
            taken_ts=event.server_ts,
        )

    def _tell(self, attempt: _Attempt, verdict: Verdict) -> None:
        event, question = attempt.event, attempt.question
        taken = next((each for each in part_options(question) if each.number == question.taken_number), None)
        line = None
        if taken is not None:
            line = wording.taken_line(taken, question.taken_by_name or "", question.taken_ts or 0)
        text = wording.told(verdict, event.sender_name, line)
        self._decisions.deliveries.append(
            NewDelivery(
                delivery_id=ids.delivery_id(question.question_id, f"{verdict} to {event.sender}"),
                agent=question.agent,
                room_id=question.room_id,
                kind="notice",
                content=content.notice(text, question.thread_id, question.event_id or event.event_id, (event.sender,)),
                question_id=question.question_id,
            )
        )


_REASONS = {
    Verdict.SELECTED: "It was the first answer to the open question.",
    Verdict.SAME_OPTION: "The question was already answered with the same option.",
    Verdict.ALREADY_ANSWERED: "The question was already answered with another option.",
    Verdict.SUPERSEDED: "The question was asked again; this one is closed.",
    Verdict.NOT_ALLOWED: "The sender is not in access.users.",
    Verdict.NOT_ANSWERER: "The sender is not among the question's answerers.",
    Verdict.NOT_A_PERSON: "Agents, bots and notices never answer.",
    Verdict.WITHDRAWN: "It was withdrawn before it could be taken.",
    Verdict.UNKNOWN_QUESTION: "The question was never posted.",
    Verdict.QUESTION_CLOSED: "The question is closed without an answer; `mindbridge journal show` says why.",
}


def part_options(question: AskedQuestion) -> tuple[Option, ...]:
    """The options of a recorded question."""
    asked = part_from_json(question.part).question
    return () if asked is None else asked.options


def _attempt(event: Message, text: str, questions: Iterable[AskedQuestion], *, labels: bool) -> _Attempt | None:
    for question in questions:
        option = option_typed(part_options(question), text, labels=labels)
        if option is not None:
            return _Attempt(event, question, option, str(option.number))
    return None


def _opened_seq(question: AskedQuestion) -> int:
    return question.opened_seq or 0


def _is_late(question: AskedQuestion, last_said: int) -> bool:
    """Whether the question was answered and its agent has said nothing since."""
    return question.state is State.ANSWERED and last_said <= (question.closed_seq or 0)


def _selection(question: AskedQuestion, selected: Selected, option: Option) -> Selection:
    return Selection(
        question_id=question.question_id,
        question_event_id=question.event_id or "",
        thread_id=question.thread_id,
        question_text=question.text,
        selected_option=SelectedOption(number=option.number, key=selected.key, label=option.label, value=option.value),
        source_event_id=selected.source_event_id,
        answered_by=selected.answered_by,
        revision=question.revision,
        asked_at=wording.iso(question.asked_ts or question.recorded_at),
        answered_at=wording.iso(selected.answered_ts),
        older=question.last_said_in_thread > _opened_seq(question),
    )
