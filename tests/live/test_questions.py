"""Questions in their rooms: several, asked again, without threads, in long replies (contract, sections 3 and 4)."""

from tests.live.conftest import NewBridge, NewPerson
from tests.live.conversation import (
    ask,
    block,
    buttons_of,
    hear_from,
    is_edit_of,
    is_message,
    is_notice,
    is_question,
    room_with,
    root_of,
    said_in,
)
from tests.live.waiting import wait_until


async def test_question_asked_again_in_the_thread_supersedes_the_open_one(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    old = await ask(alice, room)
    elsewhere = await ask(alice, room)
    new = await ask(alice, room, "ask me again", thread=root_of(old))
    edit = await alice.wait_for(room, is_edit_of(old["event_id"]))
    closed = edit["content"]["m.new_content"]
    instruction = "React with an emoji or type the number to respond."
    assert edit["content"]["body"] == "* ↪ Asked again below."
    assert "formatted_body" not in edit["content"]
    assert closed["body"] == old["content"]["body"].replace(instruction, "↪ Asked again below.")
    metadata = old["content"]["dev.mindbridge.question"]
    assert closed["dev.mindbridge.question"] == {**metadata, "state": "superseded"}

    late = await alice.react(room, old["event_id"], "🚀")
    notice = await alice.wait_for(room, is_notice())
    assert notice["content"]["body"] == "Alice: this question was asked again; please answer the newer one."
    assert bridge.verdict(late) == "superseded"
    await alice.react(room, new["event_id"], "🔍")
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    assert bridge.turns()[-1]["selection"]["question_event_id"] == new["event_id"]
    # The same words in another thread are another question.
    await alice.react(room, elsewhere["event_id"], "🚀")
    await alice.wait_for(room, is_message("You chose Fast and automated."))
    assert bridge.turns()[-1]["selection"]["question_event_id"] == elsewhere["event_id"]
    assert await bridge.stop() == 0
    assert [await buttons_of(alice, room, each["event_id"]) for each in (old, new, elsewhere)] == [[], [], []]


async def test_different_questions_stay_open_side_by_side(new_bridge: NewBridge, new_person: NewPerson) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    bridge.script(
        {
            "first": block("First?", ("🍎", "Apple"), ("🍐", "Pear")),
            "second": block("Second?", ("🍎", "Red"), ("🍐", "Green")),
            "two at once": block("Live?", "Yes", "No") + "\n\n" + block("Plain?", "Maybe", "Never"),
        }
    )
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    first = await ask(alice, room, "first")
    second = await ask(alice, room, "second", thread=root_of(first))
    assert [await buttons_of(alice, room, each["event_id"]) for each in (first, second)] == [["🍎", "🍐"]] * 2
    await alice.react(room, first["event_id"], "🍐")
    await alice.wait_for(room, is_message("You chose Pear."))
    await alice.react(room, second["event_id"], "🍐")
    await alice.wait_for(room, is_message("You chose Green."))
    older = [turn["selection"]["older"] for turn in bridge.turns() if turn["selection"]]
    assert older == [True, True]

    # Of two questions in one reply the first is live and the other readable.
    live = await ask(alice, room, "two at once")
    assert live["content"]["body"] == (
        "Live?\n\n1. ❓ Yes\n2. ❓ No\n\nReact with an emoji or type the number to respond.\n\n"
        "Plain?\n\n- ❓ Maybe\n- ❓ Never"
    )
    assert await buttons_of(alice, room, live["event_id"]) == ["1\ufe0f\u20e3", "2\ufe0f\u20e3"]


async def test_agent_without_threads_talks_in_the_main_timeline(new_bridge: NewBridge, new_person: NewPerson) -> None:
    alice = await new_person("Alice")
    bridge = await new_bridge(settings={"assistant": {"threads": False}})
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await ask(alice, room)
    assert "m.relates_to" not in question["content"]
    await alice.send_text(room, "hello")
    reply = await alice.wait_for(room, is_message("You said: hello"))
    assert "m.relates_to" not in reply["content"]
    await alice.send_text(room, "Careful and manual")
    reply = await alice.wait_for(room, is_message("You chose Careful and manual."))
    assert "m.relates_to" not in reply["content"]

    # A number counts though the agent has said something newer: the main timeline is the thread.
    again = await ask(alice, room)
    await alice.send_text(room, "good evening")
    await alice.wait_for(room, is_message("You said: good evening"))
    await alice.send_text(room, "1", thread=again["event_id"])
    await alice.wait_for(room, is_message("You chose Fast and automated."))
    last = await ask(alice, room)
    await alice.send_text(room, "2")
    await alice.wait_for(room, is_message("You chose Careful and manual."), after=last["event_id"])
    turns = bridge.turns()
    assert {turn["thread_id"] for turn in turns} == {None}
    selections = [turn["selection"] for turn in turns if turn["selection"]]
    assert [(each["thread_id"], each["older"]) for each in selections] == [(None, True), (None, True), (None, False)]
    assert [entry["text"] for entry in turns[2]["history"]] == [
        "ask me",
        question["content"]["body"],
        "hello",
        "You said: hello",
    ]
    assert [each["question_event_id"] for each in turns[1]["open_questions"]] == [question["event_id"]]
    await alice.react(room, last["event_id"], "🚀")
    notice = await alice.wait_for(room, is_notice())
    assert notice["content"]["m.relates_to"] == {"m.in_reply_to": {"event_id": last["event_id"]}}


async def test_reply_over_the_event_limit_comes_in_parts_with_the_buttons_under_its_options(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """X1"""
    alice, bridge = await new_person("Alice"), await new_bridge()
    paragraphs = [f"{number}. " + "Überlänge 🚀 日本語 " * 80 for number in range(100)]
    long = "\n\n".join(paragraphs)
    bridge.script({"tell me": f"{long}\n\n{block('And now?', ('🍎', 'Go on'), ('🍐', 'Stop'))}"})
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    assert len(long.encode()) > 200_000
    question = await ask(alice, room, "tell me")
    parts = [each for each in alice.timeline(room) if is_message("", bridge.user_id())(each)]
    assert len(parts) > 4
    assert parts[-1] == question
    assert {root_of(part) for part in parts} == {root_of(question)}
    assert [is_question()(part) for part in parts] == [*[False] * (len(parts) - 1), True]
    said = " ".join(" ".join(part["content"]["body"] for part in parts).split())
    end = "And now? 1. 🍎 Go on 2. 🍐 Stop React with an emoji or type the number to respond."
    assert said == " ".join([*long.split(), end])
    assert await buttons_of(alice, room, question["event_id"]) == ["🍎", "🍐"]
    assert await buttons_of(alice, room, parts[0]["event_id"]) == []

    await alice.send_text(room, "1", thread=root_of(question))
    await alice.wait_for(room, is_message("You chose Go on."))
    edit = await alice.wait_for(room, is_edit_of(question["event_id"]))
    assert "✔ 1. 🍎 Go on · Alice" in edit["content"]["m.new_content"]["body"]
    assert bridge.journal.status()["refused"] == []


async def test_question_without_buttons_is_answered_by_number_and_one_that_was_refused_is_told_to_the_agent(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id(), power_level_content_override={"events": {"m.reaction": 50}})
    await alice.send_text(room, "ask me")
    question = await alice.wait_for(room, is_question())
    await alice.send_text(room, "1", thread=root_of(question))
    await alice.wait_for(room, is_message("You chose Fast and automated."))
    levels = await alice.state(room, "m.room.power_levels")
    muted = {**levels, "users": {**levels["users"], bridge.user_id(): -1}}
    await alice.call("PUT", "rooms", room, "state", "m.room.power_levels", json=muted)
    root = await alice.send_text(room, "ask me")
    await wait_until(lambda: bridge.journal.questions()[0]["state"] == "failed")
    await alice.call("PUT", "rooms", room, "state", "m.room.power_levels", json=levels)
    await alice.send_text(room, "what happened?", thread=root)
    await alice.wait_for(room, is_message("You said: what happened?"))
    assert [each["code"] for each in bridge.turns()[-1]["problems"]] == ["question_not_posted"]
    assert bridge.turns()[-1]["history"] == [{"role": "user", "sender": alice.user_id, "text": "ask me"}]
    refused = {each["kind"] for each in bridge.journal.status()["refused"]}
    assert refused == {"button", "message"}


async def test_nothing_that_an_agent_writes_mentions_anyone(new_bridge: NewBridge, new_person: NewPerson) -> None:
    """X2"""
    alice, bridge = await new_person("@room"), await new_bridge()
    ping = f"@room {alice.user_id} https://matrix.to/#/{alice.user_id}"
    bridge.script({"ping": f"{ping} all\n\n{block(ping, ping, 'No')}", "be silent": " \n "})
    await bridge.start()
    account = bridge.user_id()
    room = await room_with(alice, account)
    question = await ask(alice, room, "ping")
    await alice.send_text(room, "be silent")
    await alice.react(room, question["event_id"], "1\ufe0f\u20e3")
    await alice.wait_for(room, is_message("You chose @room"))
    edit = await alice.wait_for(room, is_edit_of(question["event_id"]))
    sent = [each["content"] for each in alice.timeline(room) if each["sender"] == account and "body" in each["content"]]
    assert [each["m.mentions"] for each in (*sent, edit["content"]["m.new_content"])] == [{}] * 4
    await hear_from(alice, room, account)
    assert len(said_in(alice, room, account)) == 3
