"""What one sync response means: a pure function from the journal's snapshot to the decisions to commit.

Every account of the bridge sees a room's events in the same order. Whichever account is shown an event first decides,
for all agents, whether it answers a question; the others find the decision in the journal. A question is open from the
moment its own event was seen in a timeline, so an answer is judged by what was visible before it.
"""

from mindbridge import ids
from mindbridge.bridge.answering import Answering
from mindbridge.bridge.question_book import QuestionBook
from mindbridge.bridge.roster import Roster, thread_of
from mindbridge.events import (
    Edit,
    JoinedRoom,
    Message,
    OwnMembership,
    Reaction,
    Redaction,
    RoomEvent,
    SyncBatch,
    Tombstone,
    Unreadable,
)
from mindbridge.ids import AgentName, DeliveryId, EventId, QuestionId, RoomId
from mindbridge.journal.records import (
    Acknowledged,
    Decisions,
    Interest,
    Membership,
    NewTurn,
    RoomClosed,
    Said,
    Sighting,
    Snapshot,
    Unread,
    Upgrade,
)


def interest_of(batch: SyncBatch) -> Interest:
    """What the journal has to be asked about before `decide`."""
    shown = (*batch.parting, *batch.joined)
    events = [event for room in shown for event in room.events]
    targets = {event.target for event in events if isinstance(event, Reaction | Redaction)}
    targets |= {event.reply_to for event in events if isinstance(event, Message) and event.reply_to}
    threads = {(room.room_id, event.thread_id) for room in shown for event in room.events if isinstance(event, Message)}
    targets |= {thread for _, thread in threads if thread}
    claims = {QuestionId(event.question_id) for event in events if isinstance(event, Message) and event.question_id}
    rooms = {room.room_id for room in batch.joined} | {invite.room_id for invite in batch.invites} | set(batch.left)
    rooms |= {event.replacement for event in events if isinstance(event, Tombstone)}
    return Interest(
        rooms=tuple(rooms),
        events=tuple({event.event_id for event in events}),
        transactions=tuple({event.transaction_id for event in events if event.transaction_id}),
        targets=tuple(targets),
        claims=tuple(claims),
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


class _Admission:
    """The working state of one `decide`: later events of a response see what earlier ones changed."""

    def __init__(self, agent: AgentName, batch: SyncBatch, roster: Roster, snapshot: Snapshot) -> None:
        self.decisions = Decisions()
        self._agent = agent
        self._batch = batch
        self._roster = roster
        self._snapshot = snapshot
        self._sighted = set(snapshot.sighted)
        self._participations = set(snapshot.participations)
        self._memberships = {each.room_id: each for each in snapshot.memberships}
        self._is_parting = False
        self._book = QuestionBook(snapshot, self.decisions)
        self._answering = Answering(self._book, roster, self.decisions)

    def run(self) -> None:
        # An answer counts also where its room was left right after it; a message does not: nobody could hear the reply.
        self._is_parting = True
        for room in self._batch.parting:
            if self._is_joined(room.room_id):
                self._admit_room(room)
        self._is_parting = False
        for room_id in self._batch.left:
            self._set_membership(Membership(room_id=room_id, state="left", invited_ts=None))
            self.decisions.rooms_closed.append(RoomClosed(room_id=room_id, reason="room_left"))
        # A room that is both was left first: who was kicked and invited again is shown both.
        for invite in self._batch.invites:
            self._settle_invite(invite.room_id, allowed=self._roster.may_talk(invite.inviter), ts=invite.server_ts)
        for room in self._batch.joined:
            self._admit_room(room)

    def _is_joined(self, room_id: RoomId) -> bool:
        membership = self._memberships.get(room_id)
        return membership is not None and membership.state == "joined"

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
            next_seq = self._book.seq
            self._book.seq = self._snapshot.places.get(event.event_id, next_seq)
            is_judged = counts and not isinstance(event, Unreadable)
            self.decisions.sightings.append(
                Sighting(seq=self._book.seq, event_id=event.event_id, server_ts=event.server_ts, judged=is_judged)
            )
            if counts:
                self._admit_event(room, event, withdrawn=event.event_id in withdrawn)
            self._book.seq = next_seq if self._book.seq < next_seq else next_seq + 1

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
        for question in self._book.in_room(room.room_id):
            if question.event_id is not None and question.event_id not in shown and question.opened_seq is None:
                self._book.open(question, question.event_id, question.recorded_at)

    def _admit_event(self, room: JoinedRoom, event: RoomEvent, *, withdrawn: bool) -> None:
        if event.transaction_id is not None:
            echo = Acknowledged(delivery_id=DeliveryId(event.transaction_id), event_id=event.event_id)
            self.decisions.acknowledged.append(echo)
            self._book.acknowledge(echo.delivery_id, echo.event_id)
        if isinstance(event, Tombstone):
            self._follow(room, event)
        elif isinstance(event, Redaction):
            self.decisions.withdrawn.append(event.target)
        elif isinstance(event, Unreadable) and not withdrawn and self._roster.may_talk(event.sender):
            self._keep_unread(room, event)
        is_new = event.event_id not in self._snapshot.judged
        speaker = self._roster.agent_of(event.sender)
        if speaker is None:
            self._admit_event_of_other(room, event, is_new=is_new, withdrawn=withdrawn)
        elif is_new and isinstance(event, Message):
            self._book.hear(speaker, room.room_id, event)

    def _admit_event_of_other(self, room: JoinedRoom, event: RoomEvent, *, is_new: bool, withdrawn: bool) -> None:
        if isinstance(event, Message):
            answers = (
                self._answering.try_typed(room, event, withdrawn=withdrawn)
                if is_new
                else event.event_id in self._snapshot.verdicts
            )
            if not answers and not withdrawn:
                self._take_message(room, event)
        elif isinstance(event, Reaction) and is_new:
            self._answering.try_reaction(room, event, withdrawn=withdrawn)
        elif isinstance(event, Edit) and is_new:
            self._answering.try_edit(room, event)
        elif isinstance(event, Redaction):
            # Also one that was judged: the account that judged it may not have known the question's event.
            self._answering.take_back(room, event)

    def _follow(self, room: JoinedRoom, event: Tombstone) -> None:
        """The room was upgraded: its questions are closed, and the new room is joined where that is wanted."""
        self._book.close_all(room.room_id, self._agent)
        self.decisions.rooms_closed.append(RoomClosed(room_id=room.room_id, reason="room_upgraded"))
        if not self._roster.may_talk(event.sender) and self._roster.agent_of(event.sender) is None:
            return
        known = self._memberships.get(event.replacement)
        is_outside = known is None or known.state in {"left", "refused"}
        if is_outside:
            self._settle_invite(event.replacement, allowed=True, ts=event.server_ts)
        self.decisions.upgrades.append(
            Upgrade(
                event_id=event.event_id,
                room_id=room.room_id,
                replacement=event.replacement,
                joined_for_it=is_outside,
            )
        )

    def _keep_unread(self, room: JoinedRoom, event: Unreadable) -> None:
        self.decisions.unread.append(
            Unread(
                event_id=event.event_id,
                room_id=room.room_id,
                thread_id=event.thread_id,
                sender=event.sender,
                source=event.source,
                seq=self._book.seq,
            )
        )

    def _take_message(self, room: JoinedRoom, event: Message) -> None:
        """An ordinary message: a turn for this account's agent, if it responds."""
        if event.is_notice or self._is_parting or not self._roster.may_talk(event.sender):
            return
        config = self._roster.agent(self._agent)
        took_part = event.thread_id is not None and (room.room_id, event.thread_id) in self._participations
        if config is None or not self._roster.responds(self._agent, event, room, took_part=took_part):
            return
        thread_id = thread_of(config, event)
        self.decisions.said.append(
            Said(
                room_id=room.room_id,
                thread_id=event.thread_id,
                event_id=event.event_id,
                sender=event.sender,
                text=event.text,
            )
        )
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
                text=event.text,
            )
        )
