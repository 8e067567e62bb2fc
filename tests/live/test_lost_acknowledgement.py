"""The homeserver took an event and its answer never arrived: it is there once all the same (contract, section 7.2).

The homeserver has forgotten each transaction id at once: only looking into the room shows what is there.
"""

import asyncio
import json
import signal

import pytest
from aiohttp import web

from tests.live.bridge import Bridge
from tests.live.conftest import NewBridge, NewPerson, NewProxy
from tests.live.conversation import (
    ask,
    block,
    buttons_of,
    hear_from,
    is_edit_of,
    is_message,
    is_question,
    room_with,
    said_in,
)
from tests.live.person import Event, Person
from tests.live.proxy import (
    SEND,
    Action,
    Next,
    Proxy,
    Request,
    delay,
    forget_transactions,
    limit,
    lose,
    refuse,
    refuse_with,
)
from tests.live.waiting import wait_until

MESSAGE, BUTTON, REDACTION = "/send/m.room.message/", "/send/m.reaction/", "/redact/"
EVERY_KIND = {
    "message": (MESSAGE, lambda body: "m.new_content" not in body),
    "button": (BUTTON, lambda _: True),
    "edit": (MESSAGE, lambda body: "m.new_content" in body),
    "redaction": (REDACTION, lambda _: True),
}


async def events_of(alice: Person, room: str, account: str) -> list[Event]:
    """All that the account has sent into the room up to now, in order, redacted buttons as well."""
    mark = await alice.send_text(room, "mark", msgtype="m.notice")
    await alice.wait_for(room, lambda event: event["event_id"] == mark)
    sent = [event for event in alice.timeline(room) if event["sender"] == account]
    return [event for event in sent if event["type"] != "m.room.member"]


def shape(events: list[Event]) -> list[str]:
    return sorted(
        "edit" if "m.new_content" in event["content"] else str(event["type"]).removeprefix("m.") for event in events
    )


WHOLE = ["edit", "reaction", "reaction", "room.message", "room.message", "room.redaction", "room.redaction"]


async def is_settled(bridge: Bridge) -> bool:
    [agent] = bridge.journal.status()["agents"]
    return not {"pending", "attempted"} & set(agent["deliveries"])


