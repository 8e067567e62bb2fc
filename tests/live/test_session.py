"""What each answer of a homeserver means to an account's session, in this process."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from mindbridge.config.schema import Account
from mindbridge.demo.homeserver import Homeserver
from mindbridge.ids import AgentName, DeliveryId, EventId, RoomId, UserId
from mindbridge.matrix.devices import DeviceFolder
from mindbridge.matrix.errors import AccountUnusable, Limited, MatrixError, Refused, TokenRejected, Unreachable
from mindbridge.matrix.session import NOT_IN_ROOM, Session
from tests.live.conftest import NewPerson, NewProxy
from tests.live.person import Person
from tests.live.proxy import (
    BRACKETS,
    HTML,
    NOT_JSON,
    NOT_UTF8,
    SEND,
    SYNC,
    Action,
    Proxy,
    answer,
    refuse_with,
)


@pytest.fixture
async def proxy(new_proxy: NewProxy) -> Proxy:
    return await new_proxy()


@asynccontextmanager
async def session_in_room(
    homeserver: Homeserver, person: Person, url: str, folder: Path
) -> AsyncIterator[tuple[Session, RoomId]]:
    """An account's session in this process, in a room with the person."""
    registered = await homeserver.register(f"assistant-{os.urandom(4).hex()}", "a password")
    account = Account(user_id=registered.user_id, password=SecretStr("a password"))
    session = Session(url, AgentName("assistant"), account, DeviceFolder(folder))
    try:
        await session.open()
        room = RoomId(await person.create_room(invite=[registered.user_id]))
        await session.join(room)
        await session.sync(None, wait=False)
        yield session, room
    finally:
        await session.close()


async def test_access_token_of_no_device_can_not_be_used(new_person: NewPerson, proxy: Proxy, tmp_path: Path) -> None:
    alice = await new_person("Alice")
    proxy.rule(answer(200, {"user_id": alice.user_id}), path="/whoami$")
    account = Account(user_id=UserId(alice.user_id), access_token=SecretStr(alice.access_token))
    session = Session(proxy.url, AgentName("assistant"), account, DeviceFolder(tmp_path))
    try:
        with pytest.raises(AccountUnusable, match=r"belongs to no device.*configure a new access token"):
            await session.open()
    finally:
        await session.close()


async def test_first_response_after_a_restart_tells_who_is_where_also_when_nothing_is_new(
    new_person: NewPerson, homeserver: Homeserver, tmp_path: Path
) -> None:
    alice = await new_person("Alice")
    async with session_in_room(homeserver, alice, homeserver.url, tmp_path) as (before, room):
        batch = await before.sync(None, wait=False)
        while (newer := await before.sync(batch.next_batch, wait=False)).next_batch != batch.next_batch:
            batch = newer
        account = Account(user_id=before.user_id, password=SecretStr("a password"))
        session = Session(homeserver.url, AgentName("assistant"), account, DeviceFolder(tmp_path))
        try:
            await session.open()
            assert (await session.sync(batch.next_batch, wait=False)).next_batch == batch.next_batch
            assert session.joined_room(room, ()).members == {alice.user_id, session.user_id}
        finally:
            await session.close()


SENDS: tuple[tuple[int, bytes | dict[str, Any], type[MatrixError], str | int | None], ...] = (
    (200, NOT_JSON, Unreachable, None),
    (200, NOT_UTF8, Unreachable, None),
    (200, BRACKETS, Unreachable, None),
    (200, b"[]", Unreachable, None),
    (200, {"event_id": 5}, Unreachable, None),
    (500, {"event_id": "$1"}, Unreachable, None),
    (502, HTML, Unreachable, None),
    (408, b"", Unreachable, None),
    (425, b"", Unreachable, None),
    (404, HTML, Unreachable, None),
    (413, HTML, Refused, "HTTP 413"),
    (413, {"errcode": "M_TOO_LARGE", "error": "no"}, Refused, "M_TOO_LARGE"),
    (403, {"errcode": 7, "error": ["no"]}, Unreachable, None),
    (401, {"errcode": "M_UNKNOWN_TOKEN", "error": "no"}, TokenRejected, None),
    (429, HTML, Limited, 5_000),
    (429, {"errcode": "M_LIMIT_EXCEEDED", "error": "no", "retry_after_ms": 70}, Limited, 70),
    (429, {"errcode": "M_LIMIT_EXCEEDED", "error": "no", "retry_after_ms": -70}, Limited, 1),
    (429, {"errcode": "M_LIMIT_EXCEEDED", "error": "no", "retry_after_ms": 10**15}, Limited, 600_000),
)


