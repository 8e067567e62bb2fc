"""Typed answers: numbers and labels, and which question they mean (contract, section 4)."""

from tests.live.bridge import Bridge
from tests.live.conftest import NewBridge, NewPerson
from tests.live.conversation import ask, block, hear_from, is_message, is_question, room_with, root_of, said_in
from tests.live.person import Event, Person

FIRST = block("First?", ("🍎", "Apple"), ("🍐", "Pear"))
SECOND = block("Second?", ("🚗", "Car"), ("🚲", "Bike"))


def answers(bridge: Bridge, agent: str | None = None) -> list[tuple[str, str]]:
    """The selections that agents got: question and label."""
    taken = [turn["selection"] for turn in bridge.turns(agent) if turn["selection"]]
    return [(each["question_text"], each["selected_option"]["label"]) for each in taken]


async def ask_both(alice: Person, room: str) -> tuple[Event, Event]:
    """Two questions, open side by side in one thread."""
    first = await ask(alice, room, "first")
    return first, await ask(alice, room, "second", thread=root_of(first))


async def test_label_in_the_thread_answers_and_other_words_do_not(new_bridge: NewBridge, new_person: NewPerson) -> None:
    """T4"""
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    other_thread = await alice.send_text(room, "hello")
    await alice.wait_for(room, is_message("You said: hello"))
    question = await ask(alice, room)
    thread = root_of(question)
    await alice.send_text(room, "1", thread=other_thread)
    await alice.wait_for(room, is_message("You said: 1"))
    words = ["wait, explain first", "10", "3", "2 apples", "v2", "22", "Careful"]
    for text in words:
        await alice.send_text(room, text, thread=thread)
    await alice.send_text(room, "careful and MANUAL")
    await alice.wait_for(room, is_message("You said: careful and MANUAL"))
    await alice.wait_for(room, is_message("You said: Careful"))
    assert [turn["text"] for turn in bridge.turns() if turn["thread_id"] == thread] == ["ask me", *words]
    assert [each["state"] for each in bridge.journal.questions()] == ["open"]

    typed = await alice.send_text(room, " careful and MANUAL ", thread=thread)
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    selection = bridge.turns()[-1]["selection"]
    assert selection["selected_option"] == {"number": 2, "key": "2", "label": "Careful and manual", "value": "careful"}
    assert (selection["source_event_id"], selection["older"]) == (typed, True)