@pytest.mark.parametrize("kind", EVERY_KIND)
async def test_lost_answers_of_the_server_double_nothing(
    kind: str, new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    path, wanted = EVERY_KIND[kind]
    proxy.rule(forget_transactions(), "PUT", SEND)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    losing = proxy.rule(lose, "PUT", path, body=wanted, times=3)
    question = await ask(alice, room)
    await alice.react(room, question["event_id"], "🔍")
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    await alice.wait_for(room, is_edit_of(question["event_id"]))
    await wait_until(lambda: is_settled(bridge))
    assert losing.done > 0
    assert shape(await events_of(alice, room, bridge.user_id())) == WHOLE
    assert await buttons_of(alice, room, question["event_id"]) == []
    assert bridge.journal.status()["agents"][0]["deliveries"] == {"sent": 7}


async def lose_then_stop(proxy: Proxy, bridge: Bridge, path: str, key: str | None = None) -> None:
    """Kills the bridge when the server has taken an event of a kind, or the button `key`, and not answered yet."""
    taken, never = asyncio.Event(), asyncio.Event()

    async def forward_and_hang(_request: Request, forward: Next) -> web.StreamResponse:
        answer = await forward()
        taken.set()
        await never.wait()
        return answer

    wanted = (lambda _: True) if key is None else lambda body: body["m.relates_to"]["key"] == key
    held = proxy.rule(forward_and_hang, "PUT", path, body=wanted, times=1)
    async with asyncio.timeout(20):
        await taken.wait()
    await bridge.stop(signal.SIGKILL)
    proxy.remove(held)


@pytest.mark.parametrize("path", [MESSAGE, BUTTON], ids=["message", "button"])
@pytest.mark.parametrize("device", ["same device", "another device"])
async def test_what_was_under_way_at_a_crash_is_found_in_the_room(
    path: str, device: str, new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    proxy.rule(forget_transactions(), "PUT", SEND)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    killing = asyncio.create_task(lose_then_stop(proxy, bridge, path))
    await alice.send_text(room, "ask me")
    await killing
    if device == "another device":
        (bridge.folder / "journal" / "devices" / "assistant.json").unlink()
    await bridge.start()
    question = await alice.wait_for(room, is_question())
    await wait_until(lambda: is_settled(bridge))
    assert await buttons_of(alice, room, question["event_id"]) == ["🚀", "🔍\ufe0f"]
    await alice.react(room, question["event_id"], "🚀")
    await alice.wait_for(room, is_edit_of(question["event_id"]))
    await wait_until(lambda: is_settled(bridge))
    assert shape(await events_of(alice, room, bridge.user_id())) == WHOLE
    assert len({turn["turn_id"] for turn in bridge.turns()}) == len(bridge.turns()) == 2


async def test_what_was_under_way_is_looked_for_again_when_the_look_was_too_much_for_the_server(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    proxy.rule(forget_transactions(), "PUT", SEND)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    killing = asyncio.create_task(lose_then_stop(proxy, bridge, MESSAGE))
    await alice.send_text(room, "ask me")
    await killing
    # To another device the server doesn't show the transaction id, so that no echo tells.
    (bridge.folder / "journal" / "devices" / "assistant.json").unlink()
    limited = proxy.rule(limit(50), "GET", "/messages$", times=1)
    await bridge.start()
    await wait_until(lambda: is_settled(bridge))
    assert limited.done == 1
    assert shape(await events_of(alice, room, bridge.user_id())) == ["reaction", "reaction", "room.message"]


@pytest.mark.parametrize("forgets", [False, True], ids=["", "transaction ids are forgotten"])
async def test_bridge_that_is_killed_between_buttons_adds_the_missing_ones(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy, *, forgets: bool
) -> None:
    """R3"""
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    keys = ["🍎", "🍌", "🍒", "🍇"]
    bridge.script({"ask": block("Which fruit?", *((key, f"Fruit {key}") for key in keys))})
    if forgets:
        proxy.rule(forget_transactions(), "PUT", SEND)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    killing = asyncio.create_task(lose_then_stop(proxy, bridge, BUTTON, keys[1]))
    await alice.send_text(room, "ask")
    await killing
    await bridge.start()
    question = await alice.wait_for(room, is_question())
    await wait_until(lambda: is_settled(bridge))
    assert await buttons_of(alice, room, question["event_id"]) == keys
    assert bridge.journal.status()["agents"][0]["deliveries"] == {"sent": 5}


async def test_what_cannot_be_told_is_uncertain_and_not_sent_again(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    # The event never arrives, so that no echo can tell, and the history can't be read.
    lost = proxy.rule(refuse, "PUT", MESSAGE, body=lambda body: "dev.mindbridge.question" in body)
    proxy.rule(refuse_with(403, "M_FORBIDDEN"), "GET", "/messages$")
    await alice.send_text(room, "ask me")
    await wait_until(lambda: bool(bridge.journal.status()["uncertain"]))
    proxy.remove(lost)
    await hear_from(alice, room, bridge.user_id())
    [uncertain] = bridge.journal.status()["uncertain"]
    assert (uncertain["kind"], uncertain["room_id"]) == ("message", room)
    assert not any(is_question()(event) for event in alice.timeline(room))
    assert said_in(alice, room, bridge.user_id())[0].startswith("You said: Still there?")
    status, output, _ = await bridge.command("journal", "status")
    assert status == 0
    assert f"uncertain message {uncertain['delivery_id']}" in output


async def test_answer_that_arrives_before_the_question_was_acknowledged_counts(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    """R11"""
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    released = asyncio.Event()
    held = proxy.rule(_late(released), "PUT", MESSAGE, body=lambda body: "dev.mindbridge.question" in body)
    await alice.send_text(room, "ask me")
    question = await alice.wait_for(room, is_question())
    click = await alice.react(room, question["event_id"], "🔍")
    await wait_until(lambda: len(bridge.turns()) == 2)
    assert bridge.turns()[1]["selection"]["source_event_id"] == click
    released.set()
    proxy.remove(held)
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    await wait_until(lambda: is_settled(bridge))
    assert await buttons_of(alice, room, question["event_id"]) == []


def _late(released: asyncio.Event) -> Action:
    """Forwards at once and answers when released."""

    async def act(_request: Request, forward: Next) -> web.StreamResponse:
        answer = await forward()
        await released.wait()
        return answer

    return act


async def test_page_of_history_without_events_does_not_say_that_nothing_was_sent(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    proxy.rule(forget_transactions(), "PUT", SEND)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    proxy.rule(lose, "PUT", MESSAGE, times=1)
    hidden = proxy.rule(_hide_newest, "GET", "/messages$", times=1)
    # An echo in a sync response must not tell first.
    proxy.rule(delay(2), "GET", "/sync$")
    await alice.send_text(room, "once")
    await wait_until(lambda: bridge.journal.status()["agents"][0]["deliveries"] == {"sent": 1})
    await hear_from(alice, room, bridge.user_id())
    assert said_in(alice, room, bridge.user_id()).count("You said: once") == 1
    assert hidden.done == 1


async def _hide_newest(_request: Request, forward: Next) -> web.StreamResponse:
    answer = await forward()
    assert isinstance(answer, web.Response)
    assert isinstance(answer.body, bytes)
    page = json.loads(answer.body)
    return web.json_response({"chunk": [], "start": page["start"], "end": page["start"]})
