"""The whole job in encrypted rooms, with a real encrypted client as the person (contract, sections 3, 4 and 7)."""

import shutil
import signal
from collections.abc import Callable

import pytest

from mindbridge.steps import Step
from tests.live.bridge import Bridge
from tests.live.conftest import NewBridge, NewProxy
from tests.live.conversation import block
from tests.live.js_people import JsPeople
from tests.live.js_person import JsPerson, Shield, Shown
from tests.live.killed_bridge import PROGRAM, Point, kill_at, spare
from tests.live.proxy import SEND, forget_transactions, lose
from tests.live.waiting import wait_until

Wanted = Callable[[Shown], bool]


def says(text: str, sender: str) -> Wanted:
    """A message of the sender's that can be read and contains the text."""
    return lambda event: event.sender == sender and event.text is not None and text in event.text


def has_joined(account: str) -> Wanted:
    return lambda event: event.sender == account and event.content.get("membership") == "join"


def is_whole_question(event: Shown) -> bool:
    """A question with all its buttons."""
    asked = event.content.get("dev.mindbridge.question")
    return asked is not None and len(event.reactions) == len(asked["options"])


def is_closed(question: Shown) -> Wanted:
    """The question, answered and without buttons of the agent's."""

    def wanted(event: Shown) -> bool:
        buttons = [who for who in event.reactions.values() if question.sender in who]
        return event.event_id == question.event_id and "✔" in (event.text or "") and not buttons

    return wanted


async def room_of(alice: JsPerson, bridge: Bridge, *, encrypted: bool = True) -> str:
    room = await alice.create_room(invite=[bridge.user_id()], encrypted=encrypted)
    await alice.wait_for(room, has_joined(bridge.user_id()))
    return room


async def ask(alice: JsPerson, room: str) -> Shown:
    seen = {event.event_id for event in await alice.timeline(room)}
    await alice.send_text(room, "ask me")
    return await alice.wait_for(room, lambda event: event.event_id not in seen and is_whole_question(event))


async def assert_all_is_read_and_nothing_is_doubled(alice: JsPerson, room: str, bridge: Bridge) -> None:
    timeline = await alice.timeline(room)
    assert [event.event_id for event in timeline if event.failure] == []
    said = [event for event in timeline if event.sender == bridge.user_id() and event.type == "m.room.message"]
    assert all(event.encrypted for event in said)
    texts = [(event.thread, event.content["body"]) for event in said]
    assert len(set(texts)) == len(texts)


async def test_question_is_answered_by_reaction(new_bridge: NewBridge, new_js_person: JsPeople) -> None:
    alice, bridge = await new_js_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_of(alice, bridge)
    question = await ask(alice, room)
    assert question.encrypted
    await alice.react(room, question.event_id, "🔍")
    reply = await alice.wait_for(room, says("You chose Careful and manual.", bridge.user_id()))
    assert (reply.encrypted, reply.thread) == (True, question.thread)
    closed = await alice.wait_for(room, is_closed(question))
    assert closed.shown["dev.mindbridge.question"]["state"] == "answered"
    await assert_all_is_read_and_nothing_is_doubled(alice, room, bridge)


async def test_question_is_answered_by_number_in_its_thread(new_bridge: NewBridge, new_js_person: JsPeople) -> None:
    alice, bridge = await new_js_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_of(alice, bridge)
    question = await ask(alice, room)
    number = await alice.send_text(room, "1", thread=question.thread)
    await alice.wait_for(room, says("You chose Fast and automated.", bridge.user_id()))
    await alice.wait_for(room, is_closed(question))
    assert bridge.turns()[-1]["selection"]["source_event_id"] == number
    await assert_all_is_read_and_nothing_is_doubled(alice, room, bridge)


async def test_encryption_that_is_switched_on_in_mid_conversation(
    new_bridge: NewBridge, new_js_person: JsPeople
) -> None:
    """A3"""
    alice, bridge = await new_js_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_of(alice, bridge, encrypted=False)
    before = await ask(alice, room)
    assert not before.encrypted
    await alice.enable_encryption(room)
    after = await ask(alice, room)
    assert after.encrypted
    await alice.react(room, before.event_id, "🚀")
    closed = await alice.wait_for(room, is_closed(before))
    edit = await alice.wait_for_event(room, str(closed.edited_by))
    assert edit.encrypted
    await alice.react(room, after.event_id, "🔍")
    await alice.wait_for(room, is_closed(after))
    assert [turn["kind"] for turn in bridge.turns()] == ["message", "message", "selection", "selection"]


