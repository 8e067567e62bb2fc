"""A homeserver that puts odd things into its answers: each fails by itself alone, and says what it should."""

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from time import time
from typing import Any

import pytest
from aiohttp import web

from mindbridge.config.schema import Account
from mindbridge.demo.homeserver import Homeserver
from mindbridge.events import Invite, Message
from mindbridge.ids import AgentName, DeliveryId, EventId, RoomId, UserId
from mindbridge.matrix.devices import DeviceFolder
from mindbridge.matrix.errors import Limited, Refused, Unreachable
from mindbridge.matrix.session import Session
from tests.live.conftest import NewBridge, NewPerson, NewProxy
from tests.live.conversation import ask, hear_from, is_message, room_with
from tests.live.proxy import HTML, NOT_UTF8, SEND, SYNC, Action, Next, Proxy, Request, answer, refuse, refuse_with
from tests.live.test_session import session_in_room

TEXT = {"msgtype": "m.text", "body": "hi"}
DELIVERY = DeliveryId("d1")
ODD_EVENT: dict[str, Any] = {
    "type": "m.room.message",
    "event_id": "$odd",
    "sender": "@odd:localhost",
    "origin_server_ts": 1_700_000_000_000,
    "content": TEXT,
}
ODD_EVENTS: list[Any] = [
    None,
    5,
    "x",
    [],
    {},
    ODD_EVENT | {"origin_server_ts": "1700000000000"},
    ODD_EVENT | {"origin_server_ts": None},
    ODD_EVENT | {"content": None},
    ODD_EVENT | {"event_id": "$" + "x" * 255},
    ODD_EVENT | {"sender": "@" + "x" * 255 + ":localhost"},
    {key: value for key, value in ODD_EVENT.items() if key != "content"},
]


@pytest.fixture
async def proxy(new_proxy: NewProxy) -> Proxy:
    return await new_proxy()


def change(mend: Callable[[dict[str, Any]], None]) -> Action:
    """Forwards, and changes the JSON of the answer."""

    async def act(_request: Request, forward: Next) -> web.StreamResponse:
        whole = await forward()
        assert isinstance(whole, web.Response)
        assert isinstance(whole.body, bytes)
        body = json.loads(whole.body)
        mend(body)
        return web.json_response(body, status=whole.status)

    return act


def surround(events: list[Any]) -> None:
    """Puts odd events before, after and between the events of a list."""
    events[:] = [*ODD_EVENTS, *(each for event in events for each in (event, *ODD_EVENTS))]


def spoil_sync(body: dict[str, Any]) -> None:
    rooms = body.setdefault("rooms", {})
    for room in rooms.get("join", {}).values():
        for part in ("timeline", "state"):
            surround(room.setdefault(part, {}).setdefault("events", []))
        room["account_data"] = room["ephemeral"] = {"events": [5, None]}
    for room in rooms.get("invite", {}).values():
        surround(room["invite_state"]["events"])
    rooms.setdefault("join", {})["room"] = {"timeline": {"events": [5]}}
    rooms.setdefault("leave", {})["!left:localhost"] = {"timeline": {"events": list(ODD_EVENTS)}}
    body["to_device"] = body["account_data"] = body["presence"] = {"events": [None, 5, {}]}


# How long an account is to wait


def after(value: object, **headers: str) -> Action:
    body = {"errcode": "M_LIMIT_EXCEEDED", "error": "no", "retry_after_ms": value}
    return answer(429, json.dumps(body), **headers)


