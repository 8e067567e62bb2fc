"""Agents that fail, hang, or take their time; programs of the `command` kind (contract, section 5)."""

import asyncio
import shlex
import sys

from tests.live.conftest import NewBridge, NewPerson
from tests.live.conversation import ask, hear_from, is_message, is_notice, room_with, root_of, said_in
from tests.live.waiting import wait_until

PROGRAM = r"""
turn=$(cat)
field() { printf '%s' "$turn" | PYTHON -c "import json, sys; turn = json.load(sys.stdin); print($1)"; }
printf '%s\n' "$turn" >> turns.jsonl
case "$(field 'turn["kind"]') $(field 'turn["text"]')" in
"message fail"*) echo "no luck today" >&2; exit 3 ;;
"message hang"*) exec sleep 600 ;;
"message "*)
  echo "Hello from $MINDBRIDGE_AGENT."
  echo '```interactive'
  echo '{"question": "Which?",'
  echo '"options": [{"emoji": "🚀", "label": "One", "value": 0}, {"emoji": "🔍", "label": "Two"}]}'
  echo '```' ;;
*) echo "Value: $(field 'json.dumps(turn["selection"]["selected_option"]["value"])')" ;;
esac
""".replace("PYTHON", shlex.quote(sys.executable))


async def test_answer_that_comes_while_the_agent_is_down_reaches_it_later_and_once(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    """R6"""
    alice, bridge = await new_person("Alice"), await new_bridge()
    bridge.script({"chose Careful and manual": {"fails": 2}})
    await bridge.start()
    account = bridge.user_id()
    room = await room_with(alice, account)
    question = await ask(alice, room)
    click = await alice.react(room, question["event_id"], "🔍")
    behind = await alice.send_text(room, "and then?", thread=root_of(question))
    await alice.wait_for(room, is_message("You said: and then?"))
    tried = bridge.turns()[1:]
    assert [(turn["event_id"], turn["attempt"]) for turn in tried] == [(click, 1), (click, 2), (click, 3), (behind, 1)]
    assert len({turn["turn_id"] for turn in tried}) == 2
    assert [{**turn, "attempt": 1} for turn in tried[:3]] == [tried[0]] * 3
    assert said_in(alice, room, account)[1:] == ["You chose Careful and manual.", "You said: and then?"]
    assert not any(is_notice()(each) for each in alice.timeline(room))


async def test_turn_that_failed_three_times_is_parked_with_one_notice_until_it_is_run_again(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    bridge.script({"help": {"needs": "luck"}})
    await bridge.start()
    account = bridge.user_id()
    room = await room_with(alice, account)
    root = await alice.send_text(room, "help")
    behind = await alice.send_text(room, "are you there?", thread=root)
    notice = await alice.wait_for(room, is_notice(account))
    assert (root_of(notice), notice["content"]["m.mentions"]) == (root, {})
    await alice.wait_for(room, is_message("You said: are you there?"))
    # The agent's success lets the parked turn run once more, which fails again: no second notice.
    await wait_until(lambda: len(bridge.turns()) == 5)
    await wait_until(lambda: len(bridge.journal.status()["parked"]) == 1)
    tried = [(turn["event_id"], turn["attempt"]) for turn in bridge.turns()]
    assert tried == [(root, 1), (root, 2), (root, 3), (behind, 1), (root, 4)]
    [parked] = bridge.journal.status()["parked"]
    assert parked == {
        "turn_id": bridge.turns()[0]["turn_id"],
        "agent": "assistant",
        "room_id": room,
        "event_id": root,
        "failures": 4,
        "error": "RuntimeError: told to fail",
    }
    status, output, _ = await bridge.command("journal", "status")
    assert status == 0
    assert parked["turn_id"] in output

    bridge.allow("luck")
    assert (await bridge.command("journal", "retry", parked["turn_id"]))[0] == 0
    reply = await alice.wait_for(room, is_message("You said: help"))
    assert root_of(reply) == root
    assert (await bridge.command("journal", "retry", parked["turn_id"]))[0] == 1
    assert (await bridge.command("journal", "retry", "nonsense"))[0] == 1
    assert bridge.journal.status()["parked"] == []
    await hear_from(alice, room, account)
    assert len([each for each in alice.timeline(room) if is_notice()(each)]) == 1
    assert len(said_in(alice, room, account)) == 4


async def test_parked_turn_runs_again_at_start(new_bridge: NewBridge, new_person: NewPerson) -> None:
    alice = await new_person("Alice")
    backend = {"type": "python", "python": "agent:reply", "attempts": 1}
    bridge = await new_bridge(settings={"assistant": {"backend": backend}})
    bridge.script({"help": {"needs": "luck"}})
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    await alice.send_text(room, "help")
    await alice.wait_for(room, is_notice())
    assert await bridge.stop() == 0
    bridge.allow("luck")
    await bridge.start()
    await alice.wait_for(room, is_message("You said: help"))
    assert [turn["attempt"] for turn in bridge.turns()] == [1, 2]


async def test_program_of_the_command_kind_asks_and_gets_the_answer(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice = await new_person("Alice")
    backend = {"type": "command", "command": ["sh", "agent.sh"], "timeout": "3s", "attempts": 1}
    bridge = await new_bridge(settings={"assistant": {"backend": backend}})
    (bridge.folder / "agent.sh").write_text(PROGRAM, "utf-8")
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await ask(alice, room, "hello")
    assert question["content"]["body"].startswith("Hello from assistant.\n\nWhich?\n\n1. 🚀 One\n2. 🔍 Two\n\n")
    await alice.react(room, question["event_id"], "🚀")
    await alice.wait_for(room, is_message("Value: 0"))

    await alice.send_text(room, "hang on")
    failing = await alice.send_text(room, "fail please")
    notice = await alice.wait_for(room, is_notice())
    assert root_of(notice) == failing
    await alice.wait_for(room, is_notice(), after=notice["event_id"])
    errors = {turn["event_id"]: turn["error"] for turn in bridge.journal.status()["parked"]}
    assert "exit status 3: no luck today" in errors.pop(failing)
    assert "within 3 s" in errors.popitem()[1]


async def test_turns_of_a_thread_run_in_order_and_threads_side_by_side_up_to_the_limit(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice = await new_person("Alice")
    bridge = await new_bridge(settings={"assistant": {"turns_at_once": 2}})
    bridge.script({name: {"waits_for": f"go {name}"} for name in ("one", "two", "three", "four")})
    await bridge.start()
    room = await room_with(alice, bridge.user_id())

    def started() -> list[str]:
        return [turn["text"] for turn in bridge.turns()]

    thread = await alice.send_text(room, "one")
    await alice.send_text(room, "two", thread=thread)
    await alice.send_text(room, "three")
    await alice.send_text(room, "four")
    await wait_until(lambda: len(started()) == 2)
    assert started() == ["one", "three"]
    bridge.allow("go three")
    await alice.wait_for(room, is_message("You said: three"))
    await wait_until(lambda: len(started()) == 3)
    assert started() == ["one", "three", "four"]
    bridge.allow("go one")
    await alice.wait_for(room, is_message("You said: one"))
    await wait_until(lambda: len(started()) == 4)
    assert started() == ["one", "three", "four", "two"]
    for name in ("two", "four"):
        bridge.allow(f"go {name}")
    await asyncio.gather(*(alice.wait_for(room, is_message(f"You said: {name}")) for name in ("two", "four")))
    assert [entry["text"] for entry in bridge.turns()[3]["history"]] == ["one", "You said: one"]
