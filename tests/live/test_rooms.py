"""Rooms and accounts: who may bring an agent where, what counts there from when on, what people see of it."""

import secrets

from tests.live.conftest import NewBridge, NewPerson
from tests.live.conversation import (
    ask,
    hear_from,
    is_join_of,
    is_message,
    is_question,
    room_with,
    root_of,
    said_in,
)
from tests.live.waiting import wait_until


async def test_strangers_invitation_is_declined_and_an_allowed_users_is_accepted(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """A1"""
    alice, stranger, robot = [await new_person(name) for name in ("Alice", "Stranger", "Robot")]
    access = {"users": [alice.user_id, robot.user_id], "bots": [robot.user_id]}
    bridge = await new_bridge(access=access)
    before = await stranger.create_room(invite=[bridge.user_id()])
    await bridge.start()
    account = bridge.user_id()
    traps = [(stranger, before)]
    traps += [(each, await each.create_room(invite=[account], direct=True)) for each in (stranger, robot)]
    room = await room_with(alice, account)
    await hear_from(alice, room, account)

    async def has_left_all() -> bool:
        states = [(await each.state(trap, "m.room.member", account))["membership"] for each, trap in traps]
        return states == ["leave"] * len(traps)

    await wait_until(has_left_all)

    # Who was refused may be right the next time.
    await stranger.invite(before, alice.user_id)
    await alice.join(before)
    await alice.invite(before, account)
    await alice.wait_for(before, is_join_of(account))
    await hear_from(alice, before, account)
    assert {turn["sender"]["user_id"] for turn in bridge.turns()} == {alice.user_id}
    assert bridge.is_running


async def test_hello_sent_before_the_invitation_was_accepted_is_answered_and_older_history_is_not(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice = await new_person("Alice")
    bridge = await new_bridge()
    account = bridge.user_id()
    room = await alice.create_room()
    await alice.send_text(room, "before the invitation")
    await alice.send_text(room, "ask me before the invitation", mentions=[account])
    await alice.invite(room, account)
    hello = await alice.send_text(room, "hello")
    await bridge.start()
    reply = await alice.wait_for(room, is_message("You said: hello"))
    assert root_of(reply) == hello
    await hear_from(alice, room, account)
    assert [turn["event_id"] for turn in bridge.turns()][:1] == [hello]
    assert len(bridge.turns()) == 2
    assert len(said_in(alice, room, account)) == 2

    # The same while the bridge runs: invitation, hello and join are seen in one go.
    direct = await alice.create_room(invite=[account], direct=True)
    await alice.send_text(direct, "ask me here")
    await alice.wait_for(direct, is_question())
    await hear_from(alice, direct, account)
    assert [turn["text"] for turn in bridge.turns() if turn["room_id"] == direct][:1] == ["ask me here"]
    assert len(bridge.turns()) == 4

    # Once more after the agent was sent away.
    await alice.call("POST", "rooms", room, "kick", json={"user_id": account})
    away = await alice.send_text(room, "while you were away", mentions=[account])
    await alice.invite(room, account)
    await alice.send_text(room, "welcome back")
    await alice.wait_for(room, is_message("You said: welcome back"))
    await hear_from(alice, room, account)
    assert away not in [turn["event_id"] for turn in bridge.turns()]


async def test_rooms_named_in_the_configuration_are_joined_and_what_was_said_before_is_not_answered(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice = await new_person("Alice")
    lobby = f"lobby-{secrets.token_hex(4)}"
    room = await alice.create_room(preset="public_chat", room_alias_name=lobby)
    locked = await alice.create_room()
    settings = {"rooms": [f"#{lobby}:localhost", f"#nowhere-{lobby}:localhost", locked], "display_name": "The Helper"}
    bridge = await new_bridge(settings={"assistant": settings})
    account = bridge.user_id()
    for text in ("hello", "ask me"):
        await alice.send_text(room, text, mentions=[account])
    await bridge.start()
    await alice.wait_for(room, is_join_of(account))
    await alice.send_text(room, "good morning", mentions=[account])
    await alice.wait_for(room, is_message("You said: good morning"))
    assert [turn["text"] for turn in bridge.turns()] == ["good morning"]
    assert (await alice.members(room))[account] == "The Helper"
    assert (await alice.call("GET", "profile", account))["displayname"] == "The Helper"
    assert set(await alice.members(locked)) == {alice.user_id}
    assert any("nowhere" in line for line in bridge.log)
    assert await bridge.stop() == 0
    await bridge.start()
    await hear_from(alice, room, account)
    assert len(bridge.turns()) == 2


async def test_very_first_sync_of_an_account_that_is_in_rooms_already_starts_no_turn(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice = await new_person("Alice")
    bridge = await new_bridge()
    account = bridge.user_id()
    room = await alice.create_room(invite=[account])
    async with await bridge.log_in() as other_client:
        await other_client.join(room)
    old = [await alice.send_text(room, text, mentions=[account]) for text in ("hello", "ask me", "2")]
    await alice.react(room, old[0], "🚀")
    await bridge.start()
    await hear_from(alice, room, account)
    assert len(bridge.turns()) == len(said_in(alice, room, account)) == 1
    why = bridge.journal.why(old[1])
    assert (why["verdict"], why["question_id"]) == (None, None)
    assert "before the account counted" in why["reason"]


async def test_agent_is_seen_typing_while_it_works(new_bridge: NewBridge, new_person: NewPerson) -> None:
    alice = await new_person("Alice")
    bridge = await new_bridge()
    bridge.script({"think": {"waits_for": "gate"}})
    await bridge.start()
    account = bridge.user_id()
    room = await room_with(alice, account)
    await alice.send_text(room, "think")
    await alice.wait_for_typing(room, account)
    bridge.allow("gate")
    await alice.wait_for(room, is_message("You said: think"))
    await alice.wait_for_typing(room, account, typing=False)


async def test_notices_other_bots_and_the_agent_itself_start_no_turn(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """S5"""
    alice, robot = await new_person("Alice"), await new_person("Robot")
    bridge = await new_bridge(
        settings={"assistant": {"respond": "always"}}, access={"users": ["*"], "bots": ["@robot-*:localhost"]}
    )
    await bridge.start()
    account = bridge.user_id()
    room = await room_with(alice, account, others=[robot])
    question = await ask(alice, room)
    thread = root_of(question)
    tries = [
        await alice.send_text(room, "ask me", msgtype="m.notice", mentions=[account]),
        await alice.send_text(room, "1", msgtype="m.notice", thread=thread),
        await robot.send_text(room, "ask me", mentions=[account]),
        await robot.send_text(room, "1", thread=thread),
        await robot.send_text(room, "Fast and automated", thread=thread),
    ]
    async with await bridge.log_in() as other_client:
        tries.append(await other_client.send_text(room, "ask me", mentions=[account]))
        tries.append(await other_client.send_text(room, "1", thread=thread))
    image = await alice.send(room, "m.room.message", {"msgtype": "m.image", "body": "1", "url": "mxc://localhost/1"})
    await hear_from(alice, room, account)
    assert [turn["text"] for turn in bridge.turns()][:1] == ["ask me"]
    assert len(bridge.turns()) == 2
    assert [bridge.verdict(tries[1]), bridge.verdict(tries[3])] == ["not_a_person", "not_a_person"]
    assert "selected" not in [bridge.verdict(each) for each in (*tries, image)]
    assert [each["state"] for each in bridge.journal.questions()] == ["open"]
