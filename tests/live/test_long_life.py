"""Backup and restore, as docs/operation.md says, post nothing twice; what is old is forgotten."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.live.bridge import Bridge
from tests.live.conftest import NewBridge, NewPerson, NewProxy
from tests.live.conversation import ask, block, buttons_of, hear_from, is_button, is_message, is_question, room_with
from tests.live.person import Event, Person
from tests.live.proxy import SEND, forget_transactions, hang
from tests.live.waiting import wait_until


async def back_up(bridge: Bridge) -> Path:
    copy = bridge.folder / "copy.sqlite3"
    status, _, errors = await bridge.command("journal", "backup", str(copy))
    assert (status, errors) == (0, "")
    return copy


def put_back(bridge: Bridge, copy: Path) -> None:
    """Restores a backup as it is documented."""
    home = bridge.folder / "journal"
    for name in ("journal.sqlite3-wal", "journal.sqlite3-shm"):
        (home / name).unlink(missing_ok=True)
    shutil.copyfile(copy, home / "journal.sqlite3")


async def settled(bridge: Bridge) -> None:
    """Waits until every turn has ended and all is sent."""

    def is_settled() -> bool:
        (agent,) = bridge.journal.status()["agents"]
        return set(agent["turns"]) == {"done"} and set(agent["deliveries"]) <= {"sent", "dropped"}

    await wait_until(is_settled)


async def posted(person: Person, room: str, account: str) -> list[Event]:
    """All that the account has sent to the room, of whatever type."""
    await person.catch_up()
    return [event for event in person.timeline(room) if event["sender"] == account]


def ids_of(events: list[Event]) -> list[str]:
    return [event["event_id"] for event in events]


def deliveries_in(copy: Path) -> dict[str, int]:
    with closing(sqlite3.connect(copy)) as connection:
        return dict(connection.execute("SELECT state, COUNT(*) FROM deliveries GROUP BY state"))


@pytest.mark.parametrize("forgets", [False, True], ids=["", "transaction ids are forgotten"])
async def test_backup_of_an_open_question_put_back_after_its_answer_repeats_nothing(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy, *, forgets: bool
) -> None:
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    await bridge.start()
    account = bridge.user_id()
    room = await room_with(alice, account)
    first = await ask(alice, room)
    copy = await back_up(bridge)

    click = await alice.react(room, first["event_id"], "🚀")
    await alice.wait_for(room, is_message("You chose Fast and automated."))
    second = await ask(alice, room, "ask another")
    await alice.react(room, second["event_id"], "🔍")
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    late = await alice.react(room, second["event_id"], "🚀")
    await alice.wait_for(room, is_message("already answered"))
    third = await ask(alice, room, "ask a third")
    await settled(bridge)
    assert await bridge.stop() == 0
    before, told = await posted(alice, room, account), list(bridge.journal.export())
    turns = {turn["turn_id"] for turn in bridge.turns()}

    put_back(bridge, copy)
    if forgets:
        proxy.rule(forget_transactions(), "PUT", SEND)
    await bridge.start()
    await hear_from(alice, room, account)
    await settled(bridge)

    after = await posted(alice, room, account)
    assert ids_of(after[:-1]) == ids_of(before)
    assert after[-1]["content"]["body"].startswith("You said: Still there?")
    assert [each["state"] for each in told] == ["answered", "answered", "open"]
    assert [each["event_id"] for each in told] == [each["event_id"] for each in (first, second, third)]
    assert list(bridge.journal.export()) == told
    assert (bridge.verdict(click), bridge.verdict(late)) == ("selected", "already_answered")
    assert len({turn["turn_id"] for turn in bridge.turns()} - turns) == 1

    taken = await alice.react(room, third["event_id"], "🔍")
    await alice.wait_for(room, is_message("You chose Careful and manual."), after=taken)
    assert bridge.turns()[-1]["selection"]["source_event_id"] == taken


@pytest.mark.parametrize("forgets", ["never", "since then", "always"])
async def test_backup_with_replies_that_were_sent_since_sends_none_of_them_again(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy, forgets: str
) -> None:
    """`always`: no event of the account's ever shows the transaction id that the bridge gave it."""
    alice, proxy = await new_person("Alice"), await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    await bridge.start()
    account = bridge.user_id()
    room = await room_with(alice, account)
    await hear_from(alice, room, account)
    await settled(bridge)
    if forgets == "always":
        proxy.rule(forget_transactions(), "PUT", SEND)
    released = asyncio.Event()
    proxy.rule(hang(released), "PUT", SEND, times=1)
    sent = len(proxy.seen("PUT", SEND))
    await alice.send_text(room, "ask me")
    await wait_until(lambda: len(proxy.seen("PUT", SEND)) > sent)
    await alice.send_text(room, "hello")
    await wait_until(lambda: bridge.journal.status()["agents"][0]["turns"] == {"done": 3})
    copy = await back_up(bridge)
    assert deliveries_in(copy) == {"sent": 1, "attempted": 1, "pending": 3}

    released.set()
    question = await alice.wait_for(room, is_question())
    await alice.wait_for(room, is_button("🔍\ufe0f", question["event_id"]))
    await alice.wait_for(room, is_message("You said: hello"))
    await settled(bridge)
    assert await bridge.stop() == 0
    before = await posted(alice, room, account)

    put_back(bridge, copy)
    if forgets == "since then":
        proxy.rule(forget_transactions(), "PUT", SEND)
    await bridge.start()
    await hear_from(alice, room, account)
    await settled(bridge)

    after = await posted(alice, room, account)
    assert ids_of(after[:-1]) == ids_of(before)
    assert await buttons_of(alice, room, question["event_id"]) == ["🚀", "🔍\ufe0f"]
    await alice.react(room, question["event_id"], "🚀")
    await alice.wait_for(room, is_message("You chose Fast and automated."))


