"""The proxy that tests put between a bridge and the homeserver does what it is told, and nothing else."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import aiohttp
import pytest

from mindbridge.demo.homeserver import Homeserver
from tests.live.conftest import NewPerson, NewProxy
from tests.live.conversation import is_message
from tests.live.person import Person, RefusedError
from tests.live.proxy import (
    BRACKETS,
    HTML,
    NOT_JSON,
    NOT_UTF8,
    SEND,
    SYNC,
    Proxy,
    answer,
    delay,
    forget_transactions,
    halve,
    hang,
    limit,
    lose,
    refuse,
    refuse_with,
)
from tests.live.waiting import wait_until


@pytest.fixture
async def proxy(new_proxy: NewProxy) -> Proxy:
    return await new_proxy()


@pytest.fixture
async def alice(new_person: NewPerson, proxy: Proxy) -> AsyncIterator[Person]:
    """Alice, whose client reaches the homeserver through the proxy only."""
    account = await new_person("Alice")
    async with Person.with_token(proxy.url, account.user_id, account.access_token) as alice:
        yield alice


async def raw(proxy: Proxy, path: str = "/_matrix/client/versions") -> tuple[int, str, bytes]:
    async with aiohttp.ClientSession(proxy.url) as session, session.get(path) as response:
        return response.status, response.content_type, await response.read()


async def test_without_rules_everything_passes_and_is_counted(alice: Person, proxy: Proxy) -> None:
    room = await alice.create_room()
    before = time.monotonic()
    sent = await alice.send_text(room, "Grüße & 100 %?")
    assert (await alice.wait_for(room, is_message("Grüße")))["event_id"] == sent
    [seen] = proxy.seen("PUT", SEND, since=before)
    assert seen.path.startswith(f"/_matrix/client/v3/rooms/{room}/send/m.room.message/")
    assert (seen.status, seen.body["body"]) == (200, "Grüße & 100 %?")
    assert [each.status for each in proxy.seen("GET", SYNC)] == [200]
    assert proxy.seen("PUT", SEND, since=time.monotonic()) == []
    with pytest.raises(RefusedError) as refused:
        await alice.call("GET", "rooms", room, "event", "$nothing")
    assert (refused.value.status, refused.value.errcode) == (404, "M_NOT_FOUND")


@pytest.mark.parametrize("body", [NOT_JSON, NOT_UTF8, BRACKETS, HTML, b""])
async def test_it_answers_what_it_is_told_so_often_as_it_is_told(proxy: Proxy, body: bytes) -> None:
    kind = "text/html" if body == HTML else "application/json"
    proxy.rule(answer(502, body), "GET", "/versions$", times=2)
    for _ in range(2):
        assert await raw(proxy) == (502, kind, body)
    assert (await raw(proxy))[0] == 200
    assert [each.status for each in proxy.seen()] == [502, 502, 200]


async def test_errors_are_matrix_errors_and_a_rule_can_be_for_some_bodies_only_and_be_removed(
    alice: Person, proxy: Proxy
) -> None:
    room = await alice.create_room()
    limited = proxy.rule(limit(700), path=SEND, body=lambda content: content["body"] == "much")
    await alice.send_text(room, "little")
    with pytest.raises(RefusedError, match="'retry_after_ms': 700") as refused:
        await alice.send_text(room, "much")
    assert (refused.value.status, refused.value.errcode) == (429, "M_LIMIT_EXCEEDED")
    proxy.remove(limited)
    await alice.send_text(room, "much")

    proxy.rule(refuse_with(401, "M_UNKNOWN_TOKEN", soft_logout=True), path="whoami")
    with pytest.raises(RefusedError, match="'soft_logout': True") as refused:
        await alice.call("GET", "account", "whoami")
    assert (refused.value.status, refused.value.errcode) == (401, "M_UNKNOWN_TOKEN")


async def test_lost_answer_means_that_the_event_is_there_and_a_refused_connection_that_it_is_not(
    alice: Person, proxy: Proxy
) -> None:
    room = await alice.create_room()
    for action, times in ((lose, 2), (halve, 1), (refuse, 2)):
        proxy.rule(action, "PUT", SEND, times=times)
        with pytest.raises(aiohttp.ClientError):
            await alice.send_text(room, action.__name__)
    await alice.send_text(room, "the last")
    await alice.wait_for(room, is_message("the last"))
    said = [event["content"]["body"] for event in alice.timeline(room) if is_message("")(event)]
    assert said == ["lose", "halve", "the last"]
    assert [each.status for each in proxy.seen("PUT", SEND)] == [*[None] * 5, 200]


async def test_hanging_request_goes_on_when_it_is_released(proxy: Proxy) -> None:
    released = asyncio.Event()
    proxy.rule(hang(released), times=1)
    proxy.rule(delay(0.01))
    hanging = asyncio.create_task(raw(proxy))
    await wait_until(lambda: len(proxy.requests) == 1)
    assert (await raw(proxy))[0] == 200
    assert not hanging.done()
    released.set()
    assert (await hanging)[0] == 200


async def test_forgotten_transaction_gives_a_second_event(alice: Person, proxy: Proxy) -> None:
    room = await alice.create_room()

    async def send() -> str:
        path = ("rooms", room, "send", "m.room.message", "same")
        answer = await alice.call("PUT", *path, params={"ts": "1"}, json={"msgtype": "m.text", "body": "twice"})
        return str(answer["event_id"])

    assert await send() == await send()
    forgetting = proxy.rule(forget_transactions(), "PUT", SEND)
    assert len({await send() for _ in range(3)}) == 3
    proxy.remove(forgetting)
    assert [each.path.endswith("/same") for each in proxy.seen("PUT", SEND)] == [True] * 5


async def test_it_can_be_down_and_up_again_at_the_same_port_and_with_another_homeserver(
    proxy: Proxy, homeserver: Homeserver
) -> None:
    url = proxy.url
    proxy.rule(hang(asyncio.Event()), times=1)
    hanging = asyncio.create_task(raw(proxy))
    await wait_until(lambda: len(proxy.requests) == 1)
    await proxy.stop_listening()
    with pytest.raises(aiohttp.ClientError):
        await hanging
    with pytest.raises(aiohttp.ClientConnectorError):
        await raw(proxy)

    await proxy.listen()
    assert proxy.url == url
    async with AsyncExitStack() as stack:
        front = await stack.enter_async_context(Proxy("http://127.0.0.1:9"))
        with pytest.raises(aiohttp.ClientError):
            await raw(front)
        front.upstream = proxy.url
        assert (await raw(front))[0] == 200
    assert len(proxy.requests) == 2
    assert proxy.upstream == homeserver.url
