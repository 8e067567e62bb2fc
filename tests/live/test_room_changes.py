"""Questions whose message, room or agent goes away (contract, sections 4 and 7)."""

import re
import signal
from collections.abc import Callable
from typing import Any

from tests.live.bridge import Bridge
from tests.live.conftest import NewBridge, NewPerson, NewProxy
from tests.live.conversation import (
    ask,
    buttons_of,
    hear_from,
    is_button,
    is_edit_of,
    is_join_of,
    is_message,
    is_notice,
    room_with,
    root_of,
)
from tests.live.person import Event, Person
from tests.live.proxy import refuse_with
from tests.live.waiting import wait_until

PUBLIC: dict[str, Any] = {"preset": "public_chat"}


def is_leave_of(user_id: str) -> Callable[[Event], bool]:
    """The account left."""
    return lambda event: event.get("state_key") == user_id and event["content"].get("membership") == "leave"


def states(bridge: Bridge) -> list[tuple[str, str | None]]:
    return [(each["state"], each["close_reason"]) for each in bridge.journal.questions()]


async def test_room_upgrade_is_followed_and_open_questions_are_closed_with_a_word(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """A5"""
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id(), **PUBLIC)
    question = await ask(alice, room)
    answer = await alice.call("POST", "rooms", room, "upgrade", json={"new_version": "11"})
    new_room = answer["replacement_room"]
    await alice.wait_for(new_room, is_join_of(bridge.user_id()))
    word = await alice.wait_for(new_room, is_notice(bridge.user_id()))
    assert "closed" in word["content"]["body"]
    assert states(bridge) == [("closed", "room_upgraded")]
    await hear_from(alice, new_room, bridge.user_id())
    late = await alice.react(room, question["event_id"], "🚀")
    await wait_until(lambda: bridge.verdict(late) == "question_closed")
    assert [turn["kind"] for turn in bridge.turns()] == ["message", "message"]