async def test_message_whose_key_comes_late_is_handled_once_and_without_complaint(
    new_bridge: NewBridge, new_js_person: JsPeople
) -> None:
    """A2"""
    alice, bridge = await new_js_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_of(alice, bridge)
    question = await ask(alice, room)
    await alice.hold_keys()
    await alice.change_key(room)
    number = await alice.send_text(room, "2", thread=question.thread)
    await wait_until(lambda: bridge.unread() == [number])
    await alice.release_keys()
    await alice.wait_for(room, says("You chose Careful and manual.", bridge.user_id()))
    assert bridge.unread() == []
    assert [turn["kind"] for turn in bridge.turns()] == ["message", "selection"]
    await assert_all_is_read_and_nothing_is_doubled(alice, room, bridge)


async def test_message_that_was_unread_at_a_crash_is_read_when_its_key_comes_meanwhile(
    new_bridge: NewBridge, new_js_person: JsPeople
) -> None:
    """A2"""
    alice, bridge = await new_js_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_of(alice, bridge)
    question = await ask(alice, room)
    await alice.hold_keys()
    await alice.change_key(room)
    number = await alice.send_text(room, "2", thread=question.thread)
    await wait_until(lambda: bridge.unread() == [number])
    await bridge.stop(signal.SIGKILL)
    await alice.release_keys()
    await bridge.start()
    await alice.wait_for(room, says("You chose Careful and manual.", bridge.user_id()))
    assert [turn["kind"] for turn in bridge.turns()] == ["message", "selection"]


async def test_same_device_goes_on_after_a_stop_and_after_a_crash(
    new_bridge: NewBridge, new_js_person: JsPeople
) -> None:
    """S9"""
    alice, bridge = await new_js_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_of(alice, bridge)
    question = await ask(alice, room)
    device = bridge.device_id()
    assert await bridge.stop() == 0
    click = await alice.react(room, question.event_id, "🔍")
    await bridge.start()
    await alice.wait_for(room, is_closed(question))
    await bridge.stop(signal.SIGKILL)
    hello = await alice.send_text(room, "hello")
    await bridge.start()
    await alice.wait_for(room, says("You said: hello", bridge.user_id()))
    assert bridge.device_id() == device
    assert [turn["event_id"] for turn in bridge.turns()[1:]] == [click, hello]
    await assert_all_is_read_and_nothing_is_doubled(alice, room, bridge)


async def test_what_was_sent_without_a_word_from_the_server_is_found_in_an_encrypted_room(
    new_bridge: NewBridge, new_js_person: JsPeople, new_proxy: NewProxy
) -> None:
    """S3"""
    alice, proxy = await new_js_person("Alice"), await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    await bridge.start()
    room = await room_of(alice, bridge)
    proxy.rule(forget_transactions(), "PUT", SEND)
    lost = [proxy.rule(lose, "PUT", kind, times=1) for kind in ("/send/m.room.encrypted/", "/send/m.reaction/")]
    question = await ask(alice, room)
    assert [rule.done for rule in lost] == [1, 1]
    lost_edit = proxy.rule(lose, "PUT", "/send/m.room.encrypted/", times=2)
    await alice.react(room, question.event_id, "🔍")
    await alice.wait_for(room, is_closed(question))
    assert lost_edit.done == 2
    await assert_all_is_read_and_nothing_is_doubled(alice, room, bridge)
    assert len([event for event in await alice.timeline(room) if event.content.get("dev.mindbridge.question")]) == 1


async def test_lost_keys_make_a_new_device_and_nothing_goes_out_in_the_clear(
    new_bridge: NewBridge, new_js_person: JsPeople
) -> None:
    """A4"""
    alice, bridge = await new_js_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_of(alice, bridge)
    question = await ask(alice, room)
    device = bridge.device_id()
    assert await bridge.stop() == 0
    shutil.rmtree(bridge.folder / "journal" / "keys")
    await bridge.start()
    await alice.react(room, question.event_id, "🔍")
    await alice.wait_for(room, says("You chose Careful and manual.", bridge.user_id()))
    await alice.wait_for(room, is_closed(question))
    assert bridge.device_id() != device
    assert any("keys_lost" in line for line in bridge.log)
    await ask(alice, room)
    await assert_all_is_read_and_nothing_is_doubled(alice, room, bridge)


