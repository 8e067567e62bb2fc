"""What single values must look like.

Each function gives the value as it is used, or raises ValueError with a phrase that says what would be right. None of
them repeats the value, which may be a secret.
"""

import keyword
import re
from datetime import timedelta
from urllib.parse import urlsplit

_SERVER = r"([0-9A-Za-z.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?"
_USER = re.compile(rf"@[^:*\s]+:{_SERVER}")
_USER_PATTERN = re.compile(r"\*|@[^:\s]+:([0-9A-Za-z.*-]+|\[[0-9A-Fa-f:.*]+\])(:[0-9*]{1,5})?")
_ROOM = re.compile(rf"#[^:\s]+:{_SERVER}|![^:\s]+(:{_SERVER})?")
_LONGEST_ID = 255

_URL = "must be an http or https address, such as https://matrix.example.org"
_URL_PATH = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/?")

_DURATION = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)")
_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_LONGEST = timedelta(days=365)

_AGENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_LONGEST_DISPLAY_NAME = 256


def homeserver(url: str) -> str:
    """An http(s) address without a slash at its end; a path before `/_matrix`, as proxies have it, stays.

    Raises:
        ValueError: It is none, or has a user, a query or a fragment.
    """
    if not (url.isascii() and url.isprintable()) or " " in url or "\\" in url:
        raise ValueError(_URL)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(_URL) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0 or parts.netloc.endswith(":"):
        raise ValueError(_URL)
    if "@" in parts.netloc:
        raise ValueError(f"{_URL}, without user and password; those belong to agents.NAME.account")
    if "?" in url or "#" in url or "/_matrix" in parts.path or not _URL_PATH.fullmatch(parts.path):
        raise ValueError(f"{_URL}, without /_matrix, query or fragment")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def user_id(text: str) -> str:
    """A full Matrix user id.

    Raises:
        ValueError: It is none, or a pattern.
    """
    if not _USER.fullmatch(text) or not _is_id(text):
        raise ValueError('must be a full user id in quotes, such as "@alice:example.org"')
    return text


def user_pattern(text: str) -> str:
    """A Matrix user id in which `*` may stand for any characters, or `*` alone.

    Raises:
        ValueError: It is neither.
    """
    if not _USER_PATTERN.fullmatch(text) or not _is_id(text):
        raise ValueError(
            'must be a user id or a pattern, such as "@alice:example.org", "@*:example.org" or "*" (anyone)'
        )
    return text


def bot_pattern(text: str) -> str:
    """A pattern as `user_pattern` takes it, that leaves people who are no bots.

    Raises:
        ValueError: It is none, or names everyone.
    """
    if not user_pattern(text).strip("@*:"):
        raise ValueError('must leave somebody who is no bot, such as "@*bot:example.org"')
    return text


def room(text: str) -> str:
    """A room's alias or id; ids of new rooms have no server.

    Raises:
        ValueError: It is neither.
    """
    if not _ROOM.fullmatch(text) or not _is_id(text):
        raise ValueError('must be a room\'s alias or id in quotes, such as "#lobby:example.org" or "!abc123"')
    return text


def _is_id(text: str) -> bool:
    return text.isprintable() and len(text.encode()) <= _LONGEST_ID


def matches(pattern: str, user: str) -> bool:
    """Whether the pattern names the user: `*` is any characters or none, all else is itself, in the same case."""
    start, *rest = pattern.split("*")
    if not rest:
        return pattern == user
    *middle, end = rest
    if not user.startswith(start) or not user.endswith(end) or len(user) < len(start) + len(end):
        return False
    position, limit = len(start), len(user) - len(end)
    for piece in middle:
        found = user.find(piece, position, limit)
        if found < 0:
            return False
        position = found + len(piece)
    return True


def duration(value: object) -> object:
    """A time such as `500ms`, `120s`, `5m`, `24h` or `90d`; what is neither text nor number is given back.

    Raises:
        ValueError: It is a number without unit, or another text, or not between 1 ms and 365 days.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError("must have a unit, such as 120s")  # noqa: TRY004 - pydantic knows ValueError
    if not isinstance(value, str):
        return value
    match = _DURATION.fullmatch(value)
    if match is None:
        raise ValueError("must be a whole number with ms, s, m, h or d, such as 120s")
    time = int(match[1]) * _UNITS[match[2]]
    if not timedelta() < time <= _LONGEST:
        raise ValueError("must be more than 0 and at most 365d")
    return time


def command(parts: tuple[str, ...]) -> tuple[str, ...]:
    """A program and its arguments.

    Raises:
        ValueError: The program is empty.
    """
    if not parts[0].strip():
        raise ValueError('must begin with a program, such as ["python3", "agent.py"]')
    return parts


def python_reference(text: str) -> str:
    """`package.module:function`.

    Raises:
        ValueError: It is something else.
    """
    module, colon, function = text.partition(":")
    names = [*module.split("."), *function.split(".")]
    if not colon or not all(name.isidentifier() and not keyword.iskeyword(name) for name in names):
        raise ValueError("must be package.module:function, such as agent:reply for the function reply in agent.py")
    return text


def agent_name(text: str) -> str:
    """An agent's name, which logs and files carry.

    Raises:
        ValueError: It has other characters than ASCII letters, digits, `-` and `_`, or more than 64.
    """
    if not _AGENT_NAME.fullmatch(text):
        raise ValueError("must have only letters (a-z), digits, - and _, at most 64, such as assistant")
    return text


def display_name(text: str) -> str:
    """A name that a homeserver takes.

    Raises:
        ValueError: It is blank, has control characters, or more than 256 characters.
    """
    if not text.strip() or any(ord(char) < ord(" ") for char in text) or len(text) > _LONGEST_DISPLAY_NAME:
        raise ValueError(f"must be one line of 1 to {_LONGEST_DISPLAY_NAME} characters")
    return text
