"""What one sync response means: a pure function from the journal's snapshot to the decisions to commit.

Every account of the bridge sees a room's events in the same order. Whichever account is shown an event first decides,
for all agents, whether it answers a question; the others find the decision in the journal. A question is open from the
moment its own event was seen in a timeline, so an answer is judged by what was visible before it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from mindbridge import ids
from mindbridge.agents.turn import SelectedOption, Selection
from mindbridge.bridge import wording
from mindbridge.bridge.closing import closing_edit
from mindbridge.bridge.roster import Roster, thread_of
from mindbridge.events import Edit, JoinedRoom, Message, OwnMembership, Reaction, Redaction, RoomEvent, SyncBatch
from mindbridge.ids import AgentName, DeliveryId, EventId, QuestionId, RoomId, TurnId
from mindbridge.journal.records import (
    Acknowledged,
    AskedQuestion,
    Decisions,
    Interest,
    Judged,
    Membership,
    NewDelivery,
    NewTurn,
    Opened,
    Said,
    Selected,
    Sighting,
    Snapshot,
    Utterance,
)
from mindbridge.matrix import content
from mindbridge.questions.answers import (
    TOLD,
    Try,
    Verdict,
    judge,
    may_answer,
    option_typed,
    strip_reply_fallback,
    typed_number,
)
from mindbridge.questions.emoji_keys import match_key
from mindbridge.questions.lifecycle import Happening, State, after
from mindbridge.questions.model import Option
from mindbridge.questions.render import part_from_json


def interest_of(batch: SyncBatch) -> Interest:
    """What the journal has to be asked about before `decide`."""
    events = [event for room in batch.joined for event in room.events]
    targets = {event.target for event in events if isinstance(event, Reaction)}
    targets |= {event.reply_to for event in events if isinstance(event, Message) and event.reply_to}
    threads = {
        (room.room_id, event.thread_id) for room in batch.joined for event in room.events if isinstance(event, Message)
    }
    targets |= {thread for _, thread in threads if thread}
    rooms = {room.room_id for room in batch.joined} | {invite.room_id for invite in batch.invites} | set(batch.left)
    return Interest(
        rooms=tuple(rooms),
        events=tuple({event.event_id for event in events}),
        transactions=tuple({event.transaction_id for event in events if event.transaction_id}),
        targets=tuple(targets),
        threads=tuple(threads),
    )


def decide(agent: AgentName, batch: SyncBatch, roster: Roster, snapshot: Snapshot) -> Decisions:
    """What a sync response of `agent`'s account changes.

    Args:
        agent: whose account was shown it.
        batch: the response.
        roster: who is who.
        snapshot: what the journal knows of it.

    Returns:
        All changes, to be committed together with the response's position.
    """
    admission = _Admission(agent, batch, roster, snapshot)
    admission.run()
    return admission.decisions


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A try to answer `question` with `option`; `key` is what the agent will be told was used."""

    event: Message | Reaction
    question: AskedQuestion
    option: Option
    key: str