async def test_answers_to_a_send_are_told_apart(
    new_person: NewPerson, homeserver: Homeserver, proxy: Proxy, tmp_path: Path
) -> None:
    alice = await new_person("Alice")
    async with session_in_room(homeserver, alice, proxy.url, tmp_path) as (session, room):
        for status, body, kind, detail in SENDS:
            rule = proxy.rule(answer(status, body), path=SEND)
            with pytest.raises(kind) as raised:
                await session.send(room, "m.room.message", {"msgtype": "m.text", "body": "hi"}, DeliveryId("d1"))
            proxy.remove(rule)
            error = raised.value
            told = error.errcode if isinstance(error, Refused) else getattr(error, "retry_after_ms", None)
            assert (status, body, type(error), told) == (status, body, kind, detail)
        with pytest.raises(Refused) as refused:
            await session.send(RoomId("!elsewhere:localhost"), "m.room.message", {}, DeliveryId("d2"))
        assert refused.value.errcode in {"M_FORBIDDEN", NOT_IN_ROOM}  # nio's word comes first in encrypted rooms
        with pytest.raises(Refused, match="M_"):
            await session.redact(room, EventId("$nothing"), DeliveryId("d3"))


async def test_success_that_is_none_is_not_taken_for_one(
    new_person: NewPerson, homeserver: Homeserver, proxy: Proxy, tmp_path: Path
) -> None:
    alice = await new_person("Alice")
    async with session_in_room(homeserver, alice, proxy.url, tmp_path) as (session, room):
        proxy.rule(answer(502, HTML), path="/leave$", times=1)
        with pytest.raises(Unreachable, match="502"):
            await session.leave(room)
        assert session.user_id in await alice.members(room)
        await session.leave(room)
        assert session.user_id not in await alice.members(room)


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[]",
        BRACKETS,
        NOT_UTF8,
        {"next_batch": 5},
        {"next_batch": "s1", "rooms": []},
        {"next_batch": "s1", "rooms": {"join": {"!room": None}}},
        {"next_batch": "s1", "rooms": {"join": {"!room": {"timeline": {"events": "none"}}}}},
        {"next_batch": "s1", "rooms": {"invite": {"!room": {"invite_state": []}}}},
    ],
    ids=lambda body: str(body)[:60],
)
async def test_sync_response_that_cannot_be_read_is_none_and_the_next_one_is_whole(
    new_person: NewPerson, homeserver: Homeserver, proxy: Proxy, tmp_path: Path, body: bytes | dict[str, Any]
) -> None:
    alice = await new_person("Alice")
    async with session_in_room(homeserver, alice, proxy.url, tmp_path) as (session, room):
        since = (await session.sync(None, wait=False)).next_batch
        sent = await alice.send_text(room, "hello")
        rule = proxy.rule(answer(200, body), path=SYNC)
        with pytest.raises(Unreachable):
            await session.sync(since, wait=False)
        proxy.remove(rule)
        batch = await session.sync(since, wait=False)
        assert [(each.room_id, [event.event_id for event in each.events]) for each in batch.joined] == [(room, [sent])]
        assert batch.joined[0].members == {session.user_id, alice.user_id}


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        (answer(404, HTML), Unreachable),
        (answer(401, HTML), Unreachable),
        (answer(403, HTML), Unreachable),
        (answer(200, HTML), Unreachable),
        (refuse_with(404, "M_UNRECOGNIZED"), Unreachable),
        (refuse_with(400, "M_UNKNOWN"), Unreachable),
        (refuse_with(429, "M_LIMIT_EXCEEDED"), Limited),
        (refuse_with(403, "M_FORBIDDEN"), AccountUnusable),
        (refuse_with(403, "M_USER_DEACTIVATED"), AccountUnusable),
        (answer(200, {"user_id": "@else:localhost", "device_id": "D", "access_token": "t"}), AccountUnusable),
    ],
)
async def test_login_fails_for_good_only_where_the_homeserver_refuses_the_account(
    proxy: Proxy, tmp_path: Path, action: Action, kind: type[MatrixError]
) -> None:
    account = Account(user_id="@assistant:localhost", password=SecretStr("a password"))
    session = Session(proxy.url, AgentName("assistant"), account, DeviceFolder(tmp_path))
    proxy.rule(action, path="/login$")
    try:
        with pytest.raises(kind) as raised:
            await session.open()
        assert type(raised.value) is kind
    finally:
        await session.close()
    assert not (tmp_path / "devices").exists()
