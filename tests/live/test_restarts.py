"""Stopping and starting: what happened meanwhile counts once, the device stays (contract, section 7)."""

import json
import signal
from typing import Any

from tests.live.bridge import Bridge
from tests.live.conftest import NewBridge, NewPerson
from tests.live.conversation import ask, buttons_of, hear_from, is_message, room_with, root_of, said_in
from tests.live.person import Person
from tests.live.waiting import wait_until


async def test_what_was_said_and_answered_while_the_bridge_was_down_counts_once_and_nothing_old_again(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """S1"""
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    account = bridge.user_id()
    room = await room_with(alice, account)
    clicked, typed, untouched = [await ask(alice, room, f"ask {number}") for number in range(3)]
    for number in range(10):
        await alice.send_text(room, f"prompt {number}")
    for number in range(10):
        await alice.wait_for(room, is_message(f"You said: prompt {number}"))
    assert await bridge.stop() == 0
    before = said_in(alice, room, account)
    assert len(before) == len(bridge.turns()) == 13

    click = await alice.react(room, clicked["event_id"], "🔍")
    await alice.react(room, clicked["event_id"], "🚀")
    await alice.send_text(room, "1", thread=root_of(typed))
    message = await alice.send_text(room, "while you were down")
    await bridge.start()
    expected = ["You said: while you were down", "You chose Careful and manual.", "You chose Fast and automated."]
    for text in expected:
        await alice.wait_for(room, is_message(text))
    expected.append(await hear_from(alice, room, account))
    new_words = [text for text in said_in(alice, room, account)[13:] if "already answered" not in text]
    assert sorted(new_words) == sorted(expected)
    turns = bridge.turns()[13:]
    assert len(turns) == 4
    assert {click, message} < {turn["event_id"] for turn in turns}
    assert len({turn["turn_id"] for turn in bridge.turns()}) == 17
    assert await buttons_of(alice, room, untouched["event_id"]) == ["🚀", "🔍\ufe0f"]
    states = {each["event_id"]: each["state"] for each in bridge.journal.questions()}
    assert states == {
        clicked["event_id"]: "answered",
        typed["event_id"]: "answered",
        untouched["event_id"]: "open",
    }


async def test_answer_withdrawn_while_the_bridge_was_down_leaves_the_question_open(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """R8"""
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await ask(alice, room)
    thread = root_of(question)
    assert await bridge.stop() == 0
    tries = [await alice.react(room, question["event_id"], "🚀"), await alice.send_text(room, "1", thread=thread)]
    tries.append(await alice.send_text(room, "never mind", thread=thread))
    for each in tries:
        await alice.redact(room, each)
    await bridge.start()
    await hear_from(alice, room, bridge.user_id())
    assert len(bridge.turns()) == 2
    assert [each["state"] for each in bridge.journal.questions()] == ["open"]
    assert "selected" not in [bridge.verdict(each) for each in tries]

    taken = await alice.react(room, question["event_id"], "🔍")
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    assert bridge.turns()[-1]["selection"]["source_event_id"] == taken


async def devices(bridge: Bridge) -> tuple[dict[str, Any], list[str]]:
    """Who the token in the journal's folder belongs to, and all devices of its account."""
    kept = json.loads((bridge.folder / "journal" / "devices" / "assistant.json").read_text("utf-8"))
    async with Person.with_token(bridge.config["homeserver"], kept["user_id"], kept["access_token"]) as account:
        owner = await account.call("GET", "account", "whoami")
        assert owner["device_id"] == kept["device_id"]
        listed = (await account.call("GET", "devices"))["devices"]
        return owner, sorted(device["device_id"] for device in listed)


async def test_stop_logs_nothing_out_and_the_next_start_uses_the_same_device(new_bridge: NewBridge) -> None:
    """S9"""
    bridge = await new_bridge()
    await bridge.start()
    before = await devices(bridge)
    assert await bridge.stop() == 0
    assert await devices(bridge) == before
    await bridge.start()
    assert await bridge.stop() == 0
    assert await devices(bridge) == before
    assert sum("logged_in" in line for line in bridge.log) == 1
    assert ((bridge.folder / "journal").stat().st_mode & 0o777) == 0o700
    kept = [path for path in (bridge.folder / "journal").rglob("*") if path.is_file()]
    assert kept
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}


async def test_account_with_an_access_token_keeps_its_device(new_bridge: NewBridge, new_person: NewPerson) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    async with await bridge.log_in() as account:
        (bridge.folder / "token").write_text(f"{account.access_token}\n", "utf-8")
        bridge.config["agents"]["assistant"]["account"] = {
            "user_id": account.user_id,
            "access_token_file": "token",
        }
        bridge.prepare()
        before = await account.call("GET", "devices")
        await bridge.start()
        room = await room_with(alice, account.user_id)
        await hear_from(alice, room, account.user_id)
        assert await bridge.stop() == 0
        after = await account.call("GET", "devices")
        assert {each["device_id"] for each in after["devices"]} == {each["device_id"] for each in before["devices"]}
        assert account.access_token not in "\n".join(bridge.log)


async def test_stop_lets_an_agent_finish_and_its_reply_is_sent(new_bridge: NewBridge, new_person: NewPerson) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    bridge.script({"think": {"waits_for": "gate"}})
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    await alice.send_text(room, "think")
    await wait_until(lambda: len(bridge.turns()) == 1)
    bridge.send_signal(signal.SIGTERM)
    bridge.allow("gate")
    assert await bridge.ended() == 0
    await alice.wait_for(room, is_message("You said: think"))
    assert bridge.journal.status()["agents"][0]["turns"] == {"done": 1}


async def test_turn_that_was_stopped_halfway_runs_again_as_the_same_attempt(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    bridge.script({"think": {"waits_for": "gate"}})
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    await alice.send_text(room, "think")
    await wait_until(lambda: len(bridge.turns()) == 1)
    assert await bridge.stop() == 0
    bridge.allow("gate")
    await bridge.start()
    await alice.wait_for(room, is_message("You said: think"))
    await hear_from(alice, room, bridge.user_id())
    first, second, _ = bridge.turns()
    assert first == second
    assert first["attempt"] == 1
    assert len(said_in(alice, room, bridge.user_id())) == 2