async def test_room_upgrade_while_the_bridge_was_down_is_followed_by_invitation(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    await ask(alice, room)
    assert await bridge.stop() == 0
    answer = await alice.call("POST", "rooms", room, "upgrade", json={"new_version": "11"})
    new_room = answer["replacement_room"]
    await alice.invite(new_room, bridge.user_id())
    await bridge.start()
    await alice.wait_for(new_room, is_join_of(bridge.user_id()))
    await alice.wait_for(new_room, is_notice(bridge.user_id()))
    assert states(bridge) == [("closed", "room_upgraded")]


async def test_upgrade_of_a_private_room_is_followed_by_the_invitation_that_comes_after_it(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """A5"""
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    await ask(alice, room)
    answer = await alice.call("POST", "rooms", room, "upgrade", json={"new_version": "11"})
    await wait_until(lambda: lines(bridge, "refused") != [])
    await bridge.stop(signal.SIGKILL)
    await bridge.start()
    await alice.invite(answer["replacement_room"], bridge.user_id())
    await alice.wait_for(answer["replacement_room"], is_notice(bridge.user_id()))
    await hear_from(alice, answer["replacement_room"], bridge.user_id())


async def test_upgrade_by_someone_who_is_not_allowed_is_not_followed(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, mallory, bridge = await new_person("Alice"), await new_person("Mallory"), await new_bridge()
    bridge.config["access"] = {"users": [alice.user_id]}
    bridge.prepare()
    await bridge.start()
    power: dict[str, Any] = {"power_level_content_override": {"users": {alice.user_id: 100, mallory.user_id: 100}}}
    # Room version 11: in later ones only the creator is above the others.
    room = await room_with(alice, bridge.user_id(), others=[mallory], room_version="11", **power, **PUBLIC)
    await ask(alice, room, mentions=[bridge.user_id()])
    trap = await mallory.create_room(preset="public_chat")
    await tombstone(mallory, room, trap)
    await wait_until(lambda: states(bridge) == [("closed", "room_upgraded")])
    await hear_from(alice, room, bridge.user_id())
    assert bridge.user_id() not in await mallory.members(trap)


async def tombstone(person: Person, room: str, replacement: str) -> None:
    """Says that a room is replaced by another, as no client does by itself."""
    body = {"body": "moved", "replacement_room": replacement}
    await person.call("PUT", "rooms", room, "state", "m.room.tombstone", "", json=body)


def lines(bridge: Bridge, event: str) -> list[str]:
    """What the bridge's log says of this."""
    return [line for line in bridge.log if event in line]


async def test_room_that_was_not_made_from_the_upgraded_one_is_told_nothing(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """A5"""
    alice, mallory, bridge = await new_person("Alice"), await new_person("Mallory"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    hers = await room_with(mallory, bridge.user_id())
    await ask(mallory, hers)
    await tombstone(mallory, hers, room)
    await wait_until(lambda: lines(bridge, "upgrade_not_true") != [])
    assert states(bridge) == [("closed", "room_upgraded")]
    await hear_from(alice, room, bridge.user_id())
    assert not any(is_notice(bridge.user_id())(event) for event in alice.timeline(room))
    assert len(lines(bridge, "upgrade_not_true")) == 1


async def test_room_that_was_joined_for_an_upgrade_and_not_made_from_the_old_one_is_left_again(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """A5"""
    mallory, bridge = await new_person("Mallory"), await new_bridge()
    await bridge.start()
    room = await room_with(mallory, bridge.user_id())
    await ask(mallory, room)
    trap = await mallory.create_room(**PUBLIC)
    await tombstone(mallory, room, trap)
    await mallory.wait_for(trap, is_leave_of(bridge.user_id()))
    await wait_until(lambda: lines(bridge, "upgrade_not_true") != [])
    await hear_from(mallory, room, bridge.user_id())
    of_bridge = [event["type"] for event in mallory.timeline(trap) if event["sender"] == bridge.user_id()]
    assert of_bridge == ["m.room.member", "m.room.member"]


async def test_new_room_that_cannot_be_joined_leaves_nothing_to_do(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """A5"""
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    await ask(alice, room)
    await tombstone(alice, room, await alice.create_room())
    await wait_until(lambda: lines(bridge, "refused") != [])
    assert states(bridge) == [("closed", "room_upgraded")]
    assert await bridge.stop() == 0
    await bridge.start()
    await hear_from(alice, room, bridge.user_id())
    assert len(lines(bridge, "refused")) == 1
    assert bridge.journal.status()["refused"] == []


async def test_upgrade_that_could_not_be_checked_is_told_after_the_next_start(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    """A5"""
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    await bridge.start()
    room = await room_with(alice, bridge.user_id(), **PUBLIC)
    await ask(alice, room)
    failing = proxy.rule(refuse_with(500, "M_UNKNOWN"), "GET", "/state/m.room.create")
    answer = await alice.call("POST", "rooms", room, "upgrade", json={"new_version": "11"})
    new_room = answer["replacement_room"]
    await wait_until(lambda: failing.done >= 1)
    await alice.wait_for(new_room, is_join_of(bridge.user_id()))
    tried = failing.done
    await hear_from(alice, new_room, bridge.user_id())
    await wait_until(lambda: failing.done > tried)
    assert not any(is_notice(bridge.user_id())(event) for event in alice.timeline(new_room))
    await bridge.stop(signal.SIGKILL)
    proxy.remove(failing)
    await bridge.start()
    await alice.wait_for(new_room, is_notice(bridge.user_id()))
    await hear_from(alice, new_room, bridge.user_id())
    assert len([event for event in alice.timeline(new_room) if is_notice(bridge.user_id())(event)]) == 1


async def test_redacted_question_is_closed_and_answers_nothing(new_bridge: NewBridge, new_person: NewPerson) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await ask(alice, room)
    redaction = await alice.redact(room, question["event_id"])
    typed = await alice.send_text(room, "1", thread=root_of(question))
    await hear_from(alice, room, bridge.user_id())
    assert states(bridge) == [("closed", "question_redacted")]
    assert bridge.verdict(redaction) == "question_closed"
    assert bridge.verdict(typed) is None
    assert [turn["text"] for turn in bridge.turns()][1] == "1"
    assert [turn["kind"] for turn in bridge.turns()] == ["message"] * 3


async def test_questions_of_a_room_that_was_left_are_closed(new_bridge: NewBridge, new_person: NewPerson) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    await ask(alice, room)
    await alice.call("POST", "rooms", room, "kick", json={"user_id": bridge.user_id()})
    await wait_until(lambda: states(bridge) == [("closed", "room_left")])
    again = await room_with(alice, bridge.user_id())
    await hear_from(alice, again, bridge.user_id())
    assert bridge.journal.status()["refused"] == []


async def test_questions_of_an_agent_that_was_removed_are_closed_and_say_so_when_it_is_back(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge("assistant", "helper")
    await bridge.start()
    room = await room_with(alice, bridge.user_id(), bridge.user_id("helper"))
    question = await ask(alice, room, mentions=[bridge.user_id("helper")])
    assert await bridge.stop() == 0
    helper = bridge.config["agents"].pop("helper")
    bridge.prepare()
    await bridge.start()
    assert states(bridge) == [("closed", "agent_removed")]
    await alice.react(room, question["event_id"], "🚀")
    await hear_from(alice, room, bridge.user_id())
    assert bridge.turns("helper")[1:] == []
    assert await bridge.stop() == 0
    bridge.config["agents"]["helper"] = helper
    bridge.prepare()
    await bridge.start()
    closed = await alice.wait_for(room, is_edit_of(question["event_id"]))
    assert closed["content"]["m.new_content"]["dev.mindbridge.question"]["state"] == "closed"


async def test_question_without_buttons_says_so_and_is_answered_by_number(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    levels: dict[str, Any] = {"power_level_content_override": {"events": {"m.reaction": 50}}}
    room = await room_with(alice, bridge.user_id(), **levels)
    await alice.send_text(room, "ask me")
    question = await alice.wait_for(room, is_message("What approach"))
    edit = await alice.wait_for(room, is_edit_of(question["event_id"]))
    assert "type the number" in edit["content"]["m.new_content"]["body"]
    assert "React" not in edit["content"]["m.new_content"]["body"]
    assert edit["content"]["m.new_content"]["dev.mindbridge.question"]["state"] == "open"
    assert await buttons_of(alice, room, question["event_id"]) == []
    await alice.send_text(room, "2", thread=root_of(question))
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    [refused] = bridge.journal.status()["refused"]
    assert refused["kind"] == "button"
    assert "M_FORBIDDEN" in refused["error"]


async def test_question_that_could_not_be_posted_has_failed_and_its_agent_is_told(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    refusal = refuse_with(413, "M_TOO_LARGE")
    proxy.rule(refusal, "PUT", "/send/", body=lambda body: "dev.mindbridge.question" in body)
    root = await alice.send_text(room, "ask me")
    await wait_until(lambda: states(bridge) == [("failed", None)])
    await alice.send_text(room, "what now?", thread=root)
    await alice.wait_for(room, is_message("You said: what now?"))
    [problem] = bridge.turns()[1]["problems"]
    assert problem["code"] == "question_not_posted"
    assert "M_TOO_LARGE" in problem["message"]
    assert proxy.seen("PUT", "/send/m.reaction/") == []


async def test_quiet_agent_tells_nobody_that_an_answer_was_not_taken(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice = await new_person("Alice")
    bridge = await new_bridge(settings={"assistant": {"questions": {"quiet": True}}})
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await ask(alice, room)
    await alice.react(room, question["event_id"], "🚀")
    late = await alice.react(room, question["event_id"], "🔍")
    await hear_from(alice, room, bridge.user_id())
    assert bridge.verdict(late) == "already_answered"
    assert not any(is_notice()(event) for event in alice.timeline(room))


async def test_room_in_which_the_server_fails_holds_up_no_other_room(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    await bridge.start()
    broken, sound = await room_with(alice, bridge.user_id()), await room_with(alice, bridge.user_id())
    failing = proxy.rule(refuse_with(500, "M_UNKNOWN"), "PUT", f"/rooms/{re.escape(broken)}/send/")
    await alice.send_text(broken, "ask me")
    await wait_until(lambda: failing.done >= 2)
    for number in range(3):
        question = await ask(alice, sound, f"ask {number}")
        await alice.react(sound, question["event_id"], "🚀")
        await alice.wait_for(sound, is_edit_of(question["event_id"]))
    proxy.remove(failing)
    question = await alice.wait_for(broken, is_message("What approach"))
    await alice.wait_for(broken, is_button("🔍\ufe0f", question["event_id"]))
    assert await buttons_of(alice, broken, question["event_id"]) == ["🚀", "🔍\ufe0f"]


async def test_click_right_before_the_account_was_kicked_counts(new_bridge: NewBridge, new_person: NewPerson) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await ask(alice, room)
    assert await bridge.stop() == 0
    click = await alice.react(room, question["event_id"], "🚀")
    await alice.call("POST", "rooms", room, "kick", json={"user_id": bridge.user_id()})
    await bridge.start()
    await wait_until(lambda: bridge.verdict(click) == "selected")
    await wait_until(lambda: [turn["kind"] for turn in bridge.turns()] == ["message", "selection"])
    assert [state for state, _ in states(bridge)] == ["answered"]


async def test_who_was_kicked_and_invited_again_while_the_bridge_was_down_accepts(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    await ask(alice, room)
    assert await bridge.stop() == 0
    await alice.call("POST", "rooms", room, "kick", json={"user_id": bridge.user_id()})
    await alice.invite(room, bridge.user_id())
    invited = await alice.send_text(room, "welcome back")
    await bridge.start()
    await alice.wait_for(room, is_message("You said: welcome back"))
    assert bridge.turns()[-1]["event_id"] == invited
    assert states(bridge) == [("closed", "room_left")]
