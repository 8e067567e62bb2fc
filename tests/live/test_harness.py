"""The live tests' own tools: people who talk through a real Synapse, and a Synapse that never outlives its starter."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest

from mindbridge.demo.homeserver import Homeserver, HomeserverError
from mindbridge.demo.synapse import Synapse, throwaway_synapse
from tests.live.conftest import ROOT, NewPerson
from tests.live.person import Event, Person, RefusedError
from tests.live.waiting import wait_until


def says(body: str) -> Callable[[Event], bool]:
    return lambda event: event["content"].get("body") == body


async def is_up(url: str) -> bool:
    async with aiohttp.ClientSession(url) as session:
        try:
            async with session.get("/_matrix/client/versions") as response:
                return response.ok
        except aiohttp.ClientConnectorError:
            return False


async def test_two_people_talk(new_person: NewPerson) -> None:
    alice, bob = await new_person("Alice"), await new_person("Bob")
    room = await alice.create_room(invite=[bob.user_id], name="Tea")
    await bob.join(room)
    assert await alice.members(room) == {alice.user_id: "Alice", bob.user_id: "Bob"}
    assert await bob.state(room, "m.room.name") == {"name": "Tea"}

    hello = await alice.send_text(room, "hello", mentions=[bob.user_id])
    seen = await bob.wait_for(room, says("hello"))
    assert (seen["event_id"], seen["sender"]) == (hello, alice.user_id)
    assert seen["content"] == {"msgtype": "m.text", "body": "hello", "m.mentions": {"user_ids": [bob.user_id]}}

    await bob.send_text(room, "in a thread", thread=hello)
    await bob.send_text(room, "a reply in the thread", thread=hello, reply_to=hello)
    await bob.send_text(room, "a reply", reply_to=hello, mentions=None)
    await alice.wait_for(room, says("a reply"))
    relations = {event["content"].get("body"): event["content"].get("m.relates_to") for event in alice.timeline(room)}
    thread = {"rel_type": "m.thread", "event_id": hello, "m.in_reply_to": {"event_id": hello}}
    assert relations["in a thread"] == {**thread, "is_falling_back": True}
    assert relations["a reply in the thread"] == {**thread, "is_falling_back": False}
    assert relations["a reply"] == {"m.in_reply_to": {"event_id": hello}}


async def test_reactions_edits_and_redactions_reach_the_other(new_person: NewPerson) -> None:
    alice, bob = await new_person("Alice"), await new_person("Bob")
    room = await alice.create_room(invite=[bob.user_id])
    await bob.join(room)
    hello = await alice.send_text(room, "hello")
    reaction = await bob.react(room, hello, "🚀")
    edit = await alice.edit(room, hello, "good morning")
    assert (await alice.wait_for(room, lambda event: event["event_id"] == reaction))["content"] == {
        "m.relates_to": {"rel_type": "m.annotation", "event_id": hello, "key": "🚀"}
    }
    await bob.wait_for(room, lambda event: event["event_id"] == edit, after=hello)
    assert [event["event_id"] for event in await bob.relations(room, hello, "m.replace")] == [edit]

    withdrawal = await bob.redact(room, reaction)
    await alice.wait_for(room, lambda event: event["event_id"] == withdrawal, after=reaction)
    assert (await bob.event(room, reaction))["content"] == {}


async def test_relations_of_several_pages_come_whole_and_in_order(new_person: NewPerson) -> None:
    alice = await new_person("Alice")
    room = await alice.create_room()
    hello = await alice.send_text(room, "hello")
    sent = [await alice.react(room, hello, str(number)) for number in range(101)]
    assert [event["event_id"] for event in await alice.relations(room, hello, "m.annotation")] == sent


async def test_what_does_not_come_fails_the_test_and_tells_what_came(new_person: NewPerson) -> None:
    alice = await new_person("Alice")
    room = await alice.create_room()
    await alice.send_text(room, "something else")
    with pytest.raises(AssertionError, match="something else"):
        await alice.wait_for(room, says("hello"), seconds=0.2)
    with pytest.raises(TimeoutError):
        await wait_until(lambda: False, seconds=0.1)


async def test_typing_is_seen(new_person: NewPerson) -> None:
    alice, bob = await new_person("Alice"), await new_person("Bob")
    room = await alice.create_room(invite=[bob.user_id])
    await bob.join(room)
    await bob.call("PUT", "rooms", room, "typing", bob.user_id, json={"typing": True, "timeout": 20_000})
    await alice.wait_for_typing(room, bob.user_id)


async def test_an_account_can_have_a_rate_limit_of_its_own(homeserver: Homeserver, new_person: NewPerson) -> None:
    alice = await new_person("Alice")
    room = await alice.create_room()
    await homeserver.override_rate_limit(alice.user_id, messages_per_second=1, burst_count=1)

    async def send_many() -> None:
        for number in range(20):
            await alice.send_text(room, str(number))

    with pytest.raises(RefusedError) as refused:
        await send_many()
    assert (refused.value.status, refused.value.errcode) == (429, "M_LIMIT_EXCEEDED")


async def test_synapse_is_gone_after_stop_and_remembers_all_when_started_again(
    synapse_python: Path, tmp_path: Path
) -> None:
    synapse = Synapse(synapse_python, tmp_path)
    url = synapse.homeserver.url
    await synapse.start()
    account = await synapse.homeserver.register("alice", "a password")
    await synapse.stop()
    assert not await is_up(url)

    await synapse.start()
    async with await Person.log_in(url, account.user_id, "a password") as alice:
        room = await alice.create_room()
        assert alice.user_id in await alice.members(room)
    await synapse.stop()
    assert not await is_up(url)


async def test_synapse_is_gone_when_its_task_is_cancelled(synapse_python: Path, tmp_path: Path) -> None:
    running: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def run() -> None:
        async with throwaway_synapse(synapse_python, tmp_path) as homeserver:
            running.set_result(homeserver.url)
            await asyncio.Event().wait()

    task = asyncio.create_task(run())
    url = await running
    assert await is_up(url)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not await is_up(url)


STARTER = """
import asyncio, signal, sys
from pathlib import Path
from mindbridge.demo.synapse import throwaway_synapse

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background

async def main():
    async with throwaway_synapse(Path(sys.argv[1]), Path(sys.argv[2])) as homeserver:
        print(homeserver.url, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
async def test_synapse_is_gone_when_the_process_that_started_it_is(
    synapse_python: Path, tmp_path: Path, how: signal.Signals
) -> None:
    starter = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", STARTER, synapse_python, tmp_path),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=ROOT,
    )
    assert starter.stdout is not None
    url = (await starter.stdout.readline()).decode().strip()
    assert await is_up(url)

    os.kill(starter.pid, how)
    async with asyncio.timeout(20):
        await starter.wait()

    async def is_gone() -> bool:
        return not await is_up(url)

    await wait_until(is_gone)


async def test_a_synapse_that_does_not_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    with pytest.raises(HomeserverError, match="No module named 'synapse'"):
        await Synapse(Path(sys.executable), tmp_path).start()
