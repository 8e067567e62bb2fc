"""nio's client, held to three things: it sends nothing twice, and reads neither errors nor what is malformed."""

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from aiohttp import ClientResponse, ClientSession
from nio.client.async_client import AsyncClient

from mindbridge.matrix.malformed import drop_malformed

_LONGEST_WORDS = 200
_WITH_EVENTS = re.compile("/sync$|/messages$|/relations/")


class ErrorAnswer(Exception):
    """An answer with a status of 400 or more.

    `errcode` is None where the body is no Matrix error. `asked_ms`: so long is nothing to be sent, in milliseconds of
    any size; None where the server does not say.
    """

    def __init__(self, status: int, errcode: str | None, words: str, asked_ms: float | None) -> None:
        super().__init__(f"{status} {errcode or ''} {words}")
        self.status = status
        self.errcode = errcode
        self.words = words
        self.asked_ms = asked_ms


class Client(AsyncClient):
    """All requests raise `ErrorAnswer` where the server gives an error; nio would lose half of what it says."""

    _session: ClientSession | None = None

    @property
    def client_session(self) -> ClientSession | None:
        """The connections to the homeserver; nio makes and ends them as it likes."""
        return self._session

    @client_session.setter
    def client_session(self, session: ClientSession | None) -> None:
        # aiohttp sends a PUT again by itself where the connection broke. Only what looks into the room first may.
        if session is not None:
            session._retry_connection = False  # noqa: SLF001 - aiohttp has no setting for it
        self._session = session

    async def parse_body(self, transport_response: ClientResponse) -> dict[Any, Any]:
        """The JSON of an answer, which nio turns into a value of its own."""
        if transport_response.status >= HTTPStatus.BAD_REQUEST:
            raise read_error(transport_response.status, transport_response.headers, await transport_response.read())
        body: dict[Any, Any] = await super().parse_body(transport_response)
        if _WITH_EVENTS.search(transport_response.url.raw_path):
            drop_malformed(body, self.user_id)
        return body


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> ErrorAnswer:
    """Reads what a server, or a proxy before it, says with an error."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    said: dict[str, Any] = content if isinstance(content, dict) else {}
    errcode, words = (_words(said.get(name)) for name in ("errcode", "error"))
    asked = _number(said.get("retry_after_ms")) or _header_ms(headers)
    return ErrorAnswer(status, errcode, words or "unknown error", asked)


def _words(value: object) -> str | None:
    """A text as it fits into a line of the log; None for anything else."""
    if not isinstance(value, str) or not value:
        return None
    return "".join(each if each.isprintable() else "?" for each in value[:_LONGEST_WORDS])


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    except OverflowError:  # an int that no float holds
        return math.inf
    return None if math.isnan(number) else number


def _header_ms(headers: Mapping[str, str]) -> float | None:
    """`Retry-After` in milliseconds: seconds, or a time, which counts from the server's own `Date`."""
    retry_after = headers.get("Retry-After")
    seconds = _number(retry_after)
    if seconds is not None:
        return seconds * 1000
    until = _time(retry_after)
    return None if until is None else (until - (_time(headers.get("Date")) or datetime.now(UTC))).total_seconds() * 1000


def _time(value: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value or "")
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
