"""What answers at a homeserver's address, asked without an account."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import urlsplit

import aiohttp
from pydantic import BaseModel, Field, ValidationError

from mindbridge.matrix.errors import MatrixError, Unreachable

VERSIONS = "/_matrix/client/versions"
_DOMAIN_NAMES = "/.well-known/matrix/client"
_MOST_BYTES = 262_144


class NotMatrix(MatrixError):
    """Something answers, but it is no homeserver."""


@dataclass(frozen=True, slots=True)
class Answering:
    """A homeserver that answered.

    Args:
        versions: those of the specification that it names, in its order.
        seconds: how long it took.
        ahead_seconds: how far its clock is ahead of ours; None where it does not tell its time.
    """

    versions: tuple[str, ...]
    seconds: float
    ahead_seconds: float | None


class _Versions(BaseModel):
    versions: tuple[str, ...] = Field(min_length=1)


class _Named(BaseModel):
    base_url: str = Field(pattern=r"^https?://[!-~]{1,200}$")


class _Domain(BaseModel):
    homeserver: _Named = Field(alias="m.homeserver")


async def probe(url: str, seconds: float, now: Callable[[], float]) -> Answering:
    """Asks for the versions of Matrix that a server speaks (client-server API, `GET /_matrix/client/versions`).

    Args:
        url: the homeserver's address, without a slash at its end.
        seconds: how long to wait at most.
        now: the time, in seconds since 1970.

    Raises:
        Unreachable: there is no answer, or the server is not able to give one.
        NotMatrix: what answers is no homeserver.
    """
    started_at = now()
    status, date, body = await _get(f"{url}{VERSIONS}", seconds)
    took = now() - started_at
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        raise Unreachable(f"{url} answers with HTTP status {status}")
    try:
        versions = _Versions.model_validate_json(body).versions
    except ValidationError as error:
        raise NotMatrix(f"{url} is no Matrix homeserver: {VERSIONS} gives HTTP status {status}") from error
    server_time = _time(date)
    # Its time has whole seconds, and is that of somewhere between question and answer.
    ahead = None if server_time is None else server_time - (started_at + took / 2)
    return Answering(versions, took, ahead)


async def named_by_domain(url: str, seconds: float) -> str | None:
    """The homeserver that the domain of an address names for its users (client-server API, `/.well-known`)."""
    parts = urlsplit(url)
    try:
        _, _, body = await _get(f"{parts.scheme}://{parts.netloc}{_DOMAIN_NAMES}", seconds)
        return _Domain.model_validate_json(body).homeserver.base_url.rstrip("/")
    except (Unreachable, ValidationError):
        return None


async def _get(url: str, seconds: float) -> tuple[int, str | None, bytes]:
    try:
        async with (
            asyncio.timeout(seconds),
            aiohttp.ClientSession() as client,
            client.get(url) as response,
        ):
            return response.status, response.headers.get("Date"), await response.content.read(_MOST_BYTES)
    except TimeoutError as error:
        raise Unreachable(f"{url} gives no answer within {seconds:g} s") from error
    except (aiohttp.ClientError, OSError) as error:
        raise Unreachable(f"{url} can't be reached: {str(error) or type(error).__name__}") from error


def _time(date: str | None) -> float | None:
    try:
        return parsedate_to_datetime(date or "").timestamp()
    except (ValueError, OverflowError):
        return None
