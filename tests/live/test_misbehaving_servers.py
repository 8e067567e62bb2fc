"""Servers and networks that misbehave: the bridge waits, says so in a line, and goes on by itself."""

import asyncio
import json
import resource
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from yarl import URL

from mindbridge.demo.homeserver import Homeserver
from tests.live.bridge import AGENT, Bridge
from tests.live.conftest import NewBridge, NewPerson, NewProxy
from tests.live.conversation import ask, hear_from, is_message, room_with, said_in
from tests.live.person import Person
from tests.live.proxy import (
    BRACKETS,
    HTML,
    NOT_JSON,
    NOT_UTF8,
    SEND,
    SYNC,
    Action,
    Next,
    Proxy,
    Request,
    answer,
    delay,
    halve,
    hang,
    lose,
    refuse,
    refuse_with,
)
from tests.live.waiting import wait_until

# The bridge's own patience, shorter: the agent's module is loaded into the bridge's process.
IMPATIENT = f"""{AGENT}
from mindbridge.matrix import session
session.REQUEST_SECONDS, session.SYNC_SECONDS, session.SYNC_WAIT_MS = 1.0, 1.5, 500
"""

Rules = tuple[tuple[Action, str, int | None], ...]


@pytest.fixture
async def proxy(new_proxy: NewProxy) -> Proxy:
    return await new_proxy()


async def converse(person: Person, room: str, bridge: Bridge, agent: str = "assistant") -> None:
    """Has the agent ask, answers, and makes sure that all of it happened once."""
    account = bridge.user_id(agent)
    said, turns = len(said_in(person, room, account)), len(bridge.turns(agent))
    seen = len(person.timeline(room))
    question = await ask(person, room)
    click = await person.react(room, question["event_id"], "🔍")
    await person.wait_for(room, is_message("You chose Careful and manual.", account))
    heard = await hear_from(person, room, account)
    assert said_in(person, room, account)[said:] == [
        question["content"]["body"],
        "You chose Careful and manual.",
        heard,
    ]
    selections = [turn["selection"] and turn["selection"]["source_event_id"] for turn in bridge.turns(agent)[turns:]]
    assert selections == [None, click, None]
    buttons = [each for each in person.timeline(room)[seen:] if each["content"].get("dev.mindbridge.button")]
    assert [each["content"]["m.relates_to"]["key"] for each in buttons] == ["🚀", "🔍\ufe0f"]


def assert_no_traceback(bridge: Bridge) -> None:
    assert "Traceback" not in "\n".join(bridge.log)


