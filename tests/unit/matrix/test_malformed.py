"""Answers of a homeserver with events in them that are none, as nio reads them then."""

import copy
import logging
from typing import Any

import nio
import pytest
from nio.client.async_client import AsyncClient, AsyncClientConfig

from mindbridge.matrix.malformed import drop_malformed

OWN, ALICE, ROOM = "@assistant:example.org", "@alice:example.org", "!room:example.org"
TOO_LONG = "x" * 256


def event(event_type: str, content: Any, **changes: Any) -> dict[str, Any]:
    return {
        "event_id": "$event",
        "sender": ALICE,
        "origin_server_ts": 1_700_000_000_000,
        "type": event_type,
        "content": content,
    } | changes


def message(**changes: Any) -> dict[str, Any]:
    return event("m.room.message", {"msgtype": "m.text", "body": "hello"}, **changes)


def member(**content: Any) -> dict[str, Any]:
    return event("m.room.member", {"membership": "join"} | content, state_key=ALICE)


def without(source: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in source.items() if key != name}


def answer(**rooms: Any) -> dict[str, Any]:
    return {"next_batch": "s1", "rooms": rooms}


def joined(*events: Any, where: str = "timeline") -> dict[str, Any]:
    return answer(join={ROOM: {where: {"events": list(events)}}})


async def read(body: dict[str, Any]) -> tuple[nio.SyncResponse, AsyncClient]:
    """What nio makes of an answer, and its client with the rooms as they are then."""
    drop_malformed(body, OWN)
    client = AsyncClient("http://127.0.0.1:9", OWN, config=AsyncClientConfig(encryption_enabled=False))
    client.user_id = OWN
    response = nio.SyncResponse.from_dict(body)
    assert isinstance(response, nio.SyncResponse)
    await client.receive_response(response)
    return response, client


NOTHING: tuple[Any, ...] = (None, 5, "x", [])
NO_EVENTS: list[Any] = [
    *NOTHING,
    {},
    *(without(message(), name) for name in ("type", "sender", "event_id", "origin_server_ts", "content")),
    *(message() | {"origin_server_ts": odd} for odd in (None, *NOTHING[2:], "1700000000000", 1.5, True, {})),
    *(message() | {"event_id": odd} for odd in (*NOTHING[:2], "", TOO_LONG)),
    *(message() | {"sender": odd} for odd in (*NOTHING[:2], "", f"@{TOO_LONG}:example.org")),
    *(message() | {"content": odd} for odd in NOTHING),
    message() | {"type": 5},
]


@pytest.mark.parametrize("where", ["timeline", "state"])
@pytest.mark.parametrize("odd", NO_EVENTS, ids=lambda each: repr(each)[:70])
async def test_what_is_no_event_is_passed_over_with_a_line_and_those_beside_it_are_read(
    odd: Any, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    first, last = message(event_id="$first"), member() | {"event_id": "$last"}
    response, client = await read(joined(first, copy.deepcopy(odd), last, where=where))
    room = response.rooms.join[ROOM]
    assert [each.source for each in (room.timeline.events if where == "timeline" else room.state)] == [first, last]
    assert set(client.rooms[ROOM].users) == {ALICE}
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("mindbridge")]
    claimed = odd.get("event_id") if isinstance(odd, dict) else None
    shown = f"{claimed!r:.100}" if isinstance(claimed, str) else "none"
    assert ours == [f"event_passed_over user_id={OWN} room_id='{ROOM}' event_id={shown}"]


async def test_whole_events_are_left_as_they_are_without_a_line(caplog: pytest.LogCaptureFixture) -> None:
    body = joined(
        message(unsigned={"age": 5, "transaction_id": "d1"}, origin_server_ts=-1, event_id="e" * 255),
        event("m.weird", {"a": [None]}, more={"b": 1}),
        member(displayname="Alice", avatar_url=None) | {"unsigned": {"prev_content": {"membership": "invite"}}},
    )
    before = copy.deepcopy(body["rooms"]["join"][ROOM]["timeline"])
    drop_malformed(body, OWN)
    assert body["rooms"]["join"][ROOM]["timeline"] == before
    assert caplog.records == []


@pytest.mark.parametrize(
    "odd",
    [
        *(
            member(**{name: odd})
            for name in ("displayname", "avatar_url", "reason")
            for odd in (*NOTHING[1::2], {}, True)
        ),
        member() | {"prev_content": 5},
        *(member() | {"unsigned": odd} for odd in NOTHING),
        member() | {"unsigned": {"prev_content": "x"}},
        member() | {"unsigned": {"transaction_id": 5}},
    ],
    ids=lambda each: repr(each)[90:],
)
@pytest.mark.parametrize("where", ["timeline", "state"])
async def test_member_of_whom_something_odd_is_said_counts_as_a_member(odd: dict[str, Any], where: str) -> None:
    _, client = await read(joined(copy.deepcopy(odd), where=where))
    assert set(client.rooms[ROOM].users) == {ALICE}
    assert client.rooms[ROOM].user_name(ALICE) == ALICE


async def test_member_who_leaves_with_an_odd_reason_is_gone() -> None:
    _, client = await read(joined(member(), member(membership="leave", reason=5) | {"event_id": "$left"}))
    assert set(client.rooms[ROOM].users) == set()


# Invitations


