"""Servers that limit what an account may send (contract, section 7.4)."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mindbridge.demo.homeserver import Homeserver
from mindbridge.demo.synapse import throwaway_synapse
from tests.live.bridge import Bridges
from tests.live.conftest import NewBridge, NewPerson, NewProxy
from tests.live.conversation import (
    ask,
    block,
    buttons_of,
    is_button,
    is_edit_of,
    is_message,
    is_question,
    room_with,
    root_of,
    said_in,
)
from tests.live.person import Event, Person
from tests.live.proxy import limit
from tests.live.waiting import wait_until

FIVE = [("🍎", "Apple"), ("🍌", "Banana"), ("🍒", "Cherry"), ("🍇", "Grapes"), ("🍐", "Pear")]
KEYS = [emoji for emoji, _ in FIVE]


async def test_all_buttons_come_in_order_and_an_answer_meanwhile_is_taken_at_once(
    new_bridge: NewBridge, new_person: NewPerson, homeserver: Homeserver
) -> None:
    """R5"""
    alice, bridge = await new_person("Alice"), await new_bridge()
    bridge.script({"first": block("Which fruit?", *FIVE), "second": block("And which now?", *FIVE)})
    await homeserver.override_rate_limit(bridge.user_id(), 1, 2)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    await alice.send_text(room, "first")
    first = await alice.wait_for(room, is_question("Which fruit?"))
    await alice.wait_for(room, is_button(KEYS[-1], first["event_id"]), seconds=30)
    assert await buttons_of(alice, room, first["event_id"]) == KEYS

    await alice.send_text(room, "second")
    second = await alice.wait_for(room, is_question("And which now?"))
    await alice.send_text(room, "4", thread=root_of(second))
    await alice.wait_for(room, is_message("You chose Grapes."))
    assert bridge.journal.status()["agents"][0]["deliveries"]["dropped"] > 0
    assert len(await buttons_of(alice, room, second["event_id"])) < len(KEYS)


async def test_limited_account_makes_no_other_agent_wait(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge("assistant", "helper", homeserver=proxy.url)
    await bridge.start()
    room, other = await room_with(alice, bridge.user_id()), await room_with(alice, bridge.user_id("helper"))
    held = proxy.rule(limit(600_000), "PUT", "/send/", body=lambda body: "held" in str(body))
    await alice.send_text(room, "held")
    await wait_until(lambda: held.done == 1)
    question = await ask(alice, other)
    await alice.react(other, question["event_id"], "🚀")
    await alice.wait_for(other, is_message("You chose Fast and automated."))
    assert held.done == 1
    await bridge.stop()
    await bridge.start()
    await alice.send_text(other, "still there")
    await alice.wait_for(other, is_message("You said: still there"))
    assert held.done == 1, "the time to wait must outlive a restart"


async def test_redactions_are_dropped_when_the_account_was_limited_since_it_asked(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await ask(alice, room)
    limited = proxy.rule(limit(100), "PUT", "/send/m.room.message/", times=1)
    await alice.react(room, question["event_id"], "🚀")
    await wait_until(lambda: bridge.journal.status()["agents"][0]["deliveries"].get("dropped") == 2)
    await alice.wait_for(room, is_message("You chose Fast and automated."))
    assert limited.done == 1
    assert proxy.seen("PUT", "/redact/") == []
    assert len(await buttons_of(alice, room, question["event_id"])) == 2


async def test_buttons_that_are_limited_for_ever_hold_up_no_other_question(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    bridge.script({"first": block("Which fruit?", "Apple", "Pear"), "second": block("And which now?", "Plum", "Fig")})
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    limited: set[str] = set()

    def is_of_first(body: Event) -> bool:
        """Whether it is a button of the question that is the first to get any."""
        question = body["m.relates_to"]["event_id"]
        if not limited:
            limited.add(question)
        return question in limited

    rule = proxy.rule(limit(20), "PUT", "/send/m.reaction/", body=is_of_first)
    await alice.send_text(room, "first")
    first = await alice.wait_for(room, is_question("Which fruit?"))
    await wait_until(lambda: rule.done > 1)
    await alice.send_text(room, "second")
    second = await alice.wait_for(room, is_question("And which now?"))
    await alice.wait_for(room, is_button("2\ufe0f\u20e3", second["event_id"]), seconds=30)
    await alice.send_text(room, "2", thread=root_of(second))
    await alice.wait_for(room, is_edit_of(second["event_id"]), seconds=30)
    assert await buttons_of(alice, room, first["event_id"]) == []
    proxy.remove(rule)
    await alice.wait_for(room, is_button("2\ufe0f\u20e3", first["event_id"]), seconds=60)
    assert await buttons_of(alice, room, first["event_id"]) == ["1\ufe0f\u20e3", "2\ufe0f\u20e3"]


async def test_message_that_is_limited_for_ever_holds_up_no_other_room(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    await bridge.start()
    room, other = await room_with(alice, bridge.user_id()), await room_with(alice, bridge.user_id())
    rule = proxy.rule(limit(20), "PUT", "/send/m.room.message/", body=lambda body: "one" in str(body["body"]))
    root = await alice.send_text(room, "one")
    await wait_until(lambda: rule.done > 1)
    await alice.send_text(room, "two", thread=root)
    question = await ask(alice, other)
    await alice.react(other, question["event_id"], "🚀")
    await alice.wait_for(other, is_message("You chose Fast and automated."))
    await alice.wait_for(other, is_edit_of(question["event_id"]), seconds=30)
    proxy.remove(rule)
    await alice.wait_for(room, is_message("You said: two"), seconds=60)
    assert said_in(alice, room, bridge.user_id()) == ["You said: one", "You said: two"]


@pytest.fixture
async def default_homeserver(synapse_python: Path, tmp_path: Path) -> AsyncIterator[Homeserver]:
    """A Synapse with its own default limits."""
    async with throwaway_synapse(synapse_python, tmp_path, rate_limits=True) as homeserver:
        yield homeserver


async def test_at_default_limits_the_second_and_third_question_wait_for_nothing(
    default_homeserver: Homeserver, tmp_path: Path
) -> None:
    account = await default_homeserver.register("alice", secrets.token_hex(8), display_name="Alice")
    await default_homeserver.override_rate_limit(account.user_id, 0, 0)
    bridges = Bridges(default_homeserver, tmp_path)
    bridge = await bridges()
    bridge.script(
        {
            "begin": block("First?", *FIVE),
            "chose Pear": block("Second?", *FIVE),
            "chose Apple": block("Third?", *FIVE),
        }
    )
    try:
        async with Person.with_token(default_homeserver.url, account.user_id, account.access_token) as alice:
            await bridge.start()
            room = await room_with(alice, bridge.user_id())
            root = await alice.send_text(room, "begin")
            first = await alice.wait_for(room, is_question("First?"))
            # Neither is limited: the reserve is there for messages.
            async with asyncio.timeout(4):
                await alice.wait_for(room, is_button(KEYS[-1], first["event_id"]))
                await alice.send_text(room, "5", thread=root)
                await alice.wait_for(room, is_question("Second?"))
                await alice.send_text(room, "1", thread=root)
                await alice.wait_for(room, is_question("Third?"))
            assert not any("limited" in line for line in bridge.log)
            # What is not needed yet comes as the account may send it.
            await alice.wait_for(room, is_edit_of(first["event_id"]), seconds=60)
    finally:
        await bridges.end()
