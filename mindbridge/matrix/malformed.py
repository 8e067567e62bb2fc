"""What a server's answer must not hold: one malformed event, and nio reads nothing of the whole answer."""

import logging
from typing import Any

from mindbridge.matrix.inbound import is_id

log = logging.getLogger(__name__)

_LISTS = {"join": ("timeline", "state"), "leave": ("timeline", "state"), "invite": ("invite_state",)}
_NOT_ASKED_FOR = ("account_data", "presence")
_NOT_ASKED_FOR_OF_ROOMS = ("account_data", "ephemeral")
_TEXTS_OF_MEMBERS = ("displayname", "avatar_url", "reason")


def drop_malformed(answer: object, user_id: str) -> None:
    """Takes what is no event out of an answer's lists of events, in place, with a line in the log for each.

    Where there is no list in place of one, or anything else is not as it should be, the answer stays as it is.

    Args:
        answer: the JSON of a sync response, or of a page of events.
        user_id: the account that was given the answer.
    """
    if not isinstance(answer, dict):
        return
    _sift(answer.get("chunk"), user_id, None)
    _sift(_events(answer.get("to_device")), user_id, None, is_whole=False)
    for name in _NOT_ASKED_FOR:
        answer.pop(name, None)
    rooms = answer.get("rooms")
    if not isinstance(rooms, dict):
        return
    for kind, lists in _LISTS.items():
        rooms_of_kind = rooms.get(kind)
        if not isinstance(rooms_of_kind, dict):
            continue
        for room_id in [each for each in rooms_of_kind if not (is_id(each) and each.startswith("!"))]:
            log.warning("room_passed_over user_id=%s room_id=%s", user_id, _shown(room_id))
            del rooms_of_kind[room_id]
        for room_id, room in rooms_of_kind.items():
            if isinstance(room, dict):
                _sift_room(room, lists, user_id, room_id)


def _sift_room(room: dict[str, Any], lists: tuple[str, ...], user_id: str, room_id: str) -> None:
    for name in _NOT_ASKED_FOR_OF_ROOMS:
        room.pop(name, None)
    for name in lists:
        # The spec lets a server leave out what is empty. nio does not.
        part = room.setdefault(name, {})
        if isinstance(part, dict):
            part.setdefault("events", [])
        _sift(_events(part), user_id, room_id, is_whole=name != "invite_state")


def _events(part: object) -> object:
    return part.get("events") if isinstance(part, dict) else None


def _sift(events: object, user_id: str, room_id: str | None, *, is_whole: bool = True) -> None:
    """Leaves only events in a list; `is_whole`: those that have an id and a time."""
    if not isinstance(events, list):
        return
    sound = []
    for event in events:
        if _is_sound(event, is_whole=is_whole):
            sound.append(event)
            continue
        claimed = event if isinstance(event, dict) else {}
        shown = _shown(room_id or claimed.get("room_id")), _shown(claimed.get("event_id"))
        log.warning("event_passed_over user_id=%s room_id=%s event_id=%s", user_id, *shown)
    if len(sound) < len(events):
        events[:] = sound


def _is_sound(event: object, *, is_whole: bool) -> bool:
    """Whether it is an event. What nio can't bear in one, and nobody needs, is taken out of it."""
    if not (
        isinstance(event, dict)
        and isinstance(event.get("type"), str)
        and is_id(event.get("sender"))
        and isinstance(event.get("content"), dict)
    ):
        return False
    # A whole number, and true is none.
    if is_whole and not (is_id(event.get("event_id")) and type(event.get("origin_server_ts")) is int):
        return False
    if "unsigned" in event:
        _mend_unsigned(event)
    if event["type"] == "m.room.member":
        _mend_member(event)
    return True


def _mend_unsigned(event: dict[str, Any]) -> None:
    unsigned = event["unsigned"]
    if not isinstance(unsigned, dict):
        del event["unsigned"]
        return
    for name, kind in (("prev_content", dict), ("transaction_id", str)):
        if name in unsigned and not isinstance(unsigned[name], kind):
            del unsigned[name]


def _mend_member(event: dict[str, Any]) -> None:
    """A member with a name that is no text is a member all the same; to nio it is none."""
    event.pop("prev_content", None)  # where it stood before there was `unsigned`
    content = event["content"]
    for name in _TEXTS_OF_MEMBERS:
        if not isinstance(content.get(name), str | None):
            del content[name]


def _shown(value: object) -> str:
    """An id that anyone could have written, for a line in the log."""
    return f"{value!r:.100}" if isinstance(value, str) else "none"