@pytest.mark.parametrize(
    "odd",
    [
        None,
        5,
        "x",
        [],
        {},
        event("m.room.name", None),
        event("m.room.name", {"name": "Room"}, sender=TOO_LONG),
        without(event("m.room.name", {"name": "Room"}), "sender"),
    ],
    ids=lambda each: repr(each)[:40],
)
async def test_odd_event_beside_an_invitation_is_passed_over(odd: Any, caplog: pytest.LogCaptureFixture) -> None:
    invite = {"type": "m.room.member", "sender": ALICE, "state_key": OWN, "content": {"membership": "invite"}}
    response, _ = await read(answer(invite={ROOM: {"invite_state": {"events": [odd, invite, copy.deepcopy(odd)]}}}))
    assert [each.source for each in response.rooms.invite[ROOM].invite_state] == [invite]
    assert sum(record.name.startswith("mindbridge") for record in caplog.records) == 2


@pytest.mark.parametrize("unsigned", [None, 5, "x", [], {"prev_content": 5}], ids=repr)
async def test_invitation_with_odd_extras_is_one(unsigned: Any) -> None:
    content = {"membership": "invite", "displayname": ["Assistant"]}
    invite = {"type": "m.room.member", "sender": ALICE, "state_key": OWN, "content": content, "unsigned": unsigned}
    response, _ = await read(answer(invite={ROOM: {"invite_state": {"events": [invite]}}}))
    [read_as] = response.rooms.invite[ROOM].invite_state
    assert isinstance(read_as, nio.InviteMemberEvent)
    assert (read_as.sender, read_as.state_key) == (ALICE, OWN)


# Rooms


@pytest.mark.parametrize("room_id", ["", "room:example.org", "#room:example.org", "!" + TOO_LONG])
@pytest.mark.parametrize("kind", ["join", "invite", "leave"])
async def test_room_with_an_id_that_is_none_is_passed_over(
    kind: str, room_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    response, _ = await read(answer(**{kind: {room_id: {}, ROOM: {}}}))
    assert list(getattr(response.rooms, kind)) == [ROOM]
    assert [record.getMessage() for record in caplog.records] == [
        f"room_passed_over user_id={OWN} room_id={room_id!r:.100}"
    ]


async def test_lists_that_a_server_leaves_out_are_empty() -> None:
    empty: dict[str, Any] = {}
    response, _ = await read(
        answer(
            join={ROOM: {}},
            invite={"!invited:x": {}, "!other:x": {"invite_state": empty}},
            leave={"!left:x": {}, "!more:x": {"timeline": {"limited": False}}},
        )
    )
    assert response.rooms.join[ROOM].timeline.events == []
    assert response.rooms.invite["!invited:x"].invite_state == []
    assert response.rooms.leave["!more:x"].state == []


async def test_odd_event_in_a_room_that_was_left_is_passed_over() -> None:
    last = message()
    left = {"timeline": {"events": [5, last]}, "state": {"events": [message(origin_server_ts=None)]}}
    response, _ = await read(answer(leave={ROOM: left}))
    assert [each.source for each in response.rooms.leave[ROOM].timeline.events] == [last]


# Everything else


@pytest.mark.parametrize("odd", [None, 5, "x", [], {}, {"type": "m.x"}, {"type": "m.x", "content": 5}], ids=repr)
async def test_nothing_else_in_an_answer_can_spoil_its_rooms(odd: Any) -> None:
    hello = message()
    body = joined(hello)
    body["rooms"]["join"][ROOM] |= {name: {"events": [odd]} for name in ("ephemeral", "account_data")}
    body |= {name: {"events": [copy.deepcopy(odd)]} for name in ("to_device", "account_data", "presence")}
    response, _ = await read(body)
    assert [each.source for each in response.rooms.join[ROOM].timeline.events] == [hello]


async def test_message_to_the_device_is_left_with_odd_extras_or_without() -> None:
    sent = {"type": "m.room_key_request", "sender": ALICE, "content": {"action": "request"}}
    response, _ = await read({"next_batch": "s1", "to_device": {"events": [5, sent | {"unsigned": 5}]}})
    assert [each.source for each in response.to_device_events] == [sent]


@pytest.mark.parametrize("odd", NO_EVENTS, ids=lambda each: repr(each)[:70])
def test_page_of_events_holds_only_events(odd: Any, caplog: pytest.LogCaptureFixture) -> None:
    hello = message(room_id=ROOM)
    body = {"chunk": [copy.deepcopy(odd), hello], "start": "s"}
    drop_malformed(body, OWN)
    assert body == {"chunk": [hello], "start": "s"}
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"chunk": 5},
        {"rooms": []},
        {"rooms": {"join": []}},
        {"rooms": {"join": {ROOM: None}}},
        {"rooms": {"join": {ROOM: {"timeline": [], "state": {"events": "none"}}}}},
        {"to_device": []},
    ],
    ids=repr,
)
def test_answer_of_another_shape_is_left_to_fail_as_a_whole(body: Any) -> None:
    before = copy.deepcopy(body)
    drop_malformed(body, OWN)
    assert body == before


async def test_no_line_grows_with_what_someone_sent(caplog: pytest.LogCaptureFixture) -> None:
    huge = "x\n" * 50_000
    odd: list[Any] = [message(event_id=huge), message(event_id="$1") | {"content": huge}, huge, {huge: huge}]
    body = joined(*odd) | {"chunk": [message(event_id=huge, room_id=huge)]}
    body["rooms"]["join"]["!" + huge] = {}
    invite = event("m.room.member", {"membership": huge, "displayname": {huge: huge}}, state_key=OWN, unsigned=huge)
    body["rooms"]["invite"] = {"!1": {"invite_state": {"events": [huge, {huge: huge}, invite]}}}
    await read(body)
    lines = [each.getMessage() for each in caplog.records if not is_nio(each) or each.levelno >= logging.ERROR]
    assert len(lines) == 8
    assert max(map(len, lines)) < 400
    assert "\n" not in "".join(lines)


def is_nio(record: logging.LogRecord) -> bool:
    """Only nio's errors are shown to anyone (`set_up_logging`)."""
    return record.name.startswith("nio")