# What a network does


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(((answer(502, HTML), SEND, 2), (answer(503), SYNC, 2)), id="5xx"),
        pytest.param(((refuse, SEND, 4), (refuse, SYNC, 4)), id="refused connections"),
        pytest.param(((lose, SEND, 4), (lose, SYNC, 4)), id="lost answers"),
        pytest.param(((halve, SEND, 2), (halve, SYNC, 2)), id="half answers"),
        pytest.param(
            (
                (answer(200, NOT_JSON), SEND, 1),
                (answer(200, BRACKETS), SEND, 1),
                (answer(200, NOT_JSON), SYNC, 1),
                (answer(200, NOT_UTF8), SYNC, 1),
            ),
            id="answers that can't be read",
        ),
        pytest.param(((answer(408), SEND, 1), (answer(404, HTML), SYNC, 2)), id="4xx of something in between"),
        pytest.param(((delay(1), "", 6),), id="slow"),
    ],
)
async def test_conversation_is_whole_and_happens_once_in_spite_of(
    new_bridge: NewBridge, new_person: NewPerson, proxy: Proxy, rules: Rules
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge(homeserver=proxy.url)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    added = [proxy.rule(action, path=path, times=times) for action, path, times in rules]
    await converse(alice, room, bridge)
    assert all(rule.is_over for rule in added)
    assert_no_traceback(bridge)


async def test_sync_and_send_that_hang_are_noticed_and_done_again(
    new_bridge: NewBridge, new_person: NewPerson, proxy: Proxy
) -> None:
    """S7"""
    alice, bridge = await new_person("Alice"), await new_bridge(agent_source=IMPATIENT, homeserver=proxy.url)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    never = asyncio.Event()
    hanging = [proxy.rule(hang(never), path=path, times=1) for path in (SYNC, SEND)]
    await wait_until(lambda: hanging[0].is_over)
    await converse(alice, room, bridge)
    assert all(rule.is_over for rule in hanging)
    assert sum("sync_failed" in line for line in bridge.log) == 1
    assert sum("send_failed" in line for line in bridge.log) == 1
    assert_no_traceback(bridge)


async def test_bridge_waits_at_start_for_a_homeserver_that_is_not_there_or_is_something_else(
    new_bridge: NewBridge, new_person: NewPerson, proxy: Proxy
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge(homeserver=proxy.url)
    await proxy.stop_listening()
    await bridge.launch()
    await wait_until(lambda: any("homeserver_unreachable" in line for line in bridge.log))
    proxy.rule(answer(404, HTML), times=1)
    proxy.rule(refuse_with(400, "M_UNRECOGNIZED"), times=1)
    await proxy.listen()
    await wait_until(lambda: any("ready agents=1" in line for line in bridge.log))
    assert sum("homeserver_unreachable" in line for line in bridge.log) >= 3
    await converse(alice, await room_with(alice, bridge.user_id()), bridge)
    assert_no_traceback(bridge)


async def test_homeserver_that_goes_away_and_comes_back_is_all_that_it_takes(
    new_bridge: NewBridge, new_person: NewPerson, proxy: Proxy
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge(homeserver=proxy.url)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await ask(alice, room)
    await proxy.stop_listening()
    await wait_until(lambda: any("sync_failed" in line for line in bridge.log))
    click = await alice.react(room, question["event_id"], "🚀")
    await proxy.listen()
    await alice.wait_for(room, is_message("You chose Fast and automated."))
    assert bridge.verdict(click) == "selected"
    await converse(alice, room, bridge)
    assert_no_traceback(bridge)


# How often it is asked


async def nothing_new(request: Request, _forward: Next) -> web.StreamResponse:
    """A sync response at once, with the position that was asked for."""
    return web.json_response({"next_batch": URL(request.target, encoded=True).query.get("since", "s0")})


@pytest.mark.parametrize(
    ("action", "first_seconds", "times"),
    [
        pytest.param(nothing_new, 0.05, 6, id="that answers nothing at once"),
        pytest.param(answer(503), 0.5, 4, id="that fails"),
        pytest.param(refuse_with(401, "M_UNKNOWN_TOKEN"), 1.0, 3, id="that never takes the token"),
    ],
)
async def test_server_is_asked_less_and_less_often(
    new_bridge: NewBridge, new_person: NewPerson, proxy: Proxy, action: Action, first_seconds: float, times: int
) -> None:
    """S6

    A pause is at least half of what is due, and twice as much is due each time, up to 60 s (5 s where the answers are
    good and empty): with the token rejected for ever, 3 requests at about 0, 1, 2, 4, 8, 16, 32, 60 s and so on.
    """
    alice, bridge = await new_person("Alice"), await new_bridge(homeserver=proxy.url)
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    for_ever = proxy.rule(action, path=SYNC)
    await alice.send_text(room, "so that the sync that waits comes back")
    await wait_until(lambda: for_ever.done >= times)
    bad = proxy.seen(path=SYNC)[-for_ever.done :]
    pauses = [later.at - earlier.at for earlier, later in pairwise(bad)]
    assert [pause >= first_seconds * 2**number / 2 for number, pause in enumerate(pauses)] == [True] * len(pauses)
    assert len(proxy.seen(since=bad[0].at)) <= 3 * len(bad) + 4  # the rest: sends and typing for what was said before
    proxy.remove(for_ever)
    await alice.wait_for(room, is_message("You said: so that the sync"))
    await converse(alice, room, bridge)
    assert_no_traceback(bridge)


# Accounts that were logged out


def kept_device(bridge: Bridge, agent: str = "assistant") -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((bridge.folder / "journal" / "devices" / f"{agent}.json").read_text("utf-8"))
    return kept


async def log_out(homeserver: Homeserver, user_id: str, token: str) -> None:
    async with Person.with_token(homeserver.url, user_id, token) as account:
        await account.call("POST", "logout", json={})


@pytest.mark.parametrize("is_soft", [False, True], ids=["logged out", "logged out softly"])
async def test_account_with_a_password_logs_in_again_as_the_same_device(
    new_bridge: NewBridge, new_person: NewPerson, homeserver: Homeserver, proxy: Proxy, *, is_soft: bool
) -> None:
    """S6"""
    alice, bridge = await new_person("Alice"), await new_bridge("assistant", "helper", homeserver=proxy.url)
    await bridge.start()
    room, other = [await room_with(alice, bridge.user_id(agent)) for agent in ("assistant", "helper")]
    before = kept_device(bridge)
    if is_soft:
        # The token is rejected where it is used next, and where it is looked at then.
        token = f"Bearer {before['access_token']}"

        async def reject(request: Request, forward: Next) -> web.StreamResponse:
            if request.raw.headers.get("Authorization") != token:
                return await forward()
            return await refuse_with(401, "M_UNKNOWN_TOKEN", soft_logout=True)(request, forward)

        proxy.rule(reject)
        await alice.send_text(room, "so that the sync that waits comes back")
    else:
        await log_out(homeserver, before["user_id"], before["access_token"])
    await hear_from(alice, other, bridge.user_id("helper"))
    await wait_until(lambda: kept_device(bridge) != before)
    assert {**kept_device(bridge), "access_token": None} == {**before, "access_token": None}
    if is_soft:
        await alice.wait_for(room, is_message("You said: so that"))
    await converse(alice, room, bridge)
    assert sum("logged_in agent=assistant" in line for line in bridge.log) == 2
    assert sum("logged_in agent=helper" in line for line in bridge.log) == 1
    assert_no_traceback(bridge)


async def test_account_that_cannot_log_in_again_stops_for_good_with_one_error_and_the_last_one_ends_the_bridge(
    new_bridge: NewBridge, new_person: NewPerson, homeserver: Homeserver, proxy: Proxy
) -> None:
    """S6"""
    alice, bridge = await new_person("Alice"), await new_bridge("assistant", "helper", homeserver=proxy.url)
    async with await bridge.log_in() as account:
        token = account.access_token
    bridge.config["agents"]["assistant"]["account"] = {"user_id": bridge.user_id(), "access_token": token}
    bridge.prepare()
    await bridge.start()
    other = await room_with(alice, bridge.user_id("helper"))

    def errors() -> list[str]:
        return [event["event"] for event in map(json.loads, bridge.log) if event["level"] == "error"]

    await log_out(homeserver, bridge.user_id(), token)
    await wait_until(lambda: bool(errors()))
    [error] = errors()
    assert error.startswith(f"agent_stopped agent=assistant error={bridge.user_id()}: ")
    assert "configure a new access token" in error
    await hear_from(alice, other, bridge.user_id("helper"))
    assert errors() == [error]
    used = [each for each in proxy.requests if each.raw.headers.get("Authorization") == f"Bearer {token}"]
    assert sum(each.status == 401 for each in used) <= 3

    proxy.rule(refuse_with(403, "M_FORBIDDEN"), path="/login$")
    device = kept_device(bridge, "helper")
    await log_out(homeserver, device["user_id"], device["access_token"])
    assert await bridge.ended() == 1
    assert len(errors()) == 2
    assert "check the account's password" in errors()[1]
    assert_no_traceback(bridge)
    assert token not in "\n".join(bridge.log)


# A disk that misbehaves


def process_of(bridge: Bridge) -> int:
    return int((bridge.folder / "journal" / "lock").read_text("ascii"))


async def test_full_disk_is_told_in_a_line_each_time_and_waited_out(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    await hear_from(alice, room, bridge.user_id())
    _, most = resource.prlimit(process_of(bridge), resource.RLIMIT_FSIZE)
    resource.prlimit(process_of(bridge), resource.RLIMIT_FSIZE, (1, most))
    message = await alice.send_text(room, "nobody can note this down")

    def told() -> list[str]:
        return [line for line in bridge.log if "journal_failed agent=assistant" in line or "keys" in line]

    await wait_until(lambda: len(told()) >= 2)
    assert bridge.is_running
    resource.prlimit(process_of(bridge), resource.RLIMIT_FSIZE, (most, most))
    await alice.wait_for(room, is_message("You said: nobody can note this down"), after=message)
    await converse(alice, room, bridge)
    assert_no_traceback(bridge)


async def test_damaged_journal_ends_the_bridge_and_says_so_once(new_bridge: NewBridge, new_person: NewPerson) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge("assistant", "helper")
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    damage(bridge.folder / "journal")
    await alice.send_text(room, "are you there?")
    assert await bridge.ended() == 1
    assert sum("is damaged" in line for line in bridge.log) == 1
    assert_no_traceback(bridge)


def damage(journal: Path) -> None:
    """Overwrites the journal where it lies; the bridge reads it anew, since another process has written to it."""
    with closing(sqlite3.connect(journal / "journal.sqlite3")) as other:
        other.execute("CREATE TABLE other (number)")
    for name in ("journal.sqlite3", "journal.sqlite3-wal"):
        with (journal / name).open("r+b") as file:
            file.write(b"\xa5" * (journal / name).stat().st_size)