async def test_damaged_keys_make_a_new_device(new_bridge: NewBridge, new_js_person: JsPeople) -> None:
    """A4"""
    alice, bridge = await new_js_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_of(alice, bridge)
    question = await ask(alice, room)
    device = bridge.device_id()
    assert await bridge.stop() == 0
    for path in (bridge.folder / "journal" / "keys").glob("*.db*"):
        path.write_bytes(b"no database at all" * 1000)
    await bridge.start()
    await alice.react(room, question.event_id, "🔍")
    await alice.wait_for(room, says("You chose Careful and manual.", bridge.user_id()))
    assert bridge.device_id() != device
    await assert_all_is_read_and_nothing_is_doubled(alice, room, bridge)


@pytest.mark.parametrize(
    "point",
    [
        Point(Step.ADMIT, "before"),
        Point(Step.ADMIT, "after"),
        Point(Step.SEND_MESSAGE, "before"),
        Point(Step.SEND_MESSAGE, "after"),
        Point(Step.SEND_BUTTON, "after", 2),
    ],
    ids=str,
)
async def test_bridge_killed_in_the_middle_of_an_encrypted_exchange_loses_and_doubles_nothing(
    new_bridge: NewBridge, new_js_person: JsPeople, point: Point
) -> None:
    alice, bridge = await new_js_person("Alice"), await new_bridge()
    await bridge.start(PROGRAM)
    room = await room_of(alice, bridge)
    kill_at(bridge.folder, point)
    await alice.send_text(room, "ask me")
    assert await bridge.ended() == -signal.SIGKILL
    spare(bridge.folder)
    await bridge.start(PROGRAM)
    question = await alice.wait_for(room, is_whole_question)
    kill_at(bridge.folder, point if point.step is not Step.SEND_BUTTON else Point(Step.SEND_EDIT, "after"))
    await alice.send_text(room, "2", thread=question.thread)
    assert await bridge.ended() == -signal.SIGKILL
    spare(bridge.folder)
    await bridge.start(PROGRAM)
    await alice.wait_for(room, is_closed(question))
    await alice.wait_for(room, says("You chose Careful and manual.", bridge.user_id()))
    assert [turn["kind"] for turn in bridge.turns() if turn["attempt"] == 1][-1] == "selection"
    assert len({turn["turn_id"] for turn in bridge.turns()}) == 2
    await assert_all_is_read_and_nothing_is_doubled(alice, room, bridge)


async def test_long_reply_fits_into_encrypted_events(new_bridge: NewBridge, new_js_person: JsPeople) -> None:
    """X1"""
    alice, bridge = await new_js_person("Alice"), await new_bridge()
    long = "\n\n".join(f"Paragraph {number}: " + "äöü<&> " * 40 for number in range(600))
    bridge.script({"tell me": f"{long}\n\n{block('Enough?', 'Yes', 'No')}"})
    await bridge.start()
    room = await room_of(alice, bridge)
    await alice.send_text(room, "tell me")
    question = await alice.wait_for(room, is_whole_question, seconds=60)
    await alice.react(room, question.event_id, "1️⃣")
    await alice.wait_for(room, is_closed(question))
    assert bridge.journal.status()["refused"] == []
    said = [event.text or "" for event in await alice.timeline(room) if event.sender == bridge.user_id()]
    assert sum(text.count("Paragraph ") for text in said) == 600


async def test_new_device_of_the_person_reads_what_comes_after_it(
    new_bridge: NewBridge, new_js_person: JsPeople
) -> None:
    alice, bridge = await new_js_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_of(alice, bridge)
    await ask(alice, room)
    phone = await new_js_person.another_device(alice)
    question = await ask(phone, room)
    await phone.react(room, question.event_id, "🚀")
    await phone.wait_for(room, is_closed(question))
    await alice.wait_for(room, is_closed(question))
    await alice.send_text(room, "hello")
    for device in (alice, phone):
        await device.wait_for(room, says("You said: hello", bridge.user_id()))


async def test_person_whose_client_trusts_only_signed_devices_and_the_agent_read_each_other(
    new_bridge: NewBridge, new_js_person: JsPeople
) -> None:
    alice, bridge = await new_js_person("Alice", isolation="only_signed"), await new_bridge()
    await bridge.start()
    room = await room_of(alice, bridge)
    await alice.wait_for_device(bridge.user_id(), bridge.device_id())
    question = await ask(alice, room)
    assert question.shield == Shield(colour="NONE", reason=None)
    await alice.send_text(room, "2", thread=question.thread)
    await alice.wait_for(room, is_closed(question))
    await assert_all_is_read_and_nothing_is_doubled(alice, room, bridge)
