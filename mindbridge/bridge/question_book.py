"""The questions that one sync response touches, as they are while it is admitted."""

from dataclasses import replace

from mindbridge.events import Message
from mindbridge.ids import AgentName, DeliveryId, EventId, QuestionId, RoomId, TurnId
from mindbridge.journal.records import AskedQuestion, Closed, Decisions, Opened, Snapshot, Utterance
from mindbridge.questions.lifecycle import Happening, after


class QuestionBook:
    """The snapshot's questions: what an event changes, the events after it see. `seq` is the event's place."""

    def __init__(self, snapshot: Snapshot, decisions: Decisions) -> None:
        self.seq = snapshot.next_seq
        self._questions = {each.question_id: each for each in snapshot.questions}
        self._turns_of_events = snapshot.turns_of_events
        self._decisions = decisions

    def in_room(self, room_id: RoomId) -> list[AskedQuestion]:
        """The room's questions, in the order in which they were recorded."""
        return [each for each in self._questions.values() if each.room_id == room_id]

    def change(self, question: AskedQuestion, **changes: object) -> AskedQuestion:
        """Notes what has changed about a question; the question as it is now."""
        changed = replace(question, **changes)  # type: ignore[arg-type]
        self._questions[question.question_id] = changed
        return changed

    def acknowledge(self, delivery_id: DeliveryId, event_id: EventId) -> None:
        """Notes that a delivery is in the room, as the event `event_id`: where it is a question, as the question's."""
        for question in list(self._questions.values()):
            if question.delivery_id == delivery_id and question.event_id is None:
                self.change(question, event_id=event_id)

    def open(self, question: AskedQuestion, event_id: EventId, asked_ts: int) -> AskedQuestion:
        """Notes that a question was seen in its room, as the event `event_id`."""
        self._decisions.opened.append(
            Opened(question_id=question.question_id, event_id=event_id, asked_ts=asked_ts, seq=self.seq)
        )
        state = after(question.state, Happening.SEEN)
        return self.change(question, event_id=event_id, asked_ts=asked_ts, opened_seq=self.seq, state=state)

    def close(self, question: AskedQuestion) -> None:
        """Notes that a question's message was redacted."""
        self._decisions.closed.append(Closed(question_id=question.question_id, seq=self.seq))
        self.change(question, state=after(question.state, Happening.CLOSED), closed_seq=self.seq)

    def close_all(self, room_id: RoomId, agent: AgentName) -> None:
        """An agent's questions in a room can't be answered any more; the journal closes them as a whole."""
        for question in self.in_room(room_id):
            if question.agent == agent:
                self.change(question, state=after(question.state, Happening.CLOSED))

    def hear(self, speaker: AgentName, room_id: RoomId, event: Message) -> None:
        """Notes what an agent was seen to say: a question of its own, or something newer than its questions."""
        claimed = self._questions.get(QuestionId(event.question_id)) if event.question_id else None
        is_question = (
            claimed is not None
            and (claimed.agent, claimed.room_id) == (speaker, room_id)
            and claimed.event_id in {None, event.event_id}
        )
        if claimed is not None and is_question:
            # Also one that was looked up before, or whose place was in a gap: this is its true place.
            self.open(claimed, event.event_id, event.server_ts)
        if event.is_notice:
            return
        turn = self._turn_of(event)
        if turn is None and claimed is not None and is_question:
            turn = claimed.turn_id
        utterance = Utterance(
            agent=speaker,
            room_id=room_id,
            thread_id=event.thread_id,
            event_id=event.event_id,
            turn_id=turn,
            seq=self.seq,
        )
        self._decisions.utterances.append(utterance)
        for question in self.in_room(room_id):
            if question.agent == speaker and question.turn_id != turn:
                in_thread = question.thread_id == event.thread_id
                self.change(
                    question,
                    last_said_in_room=self.seq,
                    last_said_in_thread=self.seq if in_thread else question.last_said_in_thread,
                )

    def _turn_of(self, event: Message) -> TurnId | None:
        turns = self._turns_of_events
        by_transaction = turns.get(event.transaction_id) if event.transaction_id else None
        return by_transaction or turns.get(event.event_id)
