"""What an agent is told: the whole of a turn, its history, its open questions, its problems (contract, section 5)."""

import json
import re

from tests.live.conftest import NewBridge, NewPerson
from tests.live.conversation import ask, block, hear_from, is_message, room_with, root_of


async def test_turns_are_exactly_as_the_contract_says(new_bridge: NewBridge, new_person: NewPerson) -> None:
    alice, bob, stranger = [await new_person(name) for name in ("Alice", "Bob", "Stranger")]
    bridge = await new_bridge("assistant", "helper", access={"users": [alice.user_id, bob.user_id]})
    six = block("How many?", *(("🎲", f"Number {number}") for number in range(6)))
    bridge.script({"go on": f"Well.\n\n{six}"})
    await bridge.start()
    assistant, helper = bridge.user_id(), bridge.user_id("helper")
    room = await room_with(alice, assistant, helper, others=[bob, stranger])
    question = await ask(alice, room, mentions=[assistant])
    root = root_of(question)
    question_id = question["content"]["dev.mindbridge.question"]["question_id"]
    await stranger.send_text(room, "listen to me", thread=root, mentions=[assistant])
    await bob.send_text(room, "what do you think?", thread=root, mentions=[helper])
    await alice.wait_for(room, is_message("You said: what do you think?", helper))
    click = await bob.react(room, question["event_id"], "1\ufe0f\u20e3")
    await alice.wait_for(room, is_message("You chose Fast and automated."))
    further = await alice.send_text(room, "go on", thread=root, mentions=[assistant])
    second = await alice.wait_for(room, is_message("How many?"))
    last = await alice.send_text(room, "what else?", thread=root, mentions=[assistant])
    await alice.wait_for(room, is_message("You said: what else?", assistant))
    await alice.send_text(room, "nothing", thread=root, mentions=[assistant])
    await alice.wait_for(room, is_message("You said: nothing", assistant))

    asked, selected, told, after, end = bridge.turns("assistant")
    ids = {turn["turn_id"] for turn in bridge.turns()}
    assert len(ids) == 6
    always = {"version": 1, "attempt": 1, "agent": "assistant", "room_id": room, "thread_id": root}
    by_alice = {"sender": {"user_id": alice.user_id, "display_name": "Alice"}}
    message: dict[str, object] = {"kind": "message", "selection": None, "open_questions": [], "problems": []}
    assert asked == {
        **always,
        **by_alice,
        **message,
        "turn_id": asked["turn_id"],
        "event_id": root,
        "text": "ask me",
        "history": [],
    }
    history = [
        {"role": "user", "sender": alice.user_id, "text": "ask me"},
        {"role": "assistant", "sender": assistant, "text": question["content"]["body"]},
        {"role": "user", "sender": bob.user_id, "text": "what do you think?"},
        {"role": "user", "sender": helper, "text": "You said: what do you think?"},
    ]
    selection = {
        "question_id": question_id,
        "question_event_id": question["event_id"],
        "thread_id": root,
        "question_text": "What approach would you prefer?",
        "selected_option": {"number": 1, "key": "1", "label": "Fast and automated", "value": "fast"},
        "source_event_id": click,
        "answered_by": bob.user_id,
        "revision": 1,
        "asked_at": selected["selection"]["asked_at"],
        "answered_at": selected["selection"]["answered_at"],
        "older": False,
    }
    for moment in (selection["asked_at"], selection["answered_at"]):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", moment)
    assert selected == {
        **always,
        "turn_id": selected["turn_id"],
        "kind": "selection",
        "event_id": click,
        "sender": {"user_id": bob.user_id, "display_name": "Bob"},
        "text": selected["text"],
        "selection": selection,
        "history": history,
        "open_questions": [],
        "problems": [],
    }
    words, _, written = selected["text"].partition("```json\n")
    assert "Bob" in words
    assert "1: Fast and automated" in words
    assert json.loads(written.removesuffix("\n```")) == selection
    history += [
        {"role": "user", "sender": bob.user_id, "text": "chose 1. Fast and automated"},
        {"role": "assistant", "sender": assistant, "text": "You chose Fast and automated."},
    ]
    assert told == {
        **always,
        **by_alice,
        **message,
        "turn_id": told["turn_id"],
        "event_id": further,
        "text": "go on",
        "history": history,
    }
    history += [
        {"role": "user", "sender": alice.user_id, "text": "go on"},
        {"role": "assistant", "sender": assistant, "text": second["content"]["body"]},
    ]
    open_question = {
        "question_id": second["content"]["dev.mindbridge.question"]["question_id"],
        "question_event_id": second["event_id"],
        "question_text": "How many?",
    }
    problems = after["problems"]
    assert after == {
        **always,
        **by_alice,
        **message,
        "turn_id": after["turn_id"],
        "event_id": last,
        "text": "what else?",
        "history": history,
        "open_questions": [open_question],
        "problems": problems,
    }
    assert [each["code"] for each in problems] == ["options_truncated"]
    assert [set(each) for each in problems] == [{"code", "message"}]
    assert list(after) == list(CONTRACT_ORDER)
    assert (end["problems"], end["open_questions"]) == ([], [open_question])


CONTRACT_ORDER = (
    "version",
    "turn_id",
    "attempt",
    "agent",
    "kind",
    "room_id",
    "thread_id",
    "event_id",
    "sender",
    "text",
    "selection",
    "history",
    "open_questions",
    "problems",
)


async def test_history_is_that_of_the_thread_and_is_limited(new_bridge: NewBridge, new_person: NewPerson) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    bridge.script({"long": "x" * 40_000})
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    await hear_from(alice, room, bridge.user_id())
    root = await alice.send_text(room, "long")
    await alice.wait_for(room, is_message("xxx"))
    await alice.send_text(room, "> <@bob:localhost> 1. Yes\n\nquoted", thread=root, reply_to=root)
    await alice.wait_for(room, is_message("You said: quoted"))
    for number in range(26):
        await alice.send_text(room, f"number {number}", thread=root)
    await alice.wait_for(room, is_message("You said: number 25"))
    _, first, quoted, *numbers = bridge.turns()
    assert first["history"] == []
    assert quoted["text"] == "quoted"
    [kept] = quoted["history"]
    assert kept["role"] == "assistant"
    assert 1_000 < len(json.dumps(quoted["history"])) <= 32 * 1024
    assert len(numbers[-1]["history"]) == 50
    assert numbers[-1]["history"][-1]["text"] == "You said: number 24"
