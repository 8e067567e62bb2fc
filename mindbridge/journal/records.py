"""The rows of the journal as frozen values. Times are milliseconds since 1970."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from mindbridge.ids import AgentName, DeliveryId, EventId, QuestionId, RoomId, TurnId, UserId
from mindbridge.questions.answers import Verdict
from mindbridge.questions.lifecycle import State
from mindbridge.questions.model import Problem

TurnKind = Literal["message", "selection"]
DeliveryKind = Literal["message", "notice", "button", "edit", "redaction"]
MembershipState = Literal["accepted", "refused", "joined", "left"]
CloseReason = Literal["question_redacted", "room_left", "room_upgraded", "agent_removed", "posted_otherwise"]

RANKS: dict[DeliveryKind, int] = {"message": 0, "notice": 0, "button": 1, "edit": 2, "redaction": 3}
"""The order in which an account sends what is due: lower first, then as recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """One outgoing event to record.

    `content` is the event's content as JSON; the event id of `target_id`'s event is put into its relation when it is
    sent. `after_turn`: not before that turn has ended.
    """

    delivery_id: DeliveryId
    agent: AgentName
    room_id: RoomId
    kind: DeliveryKind
    content: str
    turn_id: TurnId | None = None
    question_id: QuestionId | None = None
    target_id: DeliveryId | None = None
    after_turn: TurnId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A recorded delivery that is due. `target_event` is the event that it relates to.

    `tried_before`: with no word from the server. If the server took it, its event came after the sync position
    `attempted_since`.
    """

    delivery_id: DeliveryId
    agent: AgentName
    room_id: RoomId
    kind: DeliveryKind
    content: str
    question_id: QuestionId | None
    target_event: EventId | None
    tried_before: bool
    attempted_since: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTurn:
    """A turn to queue. `selection` is the selection as JSON for kind `selection`."""

    turn_id: TurnId
    agent: AgentName
    kind: TurnKind
    room_id: RoomId
    thread_id: EventId | None
    source_event_id: EventId
    sender: UserId
    sender_name: str
    text: str
    selection: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedTurn(NewTurn):
    """A turn that waits to be run; `failures` counts the attempts that failed."""

    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewQuestion:
    """A question to record together with its deliveries. `part` is the rendered message as JSON."""

    question_id: QuestionId
    delivery_id: DeliveryId
    requester: UserId
    text: str
    part: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A recorded question, as answering needs it.

    `opened_seq`, `closed_seq`: when it was seen in the room and when it was closed, in the journal's own order.
    `last_said_in_thread`, `last_said_in_room`: when its agent was last seen to say something else there (0: never).
    """

    seq: int
    question_id: QuestionId
    agent: AgentName
    room_id: RoomId
    thread_id: EventId | None
    turn_id: TurnId
    delivery_id: DeliveryId
    event_id: EventId | None
    requester: UserId
    text: str
    part: str
    state: State
    revision: int
    recorded_at: int
    asked_ts: int | None
    opened_seq: int | None
    closed_seq: int | None
    taken_number: int | None
    taken_by_name: str | None
    taken_ts: int | None
    last_said_in_thread: int
    last_said_in_room: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A question that waits for an answer, with what an edit of it needs. `part` is its rendered message as JSON."""

    question_id: QuestionId
    delivery_id: DeliveryId
    agent: AgentName
    room_id: RoomId
    part: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparable:
    """A question that is to be compared with the server. `part` is its rendered message as JSON."""

    question_id: QuestionId
    room_id: RoomId
    event_id: EventId
    part: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """What the journal knows of an account in a room; `invited_ts` is the server's time of the accepted invite."""

    room_id: RoomId
    state: MembershipState
    invited_ts: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interest:
    """What one sync response touches, so that the journal can answer for it with a few queries.

    `targets`: events that others relate to. `claims`: the questions that messages say they are.
    """

    rooms: tuple[RoomId, ...]
    events: tuple[EventId, ...]
    transactions: tuple[str, ...]
    targets: tuple[EventId, ...]
    claims: tuple[QuestionId, ...]
    threads: tuple[tuple[RoomId, EventId | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What the journal knows of all that a sync response touches, read in the transaction that admits it.

    `sighted`: events this account was shown before; `judged`: events whose meaning was decided, whichever account saw
    them; `participations`: the threads among those touched in which the account's agent had a turn; `turns_of_events`:
    the turns whose messages were touched, by event id and by transaction id; `places`: where events belong that were
    shown before and could be read only now.
    """

    next_seq: int
    sighted: frozenset[EventId]
    judged: frozenset[EventId]
    verdicts: frozenset[EventId]
    questions: tuple[AskedQuestion, ...]
    participations: frozenset[tuple[RoomId, EventId]]
    memberships: tuple[Membership, ...]
    turns_of_events: Mapping[str, TurnId]
    places: Mapping[EventId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """An event that an account was shown; `judged`: this account decided what it means."""

    seq: int
    event_id: EventId
    server_ts: int
    judged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """An encrypted event that waits for its key; `source` is the event as JSON, `seq` its place."""

    event_id: EventId
    room_id: RoomId
    thread_id: EventId | None
    sender: UserId
    source: str
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadNow(Unread):
    """The same as it is in the journal: `seen_at` is when it was first shown, `told` whether its sender knows."""

    seen_at: int
    told: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A question was seen in its room."""

    question_id: QuestionId
    event_id: EventId
    asked_ts: int
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """An agent was seen to say something; `turn_id` where it is known already which turn it belongs to."""

    agent: AgentName
    room_id: RoomId
    thread_id: EventId | None
    event_id: EventId
    turn_id: TurnId | None
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """The server has this delivery: its own answer said so, or the echo in a sync response."""

    delivery_id: DeliveryId
    event_id: EventId


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The verdict on one event that could have been an answer; without a sender where it was about no question."""

    event_id: EventId
    question_id: QuestionId | None
    sender: UserId | None
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """An answer that was taken."""

    question_id: QuestionId
    source_event_id: EventId
    turn_id: TurnId
    answered_by: UserId
    answered_by_name: str
    number: int
    key: str
    answered_ts: int
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Accepted words of a person, for the history; an answer reads `chose 2. Careful and manual`."""

    room_id: RoomId
    thread_id: EventId | None
    event_id: EventId
    sender: UserId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """A question that was redacted."""

    question_id: QuestionId
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomClosed:
    """The account's questions in a room can't be answered any more."""

    room_id: RoomId
    reason: CloseReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """A room is said to be replaced by another; `joined_for_it`: the account has no other reason to join that one."""

    event_id: EventId
    room_id: RoomId
    replacement: RoomId
    joined_for_it: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedUpgrade(Upgrade):
    """An upgrade that is not settled yet.

    `had_questions`: some of the agent's were open in the room. `membership`: the account's in the replacement.
    """

    had_questions: bool
    membership: MembershipState | None


@dataclass(slots=True, kw_only=True)
class Decisions:
    """All that one sync response changes; written in one transaction with its `next_batch`.

    `withdrawn`: events that were redacted, which need not be read any more.
    """

    sightings: list[Sighting] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    withdrawn: list[EventId] = field(default_factory=list)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    opened: list[Opened] = field(default_factory=list)
    utterances: list[Utterance] = field(default_factory=list)
    verdicts: list[Judged] = field(default_factory=list)
    selections: list[Selected] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    turns: list[NewTurn] = field(default_factory=list)
    deliveries: list[NewDelivery] = field(default_factory=list)
    memberships: list[Membership] = field(default_factory=list)
    closed: list[Closed] = field(default_factory=list)
    rooms_closed: list[RoomClosed] = field(default_factory=list)
    upgrades: list[Upgrade] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContext:
    """What a turn's agent is told beside the event itself: history oldest first, open questions, untold problems."""

    history: tuple[tuple[UserId, str], ...]
    open_questions: tuple[tuple[QuestionId, EventId, str], ...]
    problems: tuple[Problem, ...]


def parameters_of(record: Any) -> dict[str, Any]:
    """The fields of a record. All are plain values, so nothing of them is copied, as `asdict` would."""
    return {each.name: getattr(record, each.name) for each in fields(record)}
