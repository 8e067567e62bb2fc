"""What an encrypted event is in the clear, and how large it is."""

import json
from collections.abc import Mapping
from typing import Any

_FROM_OUTSIDE = ("event_id", "sender", "origin_server_ts", "room_id", "unsigned")
_RELATION = "m.relates_to"
ALGORITHM = "m.megolm.v1.aes-sha2"
_LONGEST_ID = 255
_KEY_LENGTH = 43
# Beside the text, the ciphertext holds: version, message index and length with their tags, padding to 16 bytes, an
# authentication code, and a signature.
_FRAME = 1 + 6 + 6 + 16 + 8 + 64


def in_the_clear(source: Mapping[str, Any], inside: object) -> dict[str, Any]:
    """An encrypted event as if it had been sent in the clear.

    Args:
        source: the event's JSON as the server gives it.
        inside: the JSON that was encrypted; anything at all.

    Returns:
        An event's JSON. Who sent it, and when, is the server's word. A state event, or a redaction, needs the server's
        leave, so none can come out of a ciphertext: what claims to be one is an event that says nothing.
    """
    event = {name: source[name] for name in _FROM_OUTSIDE if name in source}
    said = inside if isinstance(inside, dict) else {}
    kind, content = said.get("type"), said.get("content")
    if not isinstance(kind, str) or not isinstance(content, dict) or kind in {"m.room.redaction", "m.room.encrypted"}:
        return {**event, "type": "m.room.encrypted", "content": {}}
    outside = source.get("content")
    relation = outside.get(_RELATION) if isinstance(outside, dict) else None
    if relation is not None and _RELATION not in content:
        content = {**content, _RELATION: relation}
    return {**event, "type": kind, "content": content}


def encrypted_size(content: Mapping[str, Any], event_type: str = "m.room.message") -> int:
    """The most bytes that a content can take, encrypted, of the 65,536 that an event has; without the event's own ids.

    Args:
        content: the content in the clear, of JSON values.
        event_type: the type in the clear.
    """
    key, any_id = "k" * _KEY_LENGTH, "i" * _LONGEST_ID
    text = compact_json({"content": content, "type": event_type, "room_id": any_id})
    around = {"algorithm": ALGORITHM, "sender_key": key, "ciphertext": "", "session_id": key, "device_id": any_id}
    if _RELATION in content:
        around[_RELATION] = content[_RELATION]
    return (len(text) + _FRAME) * 4 // 3 + 1 + len(compact_json(around))


def compact_json(value: object) -> bytes:
    """JSON as small as it can be; what no encoding holds, half of a surrogate pair, is replaced."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
