"""From an event's JSON to a typed value. Anyone can send any JSON, so nothing is taken for granted."""

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeGuard

from mindbridge.events import (
    Edit,
    Invite,
    Message,
    OwnMembership,
    Reaction,
    Redaction,
    RoomEvent,
    Tombstone,
    Unreadable,
)
from mindbridge.ids import EventId, RoomId, UserId
from mindbridge.matrix.content import QUESTION_KEY
from mindbridge.questions.answers import strip_reply_fallback

_WORDS = ("m.text", "m.emote", "m.notice")
_LONGEST_ID = 255
# The last second that a calendar holds, 9999-12-31T23:59:59Z, in milliseconds.
_LATEST = 253_402_300_799_000


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _string(value: object) -> str | None:
    """The text, with what no encoding holds (half of a surrogate pair) replaced; None for anything else."""
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else None


def is_id(value: object) -> TypeGuard[str]:
    """Whether a value can be the id of an event, a user or a room: no text is longer than 255 characters, or empty."""
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_ID


def read_event(source: object, own_user: UserId, name_of: Callable[[UserId], str]) -> RoomEvent | None:
    """Reads one event of a timeline.

    Args:
        source: the event's JSON, decrypted.
        own_user: the account that was shown the event.
        name_of: the display name of a member of the room.

    Returns:
        The most telling value for it; a bare `RoomEvent` for all that can't matter; None for what is no event at all.
    """
    event = _mapping(source)
    event_id, sender = _string(event.get("event_id")), _string(event.get("sender"))
    server_ts = event.get("origin_server_ts")
    if not is_id(event_id) or not is_id(sender) or not isinstance(server_ts, int):
        return None
    base = RoomEvent(
        event_id=EventId(event_id),
        sender=UserId(sender),
        server_ts=_time(server_ts),
        transaction_id=_string(_mapping(event.get("unsigned")).get("transaction_id")) if sender == own_user else None,
    )
    content = _mapping(event.get("content"))
    match event.get("type"):
        case "m.room.message":
            return _read_message(base, content, name_of)
        case "m.reaction":
            return _read_reaction(base, content, name_of)
        case "m.room.redaction":
            target = _string(event.get("redacts")) or _string(content.get("redacts"))
            return base if target is None else Redaction(**_fields(base), target=EventId(target))
        case "m.room.member" if event.get("state_key") == own_user:
            before = _mapping(_mapping(event.get("unsigned")).get("prev_content")).get("membership")
            membership = _string(content.get("membership")) or "leave"
            return base if membership == before else OwnMembership(**_fields(base), membership=membership)
        case "m.room.tombstone" if event.get("state_key") == "":
            replacement = _string(content.get("replacement_room"))
            if not is_id(replacement) or not replacement.startswith("!"):
                return base
            return Tombstone(**_fields(base), replacement=RoomId(replacement))
        case "m.room.encrypted" if isinstance(content.get("ciphertext"), str):
            relation = _mapping(content.get("m.relates_to"))
            thread = _string(relation.get("event_id")) if relation.get("rel_type") == "m.thread" else None
            thread_id = EventId(thread) if is_id(thread) else None
            return Unreadable(**_fields(base), source=json.dumps(event), thread_id=thread_id)
    return base


def read_invite(room_id: RoomId, invite_state: Iterable[object], own_user: UserId) -> Invite | None:
    """Reads who invited the account, from the stripped state of its invitation; None where it does not say."""
    for source in invite_state:
        event = _mapping(source)
        inviter = _string(event.get("sender"))
        if event.get("type") == "m.room.member" and event.get("state_key") == own_user and is_id(inviter):
            server_ts = event.get("origin_server_ts")
            return Invite(room_id, UserId(inviter), _time(server_ts) if isinstance(server_ts, int) else 0)
    return None


def _time(server_ts: int) -> int:
    return min(max(server_ts, 0), _LATEST)


def _fields(base: RoomEvent) -> dict[str, Any]:
    return {name: getattr(base, name) for name in ("event_id", "sender", "server_ts", "transaction_id")}


def _read_message(base: RoomEvent, content: dict[str, Any], name_of: Callable[[UserId], str]) -> RoomEvent:
    relation = _mapping(content.get("m.relates_to"))
    related = _string(relation.get("event_id"))
    text = _string(content.get("body"))
    if relation.get("rel_type") == "m.replace":
        new_text = _string(_mapping(content.get("m.new_content")).get("body"))
        return Edit(**_fields(base), original=EventId(related), text=new_text or "") if related else base
    if content.get("msgtype") not in _WORDS or text is None:
        return base
    in_thread = relation.get("rel_type") == "m.thread" and related is not None
    reply_to = _string(_mapping(relation.get("m.in_reply_to")).get("event_id"))
    is_fallback = in_thread and relation.get("is_falling_back") is True
    return Message(
        **_fields(base),
        sender_name=_string(name_of(base.sender)) or base.sender,
        text=strip_reply_fallback(text) if reply_to else text,
        formatted_text=_string(content.get("formatted_body")) or "",
        is_notice=content.get("msgtype") == "m.notice",
        thread_id=EventId(related) if in_thread and related else None,
        reply_to=EventId(reply_to) if reply_to and not is_fallback else None,
        mentions=_mentions(content),
        question_id=_string(_mapping(content.get(QUESTION_KEY)).get("question_id")),
    )


def _mentions(content: dict[str, Any]) -> frozenset[str] | None:
    if "m.mentions" not in content:
        return None
    user_ids = _mapping(content["m.mentions"]).get("user_ids")
    return frozenset(each for each in user_ids if isinstance(each, str)) if isinstance(user_ids, list) else frozenset()


def _read_reaction(base: RoomEvent, content: dict[str, Any], name_of: Callable[[UserId], str]) -> RoomEvent:
    relation = _mapping(content.get("m.relates_to"))
    target, key = _string(relation.get("event_id")), _string(relation.get("key"))
    if relation.get("rel_type") != "m.annotation" or target is None or key is None:
        return base
    name = _string(name_of(base.sender)) or base.sender
    return Reaction(**_fields(base), sender_name=name, target=EventId(target), key=key)
