"""A room whose history can't be read for now holds up no other, and loses nothing (contract, section 7.3)."""

import asyncio
import re
import signal

from tests.live.bridge import Bridge
from tests.live.conftest import NewBridge, NewPerson, NewProxy
from tests.live.conversation import ask, is_message, room_with, root_of, said_in
from tests.live.person import Event, Person
from tests.live.proxy import Action, Proxy, Rule, hang, refuse_with
from tests.live.test_gaps import MENTION, chatter
from tests.live.waiting import wait_until

FAILING = refuse_with(502, "M_UNKNOWN")


def breaks_history(proxy: Proxy, room: str, action: Action = FAILING) -> Rule:
    return proxy.rule(action, "GET", f"{re.escape(room)}/messages$")


async def asked(alice: Person, bridge: Bridge, room: str) -> Event:
    return await ask(alice, room, "ask me", mentions=[bridge.user_id()])


async def test_room_whose_history_fails_does_not_make_the_account_deaf(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(settings=MENTION, homeserver=proxy.url)
    await bridge.start()
    broken, sound = [await room_with(alice, bridge.user_id()) for _ in range(2)]
    question, other = await asked(alice, bridge, broken), await asked(alice, bridge, sound)
    assert await bridge.stop() == 0
    failing = breaks_history(proxy, broken)
    number = await alice.send_text(broken, "2", thread=root_of(question))
    await chatter(alice, broken)
    await bridge.start()

    await alice.react(sound, other["event_id"], "🔍")
    await alice.wait_for(sound, is_message("You chose Careful and manual."))
    assert failing.done > 0
    late = await alice.send_text(broken, "while it is behind", mentions=[bridge.user_id()])
    await alice.react(broken, question["event_id"], "🚀")
    assert not [text for text in said_in(alice, broken, bridge.user_id()) if text.startswith("You")]

    proxy.remove(failing)
    await alice.wait_for(broken, is_message("You chose Careful and manual."))
    await alice.wait_for(broken, is_message("You said: while it is behind"))
    await alice.wait_for(broken, is_message("already answered"))
    assert [turn["event_id"] for turn in bridge.turns() if turn["room_id"] == broken][1:] == [number, late]
    assert any("room_caught_up" in line for line in bridge.log)


async def test_history_that_hangs_holds_up_no_other_room(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy, released = await new_person("Alice"), await new_proxy(), asyncio.Event()
    bridge = await new_bridge(settings=MENTION, homeserver=proxy.url)
    await bridge.start()
    hanging, sound = [await room_with(alice, bridge.user_id()) for _ in range(2)]
    question = await asked(alice, bridge, hanging)
    assert await bridge.stop() == 0
    breaks_history(proxy, hanging, hang(released))
    number = await alice.send_text(hanging, "1", thread=root_of(question))
    await chatter(alice, hanging)
    await bridge.start()
    await asked(alice, bridge, sound)
    released.set()
    await alice.wait_for(hanging, is_message("You chose Fast and automated."))
    assert bridge.turns()[-1]["event_id"] == number


async def test_room_that_is_behind_catches_up_after_a_crash(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(settings=MENTION, homeserver=proxy.url)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await asked(alice, bridge, room)
    assert await bridge.stop() == 0
    failing = breaks_history(proxy, room)
    click = await alice.react(room, question["event_id"], "🔍")
    await chatter(alice, room)
    await bridge.start()
    await wait_until(lambda: failing.done >= 2)
    await bridge.stop(signal.SIGKILL)
    number = await alice.send_text(room, "1", thread=root_of(question))
    await bridge.start()
    proxy.remove(failing)
    await alice.wait_for(room, is_message("already answered"))
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    assert (bridge.verdict(click), bridge.verdict(number)) == ("selected", "already_answered")
    assert len(bridge.turns()) == 2


async def test_room_that_was_left_while_it_was_behind_is_forgotten(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(settings=MENTION, homeserver=proxy.url)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    await asked(alice, bridge, room)
    assert await bridge.stop() == 0
    failing = breaks_history(proxy, room)
    await chatter(alice, room)
    await bridge.start()
    await wait_until(lambda: failing.done >= 1)
    await alice.call("POST", "rooms", room, "kick", json={"user_id": bridge.user_id()})
    await wait_until(lambda: [each["state"] for each in bridge.journal.questions()] == ["closed"])
    tried = failing.done
    await asked(alice, bridge, await room_with(alice, bridge.user_id()))
    assert failing.done <= tried + 1


async def test_question_that_was_redacted_in_a_gap_which_cannot_be_read_is_closed(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(settings=MENTION, homeserver=proxy.url)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await asked(alice, bridge, room)
    assert await bridge.stop() == 0
    breaks_history(proxy, room, refuse_with(403, "M_FORBIDDEN"))
    await alice.redact(room, question["event_id"])
    await chatter(alice, room)
    await bridge.start()
    await wait_until(lambda: bridge.journal.questions()[0]["state"] == "closed")
    assert bridge.journal.questions()[0]["close_reason"] == "question_redacted"
