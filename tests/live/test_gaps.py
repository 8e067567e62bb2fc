"""What a sync response leaves out counts as well, in its place (contract, section 7.3)."""

import asyncio

from aiohttp import web
from yarl import URL

from tests.live.bridge import Bridge
from tests.live.conftest import NewBridge, NewPerson, NewProxy
from tests.live.conversation import ask, block, hear_from, is_message, room_with, root_of, said_in
from tests.live.person import Event, Person
from tests.live.proxy import Next, Request, refuse_with
from tests.live.waiting import wait_until

# More than one page of history, and far more than a sync response shows of a room.
MANY = 130
MENTION = {"assistant": {"respond": "mention"}}


async def chatter(person: Person, room: str, number: int = MANY) -> None:
    """Messages that are meant for no agent, a few at a time."""
    for start in range(0, number, 10):
        await asyncio.gather(*(person.send_text(room, f"chatter {start + more}") for more in range(10)))


async def asked(alice: Person, bridge: Bridge, room: str, text: str = "ask me") -> Event:
    return await ask(alice, room, text, mentions=[bridge.user_id()])


async def test_answer_in_the_gap_of_a_limited_timeline_is_taken_once(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """S2"""
    alice, bob = await new_person("Alice"), await new_person("Bob")
    bridge = await new_bridge(settings=MENTION)
    await bridge.start()
    room = await room_with(alice, bridge.user_id(), others=[bob])
    clicked, typed = await asked(alice, bridge, room), await asked(alice, bridge, room, "ask again")
    assert await bridge.stop() == 0
    click = await alice.react(room, clicked["event_id"], "🔍")
    number = await alice.send_text(room, "1", thread=root_of(typed))
    await bob.react(room, clicked["event_id"], "🚀")
    message = await alice.send_text(room, "in the gap", mentions=[bridge.user_id()])
    await chatter(alice, room)
    await bob.react(room, typed["event_id"], "🔍")
    await bridge.start()
    await hear_from(alice, room, bridge.user_id())
    sources = [turn["event_id"] for turn in bridge.turns()[2:]]
    assert sorted(sources[:3]) == sorted([click, number, message])
    assert len(sources) == 4
    answers = {each["question_text"]: each["selection"]["source_event_id"] for each in bridge.journal.questions()}
    assert set(answers.values()) <= {click, number}
    assert [each["selection"]["source_event_id"] for each in reversed(bridge.journal.questions())] == [click, number]
    assert said_in(alice, room, bridge.user_id()).count("You said: in the gap") == 1
    assert any("gap_filled" in line for line in bridge.log)


async def test_clicks_in_a_gap_that_cannot_be_read_count_and_withdrawn_ones_do_not(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, bob, proxy = await new_person("Alice"), await new_person("Bob"), await new_proxy()
    bridge = await new_bridge(settings=MENTION, homeserver=proxy.url)
    await bridge.start()
    room = await room_with(alice, bridge.user_id(), others=[bob])
    clicked, withdrawn = await asked(alice, bridge, room), await asked(alice, bridge, room, "ask again")
    assert await bridge.stop() == 0
    proxy.rule(refuse_with(403, "M_FORBIDDEN"), "GET", "/messages$")
    click = await alice.react(room, clicked["event_id"], "🔍")
    await bob.react(room, clicked["event_id"], "🚀")
    await alice.redact(room, await alice.react(room, withdrawn["event_id"], "🔍"))
    await chatter(alice, room)
    await bridge.start()
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    await hear_from(alice, room, bridge.user_id())
    found = {each["event_id"]: each["selection"] for each in bridge.journal.questions()}
    assert found[clicked["event_id"]]["source_event_id"] == click
    assert found[withdrawn["event_id"]] is None
    assert any("gap_not_filled" in line for line in bridge.log)
    await alice.react(room, withdrawn["event_id"], "🚀")
    await alice.wait_for(room, is_message("You chose Fast and automated."))


async def test_click_in_a_gap_comes_before_a_number_that_was_typed_after_it(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(settings=MENTION, homeserver=proxy.url)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await asked(alice, bridge, room)
    assert await bridge.stop() == 0
    proxy.rule(refuse_with(403, "M_FORBIDDEN"), "GET", "/messages$")
    click = await alice.react(room, question["event_id"], "🔍")
    await chatter(alice, room)
    await alice.send_text(room, "1", thread=root_of(question))
    await bridge.start()
    await alice.wait_for(room, is_message("already answered"))
    [selection] = [each["selection"] for each in bridge.journal.questions()]
    assert selection["source_event_id"] == click


async def test_history_that_cannot_be_had_now_is_waited_for(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(settings=MENTION, homeserver=proxy.url)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await asked(alice, bridge, room)
    assert await bridge.stop() == 0
    failing = proxy.rule(refuse_with(502, "M_UNKNOWN"), "GET", "/messages$")
    number = await alice.send_text(room, "2", thread=root_of(question))
    await chatter(alice, room)
    await bridge.launch()
    await wait_until(lambda: failing.done >= 2)
    proxy.remove(failing)
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    assert bridge.turns()[-1]["selection"]["source_event_id"] == number


async def test_what_was_said_before_the_invitation_starts_no_turn_however_much_came_after_it(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge(settings=MENTION)
    room = await alice.create_room()
    account = bridge.user_id()
    await alice.send_text(room, "before the invitation", mentions=[account])
    await alice.invite(room, account)
    wanted = await alice.send_text(room, "ask me", mentions=[account])
    await chatter(alice, room)
    await bridge.start()
    await alice.wait_for(room, is_message("What approach"))
    await hear_from(alice, room, account)
    assert bridge.turns()[0]["event_id"] == wanted
    assert len(bridge.turns()) == 2


async def test_question_of_another_agent_is_answered_in_the_gap_of_both(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice = await new_person("Alice")
    bridge = await new_bridge("assistant", "helper", settings={**MENTION, "helper": {"respond": "mention"}})
    bridge.script({"ask": block("Which one?", "First", "Second")}, "helper")
    await bridge.start()
    room = await room_with(alice, bridge.user_id(), bridge.user_id("helper"))
    question = await ask(alice, room, "ask", mentions=[bridge.user_id("helper")])
    assert await bridge.stop() == 0
    await alice.send_text(room, "2", thread=root_of(question))
    await chatter(alice, room)
    await bridge.start()
    await hear_from(alice, room, bridge.user_id(), bridge.user_id("helper"))
    assert [turn["kind"] for turn in bridge.turns("helper")] == ["message", "selection", "message"]
    assert [turn["kind"] for turn in bridge.turns("assistant")] == ["message"]


async def test_page_of_history_without_events_is_not_its_end(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    """S2"""
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(settings=MENTION, homeserver=proxy.url)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    assert await bridge.stop() == 0
    hidden = proxy.rule(hide_events, "GET", "/messages$", times=1)
    await alice.send_text(room, "in the gap", mentions=[bridge.user_id()])
    await chatter(alice, room)
    await bridge.start()
    await alice.wait_for(room, is_message("You said: in the gap"))
    assert hidden.done == 1


async def hide_events(request: Request, forward: Next) -> web.StreamResponse:
    """Gives a page of no events that goes on where this one began, as where all of its events are hidden."""
    await forward()
    start = URL(request.target, encoded=True).query["from"]
    return web.json_response({"chunk": [], "start": start, "end": start})
