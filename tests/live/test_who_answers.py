"""Who may answer, and what those are told who could not (contract, section 4)."""

from tests.live.conftest import NewBridge, NewPerson
from tests.live.conversation import (
    ask,
    hear_from,
    is_edit_of,
    is_message,
    is_notice,
    room_with,
    root_of,
    said_in,
)


async def test_second_answer_is_told_once_what_was_taken_and_from_whom(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bob, carol = [await new_person(name) for name in ("Alice", "Bob", "Carol")]
    await bob.call("PUT", "profile", bob.user_id, "displayname", json={"displayname": "<b>Bob</b>"})
    bridge = await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id(), others=[bob, carol])
    question = await ask(alice, room, mentions=[bridge.user_id()])
    event_id = question["event_id"]
    await bob.react(room, event_id, "🔍")
    await alice.wait_for(room, is_message("You chose Careful and manual."))

    tries = [await alice.react(room, event_id, "🚀"), await alice.react(room, event_id, "1\ufe0f\u20e3")]
    tries.append(await alice.send_text(room, "1", reply_to=event_id))
    tries.append(await carol.react(room, event_id, "🔍"))
    await hear_from(alice, room, bridge.user_id())
    notices = [each for each in alice.timeline(room) if is_notice()(each)]
    assert len(notices) == 1
    content = notices[0]["content"]
    edit = await alice.wait_for(room, is_edit_of(event_id))
    assert content["body"] == f"Alice: this question was already answered. {edit['content']['body'].removeprefix('* ')}"
    assert "✔ 2. 🔍 Careful and manual · <b>Bob</b> · " in content["body"]
    assert "&lt;b&gt;Bob&lt;/b&gt;" in content["formatted_body"]
    assert content["m.mentions"] == {"user_ids": [alice.user_id]}
    assert content["m.relates_to"] == {
        "rel_type": "m.thread",
        "event_id": root_of(question),
        "is_falling_back": True,
        "m.in_reply_to": {"event_id": event_id},
    }
    assert [bridge.verdict(each) for each in tries] == [*["already_answered"] * 3, "same_option"]
    assert "&lt;b&gt;Bob&lt;/b&gt;" in edit["content"]["m.new_content"]["formatted_body"]
    assert edit["content"]["m.new_content"]["m.mentions"] == edit["content"]["m.mentions"] == {}


async def test_only_the_requester_answers_where_that_is_configured(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bob = await new_person("Alice"), await new_person("Bob")
    bridge = await new_bridge(settings={"assistant": {"respond": "always", "questions": {"answerers": "requester"}}})
    await bridge.start()
    room = await room_with(alice, bridge.user_id(), others=[bob])
    question = await ask(alice, room)
    thread = root_of(question)
    tries = [
        await bob.react(room, question["event_id"], "🚀"),
        await bob.send_text(room, "1", thread=thread),
        await bob.send_text(room, "2", reply_to=question["event_id"]),
    ]
    words = await bob.send_text(room, "Fast and automated", thread=thread)
    await alice.wait_for(room, is_message("You said: Fast and automated"))
    assert [bridge.verdict(each) for each in (*tries, words)] == [*["not_answerer"] * 3, None]
    notices = [each["content"] for each in alice.timeline(room) if is_notice()(each)]
    assert [each["m.mentions"] for each in notices] == [{"user_ids": [bob.user_id]}]
    assert notices[0]["body"] == "Bob: this question is for someone else to answer."

    await alice.send_text(room, "1", thread=thread)
    await alice.wait_for(room, is_message("You chose Fast and automated."))
    assert [turn["event_id"] for turn in bridge.turns() if turn["sender"]["user_id"] == bob.user_id] == [words]


async def test_only_those_listed_answer_and_strangers_are_not_heard(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """R7"""
    alice, bob, stranger = [await new_person(name) for name in ("Alice", "Bob", "Stranger")]
    bridge = await new_bridge(
        settings={"assistant": {"respond": "always", "questions": {"answerers": [bob.user_id]}}},
        access={"users": [alice.user_id, bob.user_id]},
    )
    await bridge.start()
    room = await room_with(alice, bridge.user_id(), others=[bob, stranger])
    question = await ask(alice, room)
    thread = root_of(question)
    tries = [
        await stranger.react(room, question["event_id"], "🚀"),
        await stranger.send_text(room, "1", thread=thread),
        await stranger.send_text(room, "Fast and automated", thread=thread),
        await stranger.send_text(room, "hello", mentions=[bridge.user_id()]),
        await alice.react(room, question["event_id"], "🚀"),
    ]
    await hear_from(alice, room, bridge.user_id())
    verdicts = [bridge.verdict(each) for each in tries]
    assert verdicts[:2] == ["not_allowed", "not_allowed"]
    assert verdicts[3:] == [None, "not_answerer"]
    assert [turn["sender"]["user_id"] for turn in bridge.turns()] == [alice.user_id] * 2
    notices = [each for each in alice.timeline(room) if is_notice()(each)]
    assert [each["content"]["m.mentions"] for each in notices] == [{"user_ids": [alice.user_id]}]
    assert [each["state"] for each in bridge.journal.questions()] == ["open"]

    await bob.react(room, question["event_id"], "🔍")
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    assert bridge.turns()[-1]["selection"]["answered_by"] == bob.user_id
    assert bridge.turns()[-1]["history"][-1]["sender"] != stranger.user_id
    assert "hello" not in str(bridge.turns())
    late = await stranger.react(room, question["event_id"], "🔍")
    await hear_from(alice, room, bridge.user_id())
    assert bridge.verdict(late) == "not_allowed"
    assert len(said_in(alice, room, bridge.user_id())) == 5


async def test_empty_allow_list_is_refused_at_start(new_bridge: NewBridge) -> None:
    """R7"""
    bridge = await new_bridge(access={"users": []})
    status, output, errors = await bridge.command("run")
    assert (status, output) == (2, "")
    assert "access.users" in errors
    assert not (bridge.folder / "journal").exists()