async def test_agent_that_asks_otherwise_after_a_backup_was_put_back_is_not_answered_by_what_is_in_the_room(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    bridge.script({"ask me": block("Which?", "First", "Second")})
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    copy = await back_up(bridge)
    question = await ask(alice, room)
    assert await bridge.stop() == 0

    put_back(bridge, copy)
    bridge.script({"ask me": block("Which?", "Second", "First")})
    await bridge.start()
    await hear_from(alice, room, bridge.user_id())
    await wait_until(lambda: [each["close_reason"] for each in bridge.journal.questions()] == ["posted_otherwise"])
    click = await alice.react(room, question["event_id"], "1️⃣")
    await wait_until(lambda: bridge.verdict(click) == "question_closed")
    await hear_from(alice, room, bridge.user_id())
    assert {turn["kind"] for turn in bridge.turns()} == {"message"}


def age(bridge: Bridge, days: int) -> None:
    """Makes all that the journal holds so much older."""
    times = {
        "turns": "ended_at",
        "questions": "closed_at",
        "deliveries": "settled_at",
        "verdicts": "decided_at",
        "sightings": "seen_at",
        "messages": "said_at",
    }
    with closing(sqlite3.connect(bridge.folder / "journal" / "journal.sqlite3", isolation_level=None)) as connection:
        for table, time in times.items():
            connection.execute(f"UPDATE {table} SET {time} = {time} - {days * 86_400_000}")  # noqa: S608 -- own names


async def test_old_texts_are_gone_after_a_start_and_old_questions_do_no_harm(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge(keep="30d")
    await bridge.start()
    account = bridge.user_id()
    room = await room_with(alice, account)
    answered = await ask(alice, room)
    await alice.react(room, answered["event_id"], "🚀")
    await alice.wait_for(room, is_message("You chose Fast and automated."))
    still_open = await ask(alice, room, "ask another")
    await settled(bridge)
    assert await bridge.stop() == 0
    age(bridge, 60)

    await bridge.start()
    await wait_until(lambda: any("forgotten turns_emptied=3" in line for line in bridge.log))
    late = await alice.react(room, answered["event_id"], "🔍")
    await hear_from(alice, room, account)

    assert bridge.verdict(late) == "not_an_option"
    assert [each["expired"] for each in bridge.journal.export()] == [True, False]
    taken = await alice.react(room, still_open["event_id"], "🔍")
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    assert bridge.turns()[-1]["selection"]["source_event_id"] == taken
    await settled(bridge)
    assert await bridge.stop() == 0

    age(bridge, 60)
    await bridge.start()
    await wait_until(lambda: any(" questions=1 turns=2 " in line for line in bridge.log))
    gone = await alice.react(room, answered["event_id"], "👍")
    await hear_from(alice, room, account)
    assert bridge.verdict(gone) == "unknown_question"
    assert [each["event_id"] for each in bridge.journal.export()] == [still_open["event_id"]]
