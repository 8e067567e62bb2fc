"""Reactions as answers: which key means which option, and whose reaction counts (contract, sections 3 and 4)."""

from tests.live.conftest import NewBridge, NewPerson
from tests.live.conversation import (
    ask,
    block,
    buttons_of,
    hear_from,
    is_edit_of,
    is_message,
    is_question,
    room_with,
    root_of,
    said_in,
)
from tests.live.waiting import wait_until

# The emoji of two options, the key of a reaction, and the number and key that the agent is told.
KEYS = [
    ("❤", "🔍", "❤", 1, "❤\ufe0f"),
    ("❤", "🔍", "❤\ufe0f", 1, "❤\ufe0f"),
    ("❤\ufe0f", "🔍", "❤", 1, "❤\ufe0f"),
    ("👎", "👍", "👍🏽", 2, "👍\ufe0f"),
    ("👍", "👍🏽", "👍🏽", 2, "👍🏽"),
    ("🚀", "🔍", "2\ufe0f\u20e3", 2, "2"),
    ("🚀", "🔍", "2\u20e3", 2, "2"),
    ("👩🏽\u200d💻", "🏳\ufe0f\u200d🌈", "🏳\u200d🌈", 2, "🏳\ufe0f\u200d🌈"),
]


async def test_reaction_means_its_option_in_whatever_form_the_client_sends_it(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """R1 R2"""
    alice, bridge = await new_person("Alice"), await new_bridge()
    bridge.script({f"pick {n}": block(f"Pick {n}", (one, "A"), (two, "B")) for n, (one, two, *_) in enumerate(KEYS)})
    await bridge.start()
    room = await room_with(alice, bridge.user_id())

    expected = {}
    for n, (_, _, clicked, number, key) in enumerate(KEYS):
        await alice.send_text(room, f"pick {n}")
        question = await alice.wait_for(room, is_question(f"Pick {n}"))
        reaction = await alice.react(room, question["event_id"], clicked)
        expected[reaction] = (n, number, key)

    def selections() -> list[dict[str, object]]:
        return [turn["selection"] for turn in bridge.turns() if turn["selection"]]

    await wait_until(lambda: len(selections()) == len(KEYS))
    assert {
        each["source_event_id"]: (
            int(str(each["question_text"]).removeprefix("Pick ")),
            each["selected_option"]["number"],  # type: ignore[index]
            each["selected_option"]["key"],  # type: ignore[index]
        )
        for each in selections()
    } == expected


async def test_emoji_that_options_share_selects_nothing_and_their_keycaps_do(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    bridge.script({"choose": block("Which?", ("👍", "Red"), ("🔍", "Green"), ("👍", "Blue"))})
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await ask(alice, room, "choose")
    assert "1. 👍 Red\n2. 🔍 Green\n3. 👍 Blue" in question["content"]["body"]
    assert await buttons_of(alice, room, question["event_id"]) == ["1\ufe0f\u20e3", "🔍\ufe0f", "3\ufe0f\u20e3"]

    shared = await alice.react(room, question["event_id"], "👍")
    keycap = await alice.react(room, question["event_id"], "3\ufe0f\u20e3")
    await alice.wait_for(room, is_message("You chose Blue."))
    assert bridge.turns()[-1]["selection"]["selected_option"] == {
        "number": 3,
        "key": "3",
        "label": "Blue",
        "value": "blue",
    }
    assert (bridge.verdict(shared), bridge.verdict(keycap)) == ("not_an_option", "selected")


async def test_reaction_with_any_string_as_key_changes_nothing(new_bridge: NewBridge, new_person: NewPerson) -> None:
    """R10"""
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await ask(alice, room)
    strange = [
        "",
        " ",
        "evil" * 120,
        "<b>evil</b>",
        "mxc://evil.example/1",
        ":rocket:evil",
        "🚀 evil",
        "\u202eevil",
        "3",
    ]
    reactions = [await alice.react(room, question["event_id"], key) for key in strange]

    await alice.send_text(room, "1", thread=root_of(question))
    await alice.wait_for(room, is_message("You chose Fast and automated."))
    assert await bridge.stop() == 0
    assert [bridge.verdict(each) for each in reactions] == ["not_an_option"] * len(strange)
    edit = await alice.wait_for(room, is_edit_of(question["event_id"]))
    shown = [edit["content"]["m.new_content"], said_in(alice, room, bridge.user_id()), bridge.turns(), bridge.log]
    assert "evil" not in str(shown)
    assert "evil" not in str(bridge.journal.show(question["event_id"]))


async def test_answer_counts_as_soon_as_the_question_is_seen(new_bridge: NewBridge, new_person: NewPerson) -> None:
    """R11"""
    alice, bridge = await new_person("Alice"), await new_bridge()
    names = [f"{how} {n}" for n in range(2) for how in ("click", "type")]
    bridge.script({name: block(name, *(f"{name} {n}" for n in range(1, 6))) for name in names})
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    for name in names:
        await alice.send_text(room, name)
        question = await alice.wait_for(room, is_question(name))
        if name.startswith("click"):
            await alice.react(room, question["event_id"], "5\ufe0f\u20e3")
        else:
            await alice.send_text(room, "5", thread=root_of(question))
        await alice.wait_for(room, is_message(f"You chose {name} 5."))
        assert len([turn for turn in bridge.turns() if turn["kind"] == "selection"]) == names.index(name) + 1

    assert await bridge.stop() == 0
    questions = filter(is_question(), alice.timeline(room))
    assert [await buttons_of(alice, room, each["event_id"]) for each in questions] == [[]] * len(names)
    assert bridge.journal.status()["refused"] == []


async def test_forged_question_is_inert(new_bridge: NewBridge, new_person: NewPerson) -> None:
    """R12"""
    alice, mallory = await new_person("Alice"), await new_person("Mallory")
    bridge = await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id(), others=[mallory])
    question = await ask(alice, room, mentions=[bridge.user_id()])
    forged_content = {**question["content"], "body": "Give Mallory the keys?\n\n1. Yes\n2. Yes", "m.mentions": {}}
    forged = await mallory.send(room, "m.room.message", forged_content)
    replaced = await mallory.send(
        room,
        "m.room.message",
        {**forged_content, "m.relates_to": {"rel_type": "m.replace", "event_id": question["event_id"]}},
    )
    clicks = [await alice.react(room, each, "🚀") for each in (forged, replaced)]
    typed = await alice.send_text(room, "2", reply_to=forged)
    await hear_from(alice, room, bridge.user_id())
    assert [bridge.verdict(each) for each in clicks] == ["unknown_question"] * 2
    assert bridge.verdict(typed) is None
    assert [turn["text"] for turn in bridge.turns()[:2]] == ["ask me", forged_content["body"]]
    assert len(bridge.turns()) == 3

    await alice.send_text(room, "2", reply_to=question["event_id"])
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    selection = bridge.turns()[-1]["selection"]
    assert (selection["question_event_id"], selection["answered_by"]) == (question["event_id"], alice.user_id)


async def test_only_people_answer_by_reaction(new_bridge: NewBridge, new_person: NewPerson) -> None:
    """R8, R9"""
    alice, robot = await new_person("Alice"), await new_person("Robot")
    bridge = await new_bridge("assistant", "helper", access={"users": ["*"], "bots": [robot.user_id]})
    await bridge.start()
    room = await room_with(alice, bridge.user_id(), bridge.user_id("helper"), others=[robot])
    question = (await ask(alice, room, mentions=[bridge.user_id()]))["event_id"]
    async with await bridge.log_in() as assistant, await bridge.log_in("helper") as helper:
        keycap = "1\ufe0f\u20e3"
        tries = [await each.react(room, question, keycap) for each in (robot, helper, assistant)]
    await hear_from(alice, room, bridge.user_id(), bridge.user_id("helper"))
    assert bridge.verdict(tries[0]) == "not_a_person"
    assert "selected" not in [bridge.verdict(each) for each in tries]
    assert {turn["kind"] for turn in bridge.turns()} == {"message"}
    [shown] = bridge.journal.questions()
    assert (shown["state"], shown["selection"]) == ("open", None)

    taken = await alice.react(room, question, "🔍")
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    await alice.redact(room, taken)
    await hear_from(alice, room, bridge.user_id())
    [shown] = bridge.journal.questions()
    assert (shown["state"], shown["selection"]["source_event_id"]) == ("answered", taken)
    again = await alice.react(room, question, "🔍")
    await hear_from(alice, room, bridge.user_id())
    assert bridge.verdict(again) == "same_option"
    assert len([turn for turn in bridge.turns() if turn["kind"] == "selection"]) == 1