WAITS: tuple[tuple[Action, int, int], ...] = (
    (after(1_500), 1_500, 1_500),
    (after(1_500.2), 1_501, 1_501),
    (after("1500"), 1_500, 1_500),
    (after(0.2), 1, 1),
    (after(-5), 1, 1),
    (after(10**12), 600_000, 600_000),
    (after("1e999"), 600_000, 600_000),
    (after(1_500, **{"Retry-After": "7"}), 1_500, 1_500),
    (after("soon", **{"Retry-After": "7"}), 7_000, 7_000),
    (after(None), 5_000, 5_000),
    (after(0), 5_000, 5_000),
    (refuse_with(429, "M_UNKNOWN"), 5_000, 5_000),
    (answer(429, {"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 300}), 300, 300),
    (answer(429, b"", **{"Retry-After": "7"}), 7_000, 7_000),
    (answer(429, HTML, **{"Retry-After": "7"}), 7_000, 7_000),
    (answer(429, NOT_UTF8, **{"Retry-After": "7"}), 7_000, 7_000),
    (answer(429, b"[]", **{"Retry-After": "100000"}), 600_000, 600_000),
    (answer(429, HTML, **{"Retry-After": "soon"}), 5_000, 5_000),
)


async def test_limited_account_is_told_how_long_in_every_way_that_a_server_says_it(
    new_person: NewPerson, homeserver: Homeserver, proxy: Proxy, tmp_path: Path
) -> None:
    in_two_minutes = answer(429, HTML, **{"Retry-After": formatdate(time() + 120, usegmt=True)})
    alice = await new_person("Alice")
    async with session_in_room(homeserver, alice, proxy.url, tmp_path) as (session, room):
        for action, least, most in (*WAITS, (in_two_minutes, 1, 120_000)):
            rule = proxy.rule(action, path=SEND)
            with pytest.raises(Limited) as raised:
                await session.send(room, "m.room.message", TEXT, DELIVERY)
            proxy.remove(rule)
            assert least <= raised.value.retry_after_ms <= most
            assert isinstance(raised.value.retry_after_ms, int)


async def test_every_request_tells_how_long_to_wait(
    new_person: NewPerson, homeserver: Homeserver, proxy: Proxy, tmp_path: Path
) -> None:
    alice = await new_person("Alice")
    async with session_in_room(homeserver, alice, proxy.url, tmp_path) as (session, room):
        event, content = EventId("$event"), {"m.new_content": TEXT}
        requests: dict[str, Callable[[], Awaitable[object]]] = {
            "sync": lambda: session.sync(None, wait=False),
            "send": lambda: session.send(room, "m.room.message", TEXT, DELIVERY),
            "redact": lambda: session.redact(room, event, DELIVERY),
            "join": lambda: session.join(room),
            "leave": lambda: session.leave(room),
            "typing": lambda: session.show_typing(room, typing=True),
            "displayname": lambda: session.set_display_name("Assistant"),
            "page": lambda: session.past.page(room, None, None),
            "sent": lambda: session.past.sent(room, TEXT, DELIVERY, None),
            "reactions": lambda: session.past.reactions(room, event),
            "button": lambda: session.past.button(room, event, "🚀"),
            "edit": lambda: session.past.edit(room, event, content),
            "content": lambda: session.past.content(room, event),
            "redaction": lambda: session.past.redaction(room, event),
            "whoami": session.open,
        }
        rule = proxy.rule(after(1_500.5))
        asked = {}
        for name, request in requests.items():
            with pytest.raises(Limited) as raised:
                await request()
            asked[name] = raised.value.retry_after_ms
        assert asked == dict.fromkeys(requests, 1_501)
        assert rule.done == len(requests)


async def test_login_tells_how_long_to_wait(proxy: Proxy, tmp_path: Path) -> None:
    account = Account.model_validate({"user_id": "@assistant:localhost", "password": "a password"})
    session = Session(proxy.url, AgentName("assistant"), account, DeviceFolder(tmp_path))
    proxy.rule(after("1500.5"), path="/login$")
    try:
        with pytest.raises(Limited) as raised:
            await session.open()
        assert raised.value.retry_after_ms == 1_501
    finally:
        await session.close()


# What is no refusal


@pytest.mark.parametrize(
    ("action", "errcode"),
    [
        (refuse_with(404, "M_UNRECOGNIZED"), None),
        (refuse_with(405, "M_UNRECOGNIZED"), None),
        (refuse_with(405, "M_UNKNOWN"), None),
        (answer(405, HTML), None),
        (refuse_with(404, "M_NOT_FOUND"), "M_NOT_FOUND"),
        (refuse_with(403, "M_FORBIDDEN"), "M_FORBIDDEN"),
        (answer(403, {"errcode": "M_FORBIDDEN"}), "M_FORBIDDEN"),
    ],
)
async def test_server_that_knows_no_such_request_is_another_one_and_refuses_nothing(
    new_person: NewPerson, homeserver: Homeserver, proxy: Proxy, tmp_path: Path, action: Action, errcode: str | None
) -> None:
    alice = await new_person("Alice")
    async with session_in_room(homeserver, alice, proxy.url, tmp_path) as (session, room):
        proxy.rule(action, path=SEND)
        with pytest.raises(Unreachable if errcode is None else Refused) as raised:
            await session.send(room, "m.room.message", TEXT, DELIVERY)
        assert getattr(raised.value, "errcode", None) == errcode


async def test_what_a_server_says_is_cut_to_a_line(
    new_person: NewPerson, homeserver: Homeserver, proxy: Proxy, tmp_path: Path
) -> None:
    alice = await new_person("Alice")
    async with session_in_room(homeserver, alice, proxy.url, tmp_path) as (session, room):
        long = "x" * 100_000
        for status, body in (
            (403, {"errcode": "M_" + long, "error": long}),
            (200, {"errcode": "M_" + long, "error": long}),
            (200, {"event_id": [long]}),
        ):
            rule = proxy.rule(answer(status, body), path=SEND)
            with pytest.raises((Refused, Unreachable)) as raised:
                await session.send(room, "m.room.message", TEXT, DELIVERY)
            proxy.remove(rule)
            assert len(str(raised.value)) < 1_000


# Events that are none


async def test_odd_events_in_a_sync_response_leave_the_rest_as_it_would_be_without_them(
    new_person: NewPerson, homeserver: Homeserver, proxy: Proxy, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    alice = await new_person("Alice")
    async with session_in_room(homeserver, alice, proxy.url, tmp_path) as (session, room):
        since = (await session.sync(None, wait=False)).next_batch
        sent = await alice.send_text(room, "hello")
        other = await alice.create_room(invite=[session.user_id])
        proxy.rule(change(spoil_sync), path=SYNC)
        caplog.clear()
        batch = await session.sync(since, wait=False)
        [joined] = batch.joined
        assert joined.room_id == room
        assert joined.members == {session.user_id, alice.user_id}
        [event] = joined.events
        assert isinstance(event, Message)
        assert (event.event_id, event.sender, event.sender_name, event.text) == (sent, alice.user_id, "Alice", "hello")
        [invite] = batch.invites
        assert replace(invite, server_ts=0) == Invite(RoomId(other), UserId(alice.user_id), 0)
        assert batch.left == ("!left:localhost",)
        lines = [each.getMessage() for each in caplog.records if each.name.startswith("mindbridge")]
        assert sum("event_passed_over" in line for line in lines) > len(ODD_EVENTS)
        shown = lines + [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]
        assert max(map(len, shown)) < 1_000


async def test_member_with_a_display_name_that_is_no_text_is_counted(
    new_person: NewPerson, homeserver: Homeserver, proxy: Proxy, tmp_path: Path
) -> None:
    alice, bob = await new_person("Alice"), await new_person("Bob")
    async with session_in_room(homeserver, alice, proxy.url, tmp_path) as (session, room):
        since = (await session.sync(None, wait=False)).next_batch
        await alice.invite(room, bob.user_id)
        await bob.join(room)
        await bob.send_text(room, "hello")

        def rename(body: dict[str, Any]) -> None:
            for part in ("timeline", "state"):
                for event in body["rooms"]["join"][room].get(part, {}).get("events", []):
                    if event["type"] == "m.room.member":
                        event["content"]["displayname"] = {"name": "Bob"}

        proxy.rule(change(rename), path=SYNC)
        [joined] = (await session.sync(since, wait=False)).joined
        assert joined.members == {session.user_id, alice.user_id, bob.user_id}
        assert [each.sender_name for each in joined.events if isinstance(each, Message)] == [bob.user_id]


async def test_odd_events_in_history_and_among_reactions_leave_the_rest_as_it_would_be_without_them(
    new_person: NewPerson, homeserver: Homeserver, proxy: Proxy, tmp_path: Path
) -> None:
    alice = await new_person("Alice")
    async with session_in_room(homeserver, alice, proxy.url, tmp_path) as (session, room):
        sent = EventId(await alice.send_text(room, "hello"))
        await alice.react(room, sent, "🚀")
        await session.send(room, "m.room.message", TEXT, DELIVERY)
        page = await session.past.page(room, None, None)
        reactions = await session.past.reactions(room, sent)
        found = await session.past.sent(room, TEXT, DELIVERY, None)
        rule = proxy.rule(change(lambda body: surround(body["chunk"])), path="/messages$|/relations/")
        assert await session.past.page(room, None, None) == page
        assert await session.past.reactions(room, sent) == reactions
        assert await session.past.sent(room, TEXT, DELIVERY, None) == found
        assert (rule.done, len(reactions), len(found)) == (3, 1, 1)


async def test_conversation_is_whole_though_every_answer_has_odd_events(
    new_bridge: NewBridge, new_person: NewPerson, proxy: Proxy
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge(homeserver=proxy.url)
    proxy.rule(change(spoil_sync), path=SYNC)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await ask(alice, room)
    await alice.react(room, question["event_id"], "🔍")
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    await hear_from(alice, room, bridge.user_id())
    assert not any("sync_failed" in line or "Traceback" in line for line in bridge.log)
    assert max(map(len, bridge.log)) < 1_000


# What is sent once


@pytest.mark.parametrize("is_closed", [False, True], ids=["at first", "with new connections"])
async def test_send_whose_connection_breaks_is_sent_once(
    new_person: NewPerson, homeserver: Homeserver, proxy: Proxy, tmp_path: Path, *, is_closed: bool
) -> None:
    alice = await new_person("Alice")
    async with session_in_room(homeserver, alice, proxy.url, tmp_path) as (session, room):
        if is_closed:
            await session.close()
            await session.sync(None, wait=False)
        rule = proxy.rule(refuse, path=SEND)
        with pytest.raises(Unreachable):
            await session.send(room, "m.room.message", TEXT, DELIVERY)
        assert rule.done == 1
