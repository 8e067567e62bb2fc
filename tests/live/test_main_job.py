"""The main job, live: hello, question, buttons, an answer, the selection, the reply."""

from tests.live.conftest import NewBridge, NewPerson
from tests.live.conversation import ask, buttons_of, is_edit_of, is_message

QUESTION = """Before I start:

What approach would you prefer?

1. 🚀 Fast and automated
2. 🔍 Careful and manual

React with an emoji or type the number to respond."""


async def test_click_reaches_the_agent_as_a_selection_and_its_reply_comes_back(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice = await new_person("Alice")
    bridge = await new_bridge()
    await bridge.start()
    room = await alice.create_room(invite=[bridge.user_id()])

    question = await ask(alice, room)
    hello = question["content"]["m.relates_to"]["event_id"]
    question_id = question["content"]["dev.mindbridge.question"]["question_id"]
    assert question["content"]["body"] == QUESTION
    assert question["content"]["m.mentions"] == {}
    assert question["content"]["m.relates_to"] == {
        "rel_type": "m.thread",
        "event_id": hello,
        "is_falling_back": True,
        "m.in_reply_to": {"event_id": hello},
    }
    assert await buttons_of(alice, room, question["event_id"]) == ["🚀", "🔍\ufe0f"]

    click = await alice.react(room, question["event_id"], "🔍")
    reply = await alice.wait_for(room, is_message("You chose Careful and manual."))
    assert reply["content"]["m.relates_to"]["event_id"] == hello
    message, selection = bridge.turns()
    assert (message["kind"], message["text"], message["selection"]) == ("message", "ask me", None)
    taken = selection["selection"]
    assert taken == {
        "question_id": question_id,
        "question_event_id": question["event_id"],
        "thread_id": hello,
        "question_text": "What approach would you prefer?",
        "selected_option": {"number": 2, "key": "🔍\ufe0f", "label": "Careful and manual", "value": "careful"},
        "source_event_id": click,
        "answered_by": alice.user_id,
        "revision": 1,
        "asked_at": taken["asked_at"],
        "answered_at": taken["answered_at"],
        "older": False,
    }
    edit = await alice.wait_for(room, is_edit_of(question["event_id"]))
    closing_line = edit["content"]["body"].removeprefix("* ")
    assert closing_line.startswith("✔ 2. 🔍 Careful and manual · Alice · ")
    assert edit["content"]["m.new_content"]["body"] == QUESTION.replace(
        "React with an emoji or type the number to respond.", closing_line
    )
    assert edit["content"]["m.new_content"]["dev.mindbridge.question"]["state"] == "answered"

    assert await bridge.stop() == 0
    assert await buttons_of(alice, room, question["event_id"]) == []


async def test_number_typed_in_the_thread_reaches_the_agent_as_a_selection(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice = await new_person("Alice")
    bridge = await new_bridge()
    await bridge.start()
    room = await alice.create_room(invite=[bridge.user_id()])
    question = await ask(alice, room)

    typed = await alice.send_text(room, "1", thread=question["content"]["m.relates_to"]["event_id"])
    await alice.wait_for(room, is_message("You chose Fast and automated."))
    selection = bridge.turns()[-1]["selection"]
    assert selection["selected_option"] == {"number": 1, "key": "1", "label": "Fast and automated", "value": "fast"}
    assert selection["source_event_id"] == typed
    assert len(bridge.turns()) == 2
    assert bridge.verdict(typed) == "selected"
