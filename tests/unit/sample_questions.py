"""Recorded questions, and what a decision about a sync response is given."""

from typing import Any

from mindbridge.events import Edit, Invite, JoinedRoom, OwnMembership, Reaction, Redaction, RoomEvent, SyncBatch
from mindbridge.ids import DeliveryId, EventId, QuestionId, RoomId, TurnId, UserId
from mindbridge.journal.records import AskedQuestion, Membership, Snapshot
from mindbridge.questions.lifecycle import State
from mindbridge.questions.model import Option, Question, Reply
from mindbridge.questions.render import part_to_json, render_reply
from tests.unit.sample_room import ALICE, HELPER, NOON, ROOM, room

THREAD = EventId("$root")
OPTIONS = (
    Option(number=1, emoji="🚀", label="Fast", value="fast", button="🚀"),
    Option(number=2, emoji="🔍", label="Careful", value=0, button="🔍"),
    Option(number=3, emoji="❤️", label="With love", value={"love": True}, button="❤️"),
)
NEXT_SEQ = 100
JOINED = Membership(room_id=ROOM, state="joined", invited_ts=None)


def part_of(text: str, options: tuple[Option, ...] = OPTIONS) -> str:
    """The message of a question, as it is recorded."""
    (part,) = render_reply(Reply((Question(text=text, options=options),)))
    return part_to_json(part)


def question(name: str = "q", *, seq: int = 1, options: tuple[Option, ...] = OPTIONS, **changes: Any) -> AskedQuestion:
    """An open question of the helper's in the thread, asked because of Alice, with what the test changes.

    Its event is `$` and its name; it was seen as event number 10 times `seq`.
    """
    fields: dict[str, Any] = {
        "seq": seq,
        "question_id": QuestionId(f"question_{name}"),
        "agent": HELPER,
        "room_id": ROOM,
        "thread_id": THREAD,
        "turn_id": TurnId(f"turn_{name}"),
        "delivery_id": DeliveryId(f"delivery_{name}"),
        "event_id": EventId(f"${name}"),
        "requester": ALICE,
        "text": f"{name}?",
        "part": part_of(f"{name}?", options),
        "state": State.OPEN,
        "revision": 1,
        "recorded_at": NOON - 2_000,
        "asked_ts": NOON - 1_000,
        "opened_seq": seq * 10,
        "closed_seq": None,
        "taken_number": None,
        "taken_by_name": None,
        "taken_ts": None,
        "last_said_in_thread": 0,
        "last_said_in_room": 0,
    }
    return AskedQuestion(**(fields | changes))


def unseen(name: str = "q", *, event_id: str | None = None, **changes: Any) -> AskedQuestion:
    """A question that no account was shown yet; with `event_id` where the server has acknowledged it."""
    fields: dict[str, Any] = {"state": State.POSTING, "event_id": event_id, "asked_ts": None, "opened_seq": None}
    return question(name, **(fields | changes))


def answered(name: str = "q", *, number: int = 1, closed_seq: int = 50, **changes: Any) -> AskedQuestion:
    """A question that Bob has answered."""
    taken: dict[str, Any] = {"taken_number": number, "taken_by_name": "Bob", "taken_ts": NOON - 500}
    closed: dict[str, Any] = {"state": State.ANSWERED, "closed_seq": closed_seq}
    return question(name, **(closed | taken | changes))


def snapshot(*questions: AskedQuestion, **changes: Any) -> Snapshot:
    """What the journal knows: the account is in the room, and these questions; with what the test changes."""
    fields: dict[str, Any] = {
        "next_seq": NEXT_SEQ,
        "sighted": frozenset(),
        "judged": frozenset(),
        "verdicts": frozenset(),
        "questions": questions,
        "participations": frozenset({(ROOM, THREAD)}),
        "memberships": (JOINED,),
        "turns_of_events": {},
    }
    return Snapshot(**(fields | changes))


def batch(*events: RoomEvent, **changes: Any) -> SyncBatch:
    """A sync response with these events in the room, with what the test changes."""
    rooms: tuple[JoinedRoom, ...] = (room(*events),) if events else ()
    fields: dict[str, Any] = {"next_batch": "s1", "first": False, "joined": rooms, "invites": (), "left": ()}
    return SyncBatch(**(fields | changes))


def _event(event_id: str, sender: UserId, **changes: Any) -> dict[str, Any]:
    return {"event_id": EventId(event_id), "sender": sender, "server_ts": NOON} | changes


def _name(sender: UserId) -> str:
    return sender[1:].split(":")[0].title()


def click(key: str = "🔍", target: str = "$q", event_id: str = "$click", sender: UserId = ALICE) -> Reaction:
    """A reaction on a question."""
    return Reaction(**_event(event_id, sender), sender_name=_name(sender), target=EventId(target), key=key)


def redaction(target: str, event_id: str = "$redaction") -> Redaction:
    """Alice takes something back."""
    return Redaction(**_event(event_id, ALICE), target=EventId(target))


def edit(text: str, event_id: str = "$edit", sender: UserId = ALICE) -> Edit:
    """A change of an earlier message."""
    return Edit(**_event(event_id, sender), original=EventId("$message"), text=text)


def own_membership(membership: str, event_id: str, sender: UserId = ALICE, **changes: Any) -> OwnMembership:
    """The account's own membership."""
    return OwnMembership(**_event(event_id, sender, **changes), membership=membership)


def invite(inviter: UserId, room_id: str = ROOM, server_ts: int = NOON) -> Invite:
    """An invitation."""
    return Invite(RoomId(room_id), inviter, server_ts)
