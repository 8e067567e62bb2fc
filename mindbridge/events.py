"""What arrives from a homeserver: frozen values that `matrix/` makes and `bridge/` judges."""

from dataclasses import dataclass

from mindbridge.ids import EventId, RoomId, UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomEvent:
    """Any event of a room's timeline. `server_ts` is the server's time in milliseconds since 1970.

    `transaction_id` is set only on the account's own events, by the server that took them.
    """

    event_id: EventId
    sender: UserId
    server_ts: int
    transaction_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(RoomEvent):
    """A new `m.room.message` with text.

    `reply_to` is the event of a real reply, never a thread's fallback. `mentions` is None where the sender's client
    said nothing about mentions. `question_id` is the claim in `dev.mindbridge.question`, which anyone can make.
    """

    sender_name: str
    text: str
    formatted_text: str = ""
    is_notice: bool = False
    thread_id: EventId | None = None
    reply_to: EventId | None = None
    mentions: frozenset[str] | None = None
    question_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit(RoomEvent):
    """A replacement of an earlier message; `text` is the new text."""

    original: EventId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction(RoomEvent):
    """An annotation of `target` with any string as `key`."""

    sender_name: str
    target: EventId
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable(RoomEvent):
    """An encrypted event whose key has not come; `source` is the event as JSON, `thread_id` what is in the clear."""

    source: str
    thread_id: EventId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction(RoomEvent):
    """`target` was withdrawn."""

    target: EventId


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMembership(RoomEvent):
    """The account's own membership in the room changed: `invite`, `join`, and so on."""

    membership: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone(RoomEvent):
    """The room was upgraded; `replacement` is the new one."""

    replacement: RoomId


@dataclass(frozen=True, slots=True)
class JoinedRoom:
    """One room's part of a sync response. `limited`: events between the last response and these are missing.

    `members` are the joined users, the account itself included. `before`: the position right before the first of
    `events`, from which history is read backwards.
    """

    room_id: RoomId
    members: frozenset[UserId]
    limited: bool
    events: tuple[RoomEvent, ...]
    before: str | None = None


@dataclass(frozen=True, slots=True)
class Invite:
    """An invitation of the account to a room."""

    room_id: RoomId
    inviter: UserId
    server_ts: int


@dataclass(frozen=True, slots=True)
class SyncBatch:
    """One sync response of one account.

    `first`: the account's very first, whose timelines are history. `left`: rooms that the account is not in any more;
    `parting`: what happened there before that, as far as the server shows it. `keys_came`: what was unread may be
    readable now.
    """

    next_batch: str
    first: bool
    joined: tuple[JoinedRoom, ...]
    invites: tuple[Invite, ...]
    left: tuple[RoomId, ...]
    parting: tuple[JoinedRoom, ...] = ()
    keys_came: bool = False
