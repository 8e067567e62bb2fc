"""A proxy in front of the homeserver that does to requests what networks and servers do.

`proxy.rule(lose, "PUT", "/send/m.reaction/", times=2)` loses the answer to the next button: twice, since aiohttp's
client, and so nio's, repeats a GET or PUT by itself, once, when the connection was closed without an answer. All rules
that match a request apply to it, those added first outermost; `times` counts what a rule really did.
"""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Self

import aiohttp
from aiohttp import web
from yarl import URL

NOT_JSON = b'{"event_id": '
NOT_UTF8 = b'{"event_id": "\xff\xfe"}'
BRACKETS = b"[" * 5_000
HTML = b"<html><body><h1>Not here</h1></body></html>"

SYNC = "/sync$"
SEND = "/(send|redact)/"

_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host", "accept-encoding"})


class DroppedError(Exception):
    """The connection is closed without an answer."""


@dataclass(eq=False)
class Request:
    """A request on its way, and in the proxy's books: `status` None until, or unless, it is answered."""

    method: str
    path: str  # decoded, without the query
    body: Any  # the JSON; None where there is none
    target: str  # path and query as they go to the homeserver
    at: float  # seconds on the clock `time.monotonic`
    raw: web.BaseRequest = field(repr=False)
    status: int | None = None


Next = Callable[[], Awaitable[web.StreamResponse]]
Action = Callable[[Request, Next], Awaitable[web.StreamResponse]]


# What can be done to a request


def answer(status: int, body: bytes | str | dict[str, Any] = b"", **headers: str) -> Action:
    """Answers in the homeserver's place; a mapping goes out as JSON."""
    content = json.dumps(body).encode() if isinstance(body, dict) else body.encode() if isinstance(body, str) else body
    kind = "text/html" if content.startswith(b"<") else "application/json"

    async def act(_request: Request, _forward: Next) -> web.StreamResponse:
        return web.Response(status=status, body=content, headers={"Content-Type": kind, **headers})

    return act


def refuse_with(status: int, errcode: str, **more: Any) -> Action:
    """Answers with a Matrix error."""
    return answer(status, {"errcode": errcode, "error": "told to refuse", **more})


def limit(retry_after_ms: int) -> Action:
    """Answers that the account sends too much."""
    return refuse_with(429, "M_LIMIT_EXCEEDED", retry_after_ms=retry_after_ms)


def delay(seconds: float) -> Action:
    """Forwards a while later."""

    async def act(_request: Request, forward: Next) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return await forward()

    return act


def hang(released: asyncio.Event) -> Action:
    """Forwards when released, and does nothing until then."""

    async def act(_request: Request, forward: Next) -> web.StreamResponse:
        await released.wait()
        return await forward()

    return act


async def lose(_request: Request, forward: Next) -> web.StreamResponse:
    """Forwards, and closes the connection in place of the answer."""
    await forward()
    raise DroppedError


async def refuse(_request: Request, _forward: Next) -> web.StreamResponse:
    """Closes the connection at once."""
    raise DroppedError


async def halve(request: Request, forward: Next) -> web.StreamResponse:
    """Forwards, sends half of the answer, and closes the connection."""
    whole = await forward()
    assert isinstance(whole, web.Response)
    assert isinstance(whole.body, bytes)
    half = web.StreamResponse(status=whole.status, headers={"Content-Type": "application/json"})
    half.content_length = len(whole.body)
    await half.prepare(request.raw)
    await half.write(whole.body[: len(whole.body) // 2])
    raise DroppedError


def forget_transactions() -> Action:
    """Gives each transaction id of a send a new suffix, so that the homeserver takes a repeated one for a new one."""
    numbers = count(1)

    async def act(request: Request, forward: Next) -> web.StreamResponse:
        path, query = request.target.split("?", 1) if "?" in request.target else (request.target, "")
        request.target = f"{path}-{next(numbers)}{'?' if query else ''}{query}"
        return await forward()

    return act


# The proxy


@dataclass(eq=False)
class Rule:
    """What is done to which requests, and how often it still is."""

    action: Action
    method: str | None
    path: re.Pattern[str]
    body: Callable[[Any], bool]
    times: int | None
    done: int = 0

    @property
    def is_over(self) -> bool:
        return self.done == self.times

    def matches(self, request: Request) -> bool:
        return (
            not self.is_over
            and self.method in {None, request.method}
            and self.path.search(request.path) is not None
            and self.body(request.body)
        )


class Proxy:
    """Listens on loopback and forwards to `upstream`, which can change at any time. Use it as a context."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.requests: list[Request] = []
        self._rules: list[Rule] = []
        self._port = 0
        self._runner: web.ServerRunner | None = None
        self._client: aiohttp.ClientSession | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        self._client = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False)
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop_listening()
        assert self._client is not None
        await self._client.close()

    async def listen(self) -> None:
        """Starts to listen, at the same port each time."""
        if self._runner is not None:
            return
        server = web.Server(self._take, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.01)  # 0 means for ever
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = int(self._runner.addresses[0][1])

    async def stop_listening(self) -> None:
        """Closes all connections and the port, as a server that is down."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    def rule(
        self,
        action: Action,
        method: str | None = None,
        path: str = "",
        *,
        body: Callable[[Any], bool] = lambda _: True,
        times: int | None = None,
    ) -> Rule:
        """Adds a rule.

        Args:
            action: what is done.
            method: to requests of this method only.
            path: to requests only in whose decoded path this pattern is found.
            body: to requests only whose JSON is wanted.
            times: how often; for ever if not given.
        """
        added = Rule(action, method, re.compile(path), body, times)
        self._rules.append(added)
        return added

    def remove(self, *rules: Rule) -> None:
        """Ends rules."""
        self._rules = [each for each in self._rules if each not in rules]

    def seen(self, method: str | None = None, path: str = "", *, since: float = 0) -> list[Request]:
        """The requests so far, in the order in which they came; `since` is a time of `time.monotonic`."""
        return [
            each
            for each in self.requests
            if each.at >= since and method in {None, each.method} and re.search(path, each.path)
        ]

    async def _take(self, raw: web.BaseRequest) -> web.StreamResponse:
        content = await raw.read()
        body = None
        with suppress(ValueError):
            body = json.loads(content)
        request = Request(raw.method, raw.path, body, raw.raw_path, time.monotonic(), raw)
        self.requests.append(request)
        try:
            response = await self._apply(request, [each for each in self._rules if each.matches(request)], content)
        except (DroppedError, aiohttp.ClientError):
            if raw.transport is not None:
                raw.transport.close()
            return web.Response()  # reaches nobody
        request.status = response.status
        return response

    async def _apply(self, request: Request, rules: Sequence[Rule], content: bytes) -> web.StreamResponse:
        if not rules:
            return await self._forward(request, content)
        rule, *inner = rules
        if rule.is_over:  # while an outer one waited
            return await self._apply(request, inner, content)
        rule.done += 1
        return await rule.action(request, lambda: self._apply(request, inner, content))

    async def _forward(self, request: Request, content: bytes) -> web.Response:
        assert self._client is not None
        headers = {name: value for name, value in request.raw.headers.items() if name.lower() not in _HOP_BY_HOP}
        headers["Accept-Encoding"] = "identity"
        url = URL(self.upstream + request.target, encoded=True)
        async with self._client.request(request.method, url, data=content or None, headers=headers) as response:
            kept = {name: value for name, value in response.headers.items() if name.lower() not in _HOP_BY_HOP}
            return web.Response(status=response.status, body=await response.read(), headers=kept)
