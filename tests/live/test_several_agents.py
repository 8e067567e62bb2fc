"""Several agents in one bridge: who responds to what, and whose question an answer is for."""

import asyncio
from typing import Any

from tests.live.bridge import Bridge
from tests.live.conftest import NewBridge, NewPerson
from tests.live.conversation import (
    ask,
    block,
    hear_from,
    is_message,
    is_notice,
    is_question,
    room_with,
    root_of,
    said_in,
)

AGENTS = ("assistant", "helper")


def accounts(bridge: Bridge) -> list[str]:
    return [bridge.user_id(agent) for agent in AGENTS]


def heard(bridge: Bridge) -> dict[str, list[str]]:
    """What each agent was told, answers as `chose LABEL`; without what `hear_from` says."""
    return {
        agent: [
            f"chose {turn['selection']['selected_option']['label']}" if turn["selection"] else turn["text"]
            for turn in bridge.turns(agent)
            if not turn["text"].startswith("Still there?")
        ]
        for agent in AGENTS
    }


async def test_agents_with_respond_auto_answer_mentions_their_threads_and_whoever_is_alone_with_them(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bob = await new_person("Alice"), await new_person("Bob")
    bridge = await new_bridge(*AGENTS)
    await bridge.start()
    assistant, helper = accounts(bridge)
    room = await room_with(alice, assistant, helper)
    both = await room_with(alice, assistant, others=[bob])

    await alice.send_text(room, "nobody in particular")
    await alice.send_text(both, "nobody either")
    thread = await alice.send_text(room, "assistant by id", mentions=[assistant])
    await alice.send_text(room, f"helper, {helper}: by its name", mentions=None)
    pill: dict[str, Any] = {
        "format": "org.matrix.custom.html",
        "formatted_body": f'<a href="https://matrix.to/#/{helper}">Helper</a>!',
    }
    await alice.send_text(room, "helper by its pill", mentions=None, **pill)
    await alice.send_text(room, f"{helper} is only spoken of", mentions=[])
    await hear_from(alice, room, assistant, helper)
    assert heard(bridge) == {
        "assistant": ["assistant by id"],
        "helper": [f"helper, {helper}: by its name", "helper by its pill"],
    }

    # In a thread: those who took part, unless another is mentioned.
    await alice.send_text(room, "further", thread=thread)
    await alice.send_text(room, "what does the helper say?", thread=thread, mentions=[helper])
    await alice.wait_for(room, is_message("You said: what does the helper say?", helper))
    await alice.send_text(room, "both of you", thread=thread)
    await hear_from(alice, room, assistant, helper)
    await hear_from(alice, both, assistant)
    assert heard(bridge)["assistant"][1:] == ["further", "both of you"]
    assert heard(bridge)["helper"][2:] == ["what does the helper say?", "both of you"]

    # Alone with the agent once everybody else has left.
    await bob.leave(both)
    await alice.send_text(both, "we are alone")
    await alice.wait_for(both, is_message("You said: we are alone", assistant))


async def test_agents_that_always_respond_never_respond_to_each_other(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """S5 T5"""
    alice = await new_person("Alice")
    bridge = await new_bridge(
        *AGENTS,
        "quiet",
        settings={**{agent: {"respond": "always"} for agent in AGENTS}, "quiet": {"respond": "mention"}},
    )
    assistant, helper = accounts(bridge)
    quiet = bridge.user_id("quiet")
    for agent, other in (("assistant", helper), ("helper", assistant)):
        asks = block(f"{agent}: shall {other} go on?", "Yes", "No")
        bridge.script({"ask both": f"{other} https://matrix.to/#/{other}\n\n{asks}"}, agent)
    await bridge.start()
    room = await room_with(alice, assistant, helper, quiet)
    direct = await room_with(alice, quiet)
    root = await alice.send_text(room, "ask both")
    await alice.send_text(direct, "even alone with it")
    await alice.wait_for(room, is_question(sender=assistant))
    await alice.wait_for(room, is_question(sender=helper))
    await hear_from(alice, room, assistant, helper)
    await hear_from(alice, direct, quiet)
    assert heard(bridge) == {agent: ["ask both"] for agent in AGENTS}
    assert len(bridge.turns("quiet")) == 1
    assert all(len(said_in(alice, room, each)) == 2 for each in (assistant, helper))

    # One number is one answer, to the question that stands last, and no message to the other agent.
    first, last = [each["sender"] for each in alice.timeline(room) if is_question()(each)]
    await alice.send_text(room, "1", thread=root)
    await alice.wait_for(room, is_message("You chose Yes.", last))
    await alice.send_text(room, "2", thread=root)
    await alice.wait_for(room, is_message("You chose No.", first))
    await hear_from(alice, room, assistant, helper)
    chosen = {first: "chose No", last: "chose Yes"}
    assert heard(bridge) == {agent: ["ask both", chosen[bridge.user_id(agent)]] for agent in AGENTS}
    assert [each["state"] for each in bridge.journal.questions()] == ["answered", "answered"]


async def test_number_in_a_thread_of_two_agents_answers_the_newest_question_and_only_its_agent_is_told(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice = await new_person("Alice")
    bridge = await new_bridge(*AGENTS)
    chosen = {"assistant": "Coffee", "helper": "Blue"}
    bridge.script({"assistant asks": block("Assistant asks", "Tea", "Coffee")}, "assistant")
    bridge.script({"helper asks": block("Helper asks", "Red", "Blue")}, "helper")
    await bridge.start()
    room = await room_with(alice, *accounts(bridge))
    for first, last in (AGENTS, AGENTS[::-1]):
        question = await ask(alice, room, f"{first} asks", mentions=[bridge.user_id(first)])
        thread = root_of(question)
        await ask(alice, room, f"{last} asks", mentions=[bridge.user_id(last)], thread=thread)
        for agent in (last, first):
            typed = await alice.send_text(room, "2", thread=thread)
            account = bridge.user_id(agent)
            await alice.wait_for(room, is_message(f"You chose {chosen[agent]}.", account), after=typed)
    await hear_from(alice, room, *accounts(bridge))
    assert heard(bridge) == {agent: [f"{agent} asks", f"chose {chosen[agent]}"] * 2 for agent in AGENTS}


async def test_of_two_answers_at_the_same_moment_one_is_taken_and_the_other_is_told_so(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bob = await new_person("Alice"), await new_person("Bob")
    bridge = await new_bridge(*AGENTS)
    await bridge.start()
    assistant, helper = accounts(bridge)
    room = await room_with(alice, assistant, helper, others=[bob])
    question = (await ask(alice, room, mentions=[assistant]))["event_id"]
    clicks = await asyncio.gather(alice.react(room, question, "🚀"), bob.react(room, question, "🔍"))
    await hear_from(alice, room, assistant, helper)
    assert sorted(str(bridge.verdict(each)) for each in clicks) == ["already_answered", "selected"]
    [taken] = [turn["selection"] for turn in bridge.turns() if turn["selection"]]
    assert bridge.verdict(taken["source_event_id"]) == "selected"
    assert heard(bridge)["helper"] == []
    [notice] = filter(is_notice(assistant), alice.timeline(room))
    late = bob if taken["answered_by"] == alice.user_id else alice
    assert notice["content"]["m.mentions"] == {"user_ids": [late.user_id]}