class _Admission:
    """The working state of one `decide`: later events of a response see what earlier ones changed."""

    def __init__(self, agent: AgentName, batch: SyncBatch, roster: Roster, snapshot: Snapshot) -> None:
        self.decisions = Decisions()
        self._agent = agent
        self._batch = batch
        self._roster = roster
        self._snapshot = snapshot
        self._seq = snapshot.next_seq
        self._sighted = set(snapshot.sighted)
        self._participations = set(snapshot.participations)
        self._memberships = {each.room_id: each for each in snapshot.memberships}
        self._questions = {each.question_id: each for each in snapshot.questions}

    def run(self) -> None:
        for invite in self._batch.invites:
            self._settle_invite(invite.room_id, allowed=self._roster.may_talk(invite.inviter), ts=invite.server_ts)
        for room_id in self._batch.left:
            self._set_membership(Membership(room_id=room_id, state="left", invited_ts=None))
        for room in self._batch.joined:
            self._admit_room(room)

    def _settle_invite(self, room_id: RoomId, *, allowed: bool, ts: int) -> None:
        state = Membership(room_id=room_id, state="accepted" if allowed else "refused", invited_ts=ts)
        self._set_membership(state)

    def _set_membership(self, membership: Membership) -> None:
        if self._memberships.get(membership.room_id) != membership:
            self._memberships[membership.room_id] = membership
            self.decisions.memberships.append(membership)

    # Rooms

    def _admit_room(self, room: JoinedRoom) -> None:
        history = self._length_of_history(room)
        withdrawn = {event.target for event in room.events if isinstance(event, Redaction)}
        if room.limited:
            self._open_unseen(room)
        for index, event in enumerate(room.events):
            if event.event_id in self._sighted:
                continue
            self._sighted.add(event.event_id)
            counts = index >= history
            self.decisions.sightings.append(
                Sighting(seq=self._seq, event_id=event.event_id, server_ts=event.server_ts, judged=counts)
            )
            if counts:
                self._admit_event(room, event, withdrawn=event.event_id in withdrawn)
            self._seq += 1

    def _length_of_history(self, room: JoinedRoom) -> int:
        """How many events at the start of a room's timeline are from before the account counted there."""
        membership = self._memberships.get(room.room_id)
        if membership is not None and membership.state == "joined":
            return 0
        self._set_membership(Membership(room_id=room.room_id, state="joined", invited_ts=None))
        if self._batch.first:
            return len(room.events)
        own = [(index, event) for index, event in enumerate(room.events) if isinstance(event, OwnMembership)]
        invites = [index for index, event in own if event.membership == "invite"]
        joins = [index for index, event in own if event.membership == "join"]
        if membership is None or membership.state != "accepted":
            return joins[-1] + 1 if joins else 0
        if invites:
            return invites[-1] + 1
        since = membership.invited_ts or 0
        return next((index for index, event in enumerate(room.events) if event.server_ts >= since), len(room.events))

    def _open_unseen(self, room: JoinedRoom) -> None:
        """In a timeline with a gap, a question that the server has counts as seen in the gap."""
        shown = {event.event_id for event in room.events}
        for question in self._questions_in(room.room_id):
            if question.event_id is not None and question.event_id not in shown and question.opened_seq is None:
                self._open(question, question.event_id, question.recorded_at)

    # Events

    def _admit_event(self, room: JoinedRoom, event: RoomEvent, *, withdrawn: bool) -> None:
        if event.transaction_id is not None:
            self.decisions.acknowledged.append(
                Acknowledged(delivery_id=DeliveryId(event.transaction_id), event_id=event.event_id)
            )
        is_new = event.event_id not in self._snapshot.judged
        speaker = self._roster.agent_of(event.sender)
        if speaker is not None:
            if is_new and isinstance(event, Message):
                self._hear_agent(speaker, room, event)
        elif isinstance(event, Message):
            answers = self._try_typed(room, event, withdrawn) if is_new else event.event_id in self._snapshot.verdicts
            if not answers and not withdrawn:
                self._take_message(room, event)
        elif isinstance(event, Reaction) and is_new:
            self._try_reaction(room, event, withdrawn)
        elif isinstance(event, Edit) and is_new:
            self._try_edit(room, event)

    def _hear_agent(self, speaker: AgentName, room: JoinedRoom, event: Message) -> None:
        claimed = self._questions.get(QuestionId(event.question_id)) if event.question_id else None
        is_question = (
            claimed is not None
            and (claimed.agent, claimed.room_id) == (speaker, room.room_id)
            and claimed.event_id in {None, event.event_id}
        )
        if claimed is not None and is_question and claimed.opened_seq is None:
            self._open(claimed, event.event_id, event.server_ts)
        if event.is_notice:
            return
        turn = self._turn_of(event)
        if turn is None and claimed is not None and is_question:
            turn = claimed.turn_id
        utterance = Utterance(
            agent=speaker,
            room_id=room.room_id,
            thread_id=event.thread_id,
            event_id=event.event_id,
            turn_id=turn,
            seq=self._seq,
        )
        self.decisions.utterances.append(utterance)
        for question in self._questions_in(room.room_id):
            if question.agent == speaker and question.turn_id != turn:
                in_thread = question.thread_id == event.thread_id
                self._update(
                    question,
                    last_said_in_room=self._seq,
                    last_said_in_thread=self._seq if in_thread else question.last_said_in_thread,
                )

    def _turn_of(self, event: Message) -> TurnId | None:
        turns = self._snapshot.turns_of_events
        by_transaction = turns.get(event.transaction_id) if event.transaction_id else None
        return by_transaction or turns.get(event.event_id)

    def _open(self, question: AskedQuestion, event_id: EventId, asked_ts: int) -> None:
        self.decisions.opened.append(
            Opened(question_id=question.question_id, event_id=event_id, asked_ts=asked_ts, seq=self._seq)
        )
        state = after(question.state, Happening.SEEN)
        self._update(question, event_id=event_id, asked_ts=asked_ts, opened_seq=self._seq, state=state)

    def _update(self, question: AskedQuestion, **changes: object) -> None:
        self._questions[question.question_id] = replace(question, **changes)  # type: ignore[arg-type]

    def _take_message(self, room: JoinedRoom, event: Message) -> None:
        """An ordinary message: a turn for this account's agent, if it responds."""
        if event.is_notice or not self._roster.may_talk(event.sender):
            return
        config = self._roster.agent(self._agent)
        took_part = event.thread_id is not None and (room.room_id, event.thread_id) in self._participations
        if config is None or not self._roster.responds(self._agent, event, room, took_part=took_part):
            return
        text = strip_reply_fallback(event.text) if event.reply_to else event.text
        thread_id = thread_of(config, event)
        self._say(room.room_id, event.thread_id, event, text)
        self._participations.add((room.room_id, thread_id or EventId("")))
        self.decisions.turns.append(
            NewTurn(
                turn_id=ids.turn_id(self._agent, event.event_id),
                agent=self._agent,
                kind="message",
                room_id=room.room_id,
                thread_id=thread_id,
                source_event_id=event.event_id,
                sender=event.sender,
                sender_name=event.sender_name,
                text=text,
            )
        )

    def _say(self, room_id: RoomId, thread_id: EventId | None, event: RoomEvent, text: str) -> None:
        said = Said(room_id=room_id, thread_id=thread_id, event_id=event.event_id, sender=event.sender, text=text)
        self.decisions.said.append(said)

    # Answers

    def _questions_in(self, room_id: RoomId) -> list[AskedQuestion]:
        """The room's questions that the snapshot holds, in the order in which they were recorded."""
        return [each for each in self._questions.values() if each.room_id == room_id]

    def _try_reaction(self, room: JoinedRoom, event: Reaction, withdrawn: bool) -> None:  # noqa: FBT001
        question = next((each for each in self._questions_in(room.room_id) if each.event_id == event.target), None)
        if question is None or self._roster.agent(question.agent) is None:
            self._record(event, None, Verdict.UNKNOWN_QUESTION, "The reaction is on no question of a configured agent.")
            return
        match = match_key(part_options(question), event.key)
        if match is None:
            self._record(event, question, Verdict.NOT_AN_OPTION, "The reaction is no button of the question.")
            return
        key = str(match.option.number) if match.as_number else match.option.button
        self._judge(_Attempt(event, question, match.option, key), withdrawn=withdrawn, is_person=True)

    def _try_typed(self, room: JoinedRoom, event: Message, withdrawn: bool) -> bool:  # noqa: FBT001
        """Whether a message is an answer, or a try to give one; if so it is judged and no ordinary message."""
        attempt = self._attempt_of(room, event)
        if attempt is None:
            return False
        config = self._roster.agent(attempt.question.agent)
        if config is None:
            return False
        is_number = typed_number(_answer_text(event)) is not None
        permitted = may_answer(config.questions.answerers, attempt.question.requester, event.sender)
        if not is_number and not permitted:
            return False
        self._judge(attempt, withdrawn=withdrawn, is_person=not event.is_notice)
        return True

    def _attempt_of(self, room: JoinedRoom, event: Message) -> _Attempt | None:
        text = _answer_text(event)
        recorded = [each for each in self._questions_in(room.room_id) if self._roster.agent(each.agent) is not None]
        if event.reply_to is not None:
            return _attempt(event, text, (each for each in recorded if each.event_id == event.reply_to), labels=True)
        asked = sorted((each for each in recorded if each.opened_seq is not None), key=_opened_seq)
        here = [each for each in asked if event.thread_id in {each.thread_id, each.event_id}]
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
        opened = [each for each in asked if each.state is State.OPEN]
        meant = [each for each in opened if len(opened) == 1 and each.last_said_in_room <= _opened_seq(each)]
        if not opened:
            meant = [each for each in asked[-1:] if _is_late(each, each.last_said_in_room)]
        alone = self._roster.people_in(room) == 1
        fitting = [each for each in meant if alone or each.requester == event.sender]
        return _attempt(event, text, fitting, labels=False)

    def _try_edit(self, room: JoinedRoom, event: Edit) -> None:
        if typed_number(event.text) is not None and self._questions_in(room.room_id):
            self._record(event, None, Verdict.EDITED, "An edited message never answers.")

    def _judge(self, attempt: _Attempt, *, withdrawn: bool, is_person: bool) -> None:
        event, question = attempt.event, attempt.question
        config = self._roster.agent(question.agent)
        if config is None:
            return
        if question.opened_seq is None and question.event_id is not None:
            # Whoever answers a question by its event has seen it, in a timeline that no account was shown whole.
            self._open(question, question.event_id, question.recorded_at)
            question = self._questions[question.question_id]
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
        elif verdict in TOLD:
            self._tell(attempt, verdict)

    def _record(self, event: RoomEvent, question: AskedQuestion | None, verdict: Verdict, reason: str) -> None:
        self.decisions.verdicts.append(
            Judged(
                event_id=event.event_id,
                question_id=None if question is None else question.question_id,
                sender=event.sender,
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
            seq=self._seq,
        )
        selection = _selection(question, selected, option)
        self.decisions.selections.append(selected)
        self._say(question.room_id, question.thread_id, event, wording.chose(option))
        self.decisions.turns.append(
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
        self.decisions.deliveries.append(
            closing_edit(
                question.question_id,
                question.delivery_id,
                agent=question.agent,
                room_id=question.room_id,
                part=part_from_json(question.part),
                state=after(question.state, Happening.ANSWERED),
                line=wording.taken_line(option, event.sender_name, event.server_ts),
            )
        )
        self._update(
            question,
            state=after(question.state, Happening.ANSWERED),
            closed_seq=self._seq,
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
        self.decisions.deliveries.append(
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
}


def part_options(question: AskedQuestion) -> tuple[Option, ...]:
    """The options of a recorded question."""
    asked = part_from_json(question.part).question
    return () if asked is None else asked.options


def _answer_text(event: Message) -> str:
    return strip_reply_fallback(event.text) if event.reply_to else event.text


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