async def test_number_in_a_thread_means_its_newest_open_question_and_a_real_reply_means_its_target(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """T1 T2 T5"""
    alice, bridge = await new_person("Alice"), await new_bridge()
    bridge.script({"first": FIRST, "second": SECOND})
    await bridge.start()
    room = await room_with(alice, bridge.user_id())

    # A fallback is no reply, whatever it points at: the newest question is meant.
    first, _ = await ask_both(alice, room)
    await alice.send_text(room, "２", thread=root_of(first), reply_to=first["event_id"], falling_back=True)
    await alice.wait_for(room, is_message("You chose Bike."))
    assert answers(bridge) == [("Second?", "Bike")]
    # The agent has spoken since, so that a number now goes to the question that is still open.
    await alice.send_text(room, "option 1", thread=root_of(first))
    await alice.wait_for(room, is_message("You chose Apple."))
    assert answers(bridge)[1:] == [("First?", "Apple")]

    # A real reply in the thread, and one by a client without threads, mean the question that they reply to; one to
    # anything else is an ordinary message.
    first, second = await ask_both(alice, room)
    await alice.send_text(room, "1", thread=root_of(first), reply_to=root_of(first))
    await alice.wait_for(room, is_message("You said: 1"))
    assert [each["state"] for each in bridge.journal.questions()[:2]] == ["open", "open"]
    await alice.send_text(room, "2", thread=root_of(first), reply_to=first["event_id"])
    await alice.wait_for(room, is_message("You chose Pear."))
    fallback = f"> <{bridge.user_id()}> Second?\n> 1. 🚗 Car\n\n1"
    await alice.send_text(room, fallback, reply_to=second["event_id"])
    await alice.wait_for(room, is_message("You chose Car."))
    assert answers(bridge)[2:] == [("First?", "Pear"), ("Second?", "Car")]
    assert len(answers(bridge)) == 4


async def test_number_without_any_relation_answers_the_only_question_of_a_room_with_one_person(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    bridge.script({"first": FIRST, "second": SECOND})
    await bridge.start()
    room = await room_with(alice, bridge.user_id())

    await ask(alice, room, "first")
    await alice.send_text(room, "2")
    chosen = await alice.wait_for(room, is_message("You chose Pear."))
    assert chosen["content"]["m.relates_to"]["rel_type"] == "m.thread"

    # Two open questions: neither is meant.
    first = await ask(alice, room, "first")
    second = await ask(alice, room, "second")
    await alice.send_text(room, "1")
    await alice.wait_for(room, is_message("You said: 1"))
    assert len(answers(bridge)) == 1

    # One is left, but the agent has said something newer.
    await alice.react(room, first["event_id"], "🍎")
    await alice.wait_for(room, is_message("You chose Apple."))
    await alice.send_text(room, "2")
    await alice.wait_for(room, is_message("You said: 2"))
    assert len(answers(bridge)) == 2
    await alice.send_text(room, "2", thread=root_of(second))
    await alice.wait_for(room, is_message("You chose Bike."))


async def test_number_without_any_relation_is_the_requesters_alone_among_several_people(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bob = await new_person("Alice"), await new_person("Bob")
    bridge = await new_bridge("assistant", settings={"assistant": {"respond": "always"}})
    await bridge.start()
    room = await room_with(alice, bridge.user_id(), others=[bob])
    question = await ask(alice, room)
    other = await bob.send_text(room, "1")
    await alice.wait_for(room, is_message("You said: 1"))
    assert bridge.verdict(other) is None
    await alice.react(room, question["event_id"], "🚀")
    await alice.wait_for(room, is_message("You chose Fast and automated."))

    question = await ask(alice, room)
    typed = await alice.send_text(room, "2")
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    assert bridge.turns()[-1]["selection"]["question_event_id"] == question["event_id"]
    assert bridge.verdict(typed) == "selected"


async def test_number_between_an_answer_and_the_agents_next_word_is_late_and_no_message(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    bridge.script({"chose Fast and automated": {"waits_for": "gate"}})
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await ask(alice, room)
    thread = root_of(question)
    await alice.react(room, question["event_id"], "🚀")
    same = await alice.send_text(room, "1", thread=thread)
    other = await alice.send_text(room, "2", thread=thread)
    outside = await alice.send_text(room, "2")
    await alice.wait_for(room, is_message("already answered"))
    bridge.allow("gate")
    reply = (await alice.wait_for(room, is_message("You chose Fast and automated.")))["event_id"]
    message = await alice.send_text(room, "2", thread=thread)
    await alice.wait_for(room, is_message("You said: 2"))
    # The buttons stay until the agent has replied.
    redaction = await alice.wait_for(room, lambda event: event["type"] == "m.room.redaction")
    assert redaction == await alice.wait_for(room, lambda event: event["type"] == redaction["type"], after=reply)
    verdicts = [bridge.verdict(each) for each in (same, other, outside, message)]
    assert verdicts == ["same_option", "already_answered", "already_answered", None]
    assert [turn["event_id"] for turn in bridge.turns()[2:]] == [message]


async def test_edit_into_a_number_answers_nothing_and_starts_no_turn(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """S4"""
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await ask(alice, room)
    hello = await alice.send_text(room, "hello", thread=root_of(question))
    await alice.wait_for(room, is_message("You said: hello"))
    edits = [await alice.edit(room, hello, "2"), await alice.edit(room, root_of(question), "ask me twice")]
    await hear_from(alice, room, bridge.user_id())
    assert [bridge.verdict(each) for each in edits] == ["edited", None]
    assert len(bridge.turns()) == 3
    assert len(said_in(alice, room, bridge.user_id())) == 3
    assert [each["state"] for each in bridge.journal.questions()] == ["open"]
    await alice.wait_for(room, is_question())


async def test_numbers_as_keyboards_write_them_answer_and_what_only_looks_like_one_does_not(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """T3"""
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    for number, typed in enumerate(("２", "2️⃣", " 2 ")):
        question = await ask(alice, room, f"ask {number}")
        taken = await alice.send_text(room, typed, thread=root_of(question))
        await alice.wait_for(room, is_message("You chose Careful and manual."), after=taken)
        assert bridge.verdict(taken) == "selected"
    question = await ask(alice, room, "ask for the last time")
    for words in ("2 apples", "v2", "22"):
        await alice.send_text(room, words, thread=root_of(question))
        await alice.wait_for(room, is_message(f"You said: {words}"))
    assert bridge.journal.questions()[0]["state"] == "open"
