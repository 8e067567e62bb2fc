"""`mindbridge doctor` on a real Synapse, and on servers that are none or not there (contract, section 6)."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

from mindbridge.cli.main import main
from mindbridge.demo.homeserver import Homeserver
from mindbridge.doctor import account, rooms
from mindbridge.doctor import homeserver as homeserver_module
from mindbridge.doctor.homeserver import homeserver_checks
from mindbridge.matrix.session import DEVICE_NAME
from tests.live.bridge import Bridge
from tests.live.conftest import NewBridge, NewPerson, NewProxy
from tests.live.conversation import ask, is_message, room_with
from tests.live.proxy import HTML, SEND, Proxy, answer, hang, limit
from tests.live.waiting import wait_until

NOBODY = "http://127.0.0.1:9"

Checks = Mapping[tuple[str | None, str], Mapping[str, str]]


async def examine(bridge: Bridge, status: int) -> Checks:
    """What doctor finds by agent and name; its exit status is the given one, and no secret is in its output."""
    found = await bridge.command("doctor", "--json")
    shown = await bridge.command("doctor")
    for exit_status, output, errors in (found, shown):
        assert (exit_status, errors) == (status, "")
        for agent in bridge.config["agents"].values():
            assert agent["account"].get("password", "a secret") not in output
            assert agent["account"].get("access_token", "a secret") not in output
    checks = json.loads(found[1])["checks"]
    for check in checks:
        assert list(check) == ["name", "agent", "status", "found", "advice"]
        assert check["advice"] or check["status"] == "ok"
    return {(check["agent"], check["name"]): check for check in checks}


def statuses(checks: Checks, agent: str | None = "assistant") -> dict[str, str]:
    return {name: check["status"] for (of, name), check in checks.items() if of == agent}


def not_good(checks: Checks) -> dict[tuple[str | None, str], str]:
    return {key: check["status"] for key, check in checks.items() if check["status"] != "ok"}


async def devices_of_bridge(bridge: Bridge) -> list[str]:
    """The devices at the homeserver that a bridge, or doctor, logged in the agent's account with."""
    async with await bridge.log_in() as client:
        devices = (await client.call("GET", "devices"))["devices"]
    return [each["device_id"] for each in devices if each.get("display_name") == DEVICE_NAME]


def kept_device(bridge: Bridge) -> dict[str, str]:
    path = bridge.folder / "journal" / "devices" / "assistant.json"
    return cast("dict[str, str]", json.loads(path.read_text("utf-8")))


async def test_all_is_good_beside_a_running_bridge_which_goes_on_undisturbed(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    bridge = await new_bridge(settings={"assistant": {"display_name": "Assistant"}})
    alice = await new_person("Alice")
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    question = await ask(alice, room)
    device = kept_device(bridge)

    checks = await examine(bridge, 0)

    assert not_good(checks) == {}
    assert list(statuses(checks, None)) == ["homeserver", "clock", "journal", "disk"]
    assert list(statuses(checks)) == [
        "login",
        "device",
        "encryption",
        "display_name",
        "rooms",
        "permissions",
        "rate_limit",
        "turns",
        "deliveries",
        "backend",
    ]
    assert "a bridge runs on it" in checks[None, "journal"]["found"]
    assert device["device_id"] in checks["assistant", "device"]["found"]
    assert checks["assistant", "rooms"]["found"] == "in 1 room"
    await alice.react(room, question["event_id"], "🔍")
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    assert kept_device(bridge) == device
    assert await devices_of_bridge(bridge) == [device["device_id"]]
    assert not any("interrupted" in line or "token" in line for line in bridge.log)


async def test_first_login_keeps_the_device_with_which_the_bridge_runs_afterwards(new_bridge: NewBridge) -> None:
    bridge = await new_bridge()

    first = await bridge.command("doctor", "--json")

    assert first[0] == 0
    assert "there is none yet" in first[1]
    device = kept_device(bridge)
    home = bridge.folder / "journal"
    assert home.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in home.iterdir()] == ["devices"]
    await bridge.start()
    assert kept_device(bridge) == device
    assert await devices_of_bridge(bridge) == [device["device_id"]]


async def test_homeserver_that_is_down_is_told_and_all_else_is_looked_at(new_bridge: NewBridge) -> None:
    bridge = await new_bridge("assistant", "helper", homeserver=NOBODY)

    checks = await examine(bridge, 1)

    assert not_good(checks) == {(None, "homeserver"): "fail"}
    assert NOBODY in checks[None, "homeserver"]["found"]
    for agent in ("assistant", "helper"):
        assert list(statuses(checks, agent)) == ["rate_limit", "turns", "deliveries", "backend"]


async def test_wrong_password_fails_the_login_of_its_agent_alone(new_bridge: NewBridge) -> None:
    bridge = await new_bridge("assistant", "helper")
    bridge.config["agents"]["assistant"]["account"]["password"] = "certainly-wrong"
    bridge.prepare()

    checks = await examine(bridge, 1)

    assert not_good(checks) == {("assistant", "login"): "fail"}
    assert "M_FORBIDDEN" in checks["assistant", "login"]["found"]
    assert checks["assistant", "login"]["advice"] == "check the account's password"
    assert ("assistant", "rooms") not in checks
    assert ("helper", "rooms") in checks


async def test_access_token_that_was_revoked_fails_the_login(new_bridge: NewBridge) -> None:
    bridge = await new_bridge()
    client = await bridge.log_in()
    account_of = bridge.config["agents"]["assistant"]["account"]
    del account_of["password"]
    account_of["access_token"] = client.access_token
    bridge.prepare()
    whole = await examine(bridge, 0)
    await client.call("POST", "logout", json={})
    await client.close()

    checks = await examine(bridge, 1)

    assert "that of the access token" in whole["assistant", "device"]["found"]
    assert not_good(checks) == {("assistant", "login"): "fail"}
    assert "M_UNKNOWN_TOKEN" in checks["assistant", "login"]["found"]
    assert "configure a new access token" in checks["assistant", "login"]["advice"]


async def test_device_that_was_logged_out_is_logged_in_again_and_the_bridge_starts_with_it(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    room = await room_with(alice, bridge.user_id())
    before = kept_device(bridge)
    await bridge.stop()
    async with await bridge.log_in() as client:
        await client.call("POST", "logout", "all", json={})

    status, output, _ = await bridge.command("doctor", "--json")

    assert status == 0
    assert "logged in by password again" in output
    after = kept_device(bridge)
    assert (after["device_id"], after["access_token"] == before["access_token"]) == (before["device_id"], False)
    await bridge.start()
    await ask(alice, room)
    assert kept_device(bridge) == after


async def test_room_without_the_power_for_buttons_is_a_warning_that_numbers_still_count(
    new_bridge: NewBridge, new_person: NewPerson
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    levels = {"events": {"m.reaction": 50, "m.room.redaction": 30}}
    strict = await alice.create_room(
        name="Strict", invite=[bridge.user_id()], power_level_content_override=levels, preset="private_chat"
    )
    await wait_until(lambda: is_member(alice.members(strict), bridge.user_id()))
    async with await bridge.log_in() as agent:
        # Whoever made a room may do all in it, although its power levels don't say so.
        await agent.create_room(power_level_content_override={"events_default": 50})

        checks = await examine(bridge, 0)

    assert not_good(checks) == {("assistant", "permissions"): "warn"}
    assert checks["assistant", "permissions"]["found"] == (
        "too little power for buttons (m.reaction takes 50), taking buttons away (m.room.redaction takes 30) in "
        f'"Strict" ({strict}): it has 0'
    )
    assert "numbers still count" in checks["assistant", "permissions"]["advice"]
    assert checks["assistant", "rooms"]["found"] == "in 2 rooms"


async def is_member(members: Any, user_id: str) -> bool:
    return user_id in await members


async def test_configured_rooms_without_the_agent_are_named(new_bridge: NewBridge, new_person: NewPerson) -> None:
    alice = await new_person("Alice")
    room = await alice.create_room()
    bridge = await new_bridge(settings={"assistant": {"rooms": [room, "#nowhere:localhost"], "display_name": "Other"}})

    checks = await examine(bridge, 0)

    assert not_good(checks) == {("assistant", "rooms"): "warn", ("assistant", "display_name"): "warn"}
    found = checks["assistant", "rooms"]["found"]
    assert found == f"in no room yet, not in {room}, and there is no #nowhere:localhost"
    assert bridge.user_id() in checks["assistant", "rooms"]["advice"]


async def test_parked_turn_and_refused_delivery_and_rate_limit_are_warnings(
    new_bridge: NewBridge, new_person: NewPerson, new_proxy: NewProxy
) -> None:
    proxy = await new_proxy()
    backend = {"type": "python", "python": "agent:reply", "attempts": 1}
    bridge = await new_bridge(homeserver=proxy.url, settings={"assistant": {"backend": backend}})
    alice = await new_person("Alice")
    bridge.script({"fail please": {"fails": 9}})
    await bridge.start()
    levels = {"events": {"m.reaction": 50}}
    room = await alice.create_room(invite=[bridge.user_id()], power_level_content_override=levels)
    await wait_until(lambda: is_member(alice.members(room), bridge.user_id()))
    proxy.rule(limit(1), "PUT", SEND, times=1)
    await alice.send_text(room, "ask me")
    await wait_until(lambda: bool(bridge.journal.status()["refused"]))
    await alice.send_text(room, "fail please")
    await wait_until(lambda: len(bridge.journal.status()["parked"]) == 1)

    checks = await examine(bridge, 0)

    assert not_good(checks) == {
        ("assistant", name): "warn" for name in ("permissions", "rate_limit", "turns", "deliveries")
    }
    config = bridge.folder / "config.yaml"
    assert checks["assistant", "turns"]["found"].startswith("1 is parked")
    assert f"`mindbridge journal retry -c {config} TURN`" in checks["assistant", "turns"]["advice"]
    assert checks["assistant", "deliveries"]["found"].startswith("1 refused and 0 uncertain")
    assert f"`mindbridge journal status -c {config}`" in checks["assistant", "deliveries"]["advice"]
    override = f"/_synapse/admin/v1/users/{bridge.user_id()}/override_ratelimit"
    assert override in checks["assistant", "rate_limit"]["advice"]


async def test_read_only_data_home_fails_and_the_kept_device_is_looked_at_all_the_same(
    new_bridge: NewBridge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bridge = await new_bridge("assistant", "helper")
    await bridge.start()
    await bridge.stop()
    device = kept_device(bridge)
    (bridge.folder / "journal" / "devices" / "helper.json").unlink()
    # Whoever runs the tests may be root, to whom nothing is read-only.
    monkeypatch.setattr("os.access", lambda *_: False)
    status = await asyncio.to_thread(main, ["doctor", "--json", "-c", str(bridge.folder / "config.yaml")])

    checks: Checks = {(each["agent"], each["name"]): each for each in json.loads(capsys.readouterr().out)["checks"]}
    assert status == 1
    assert set(not_good(checks)) == {(None, "journal"), ("helper", "login")}
    assert "can't be written" in checks[None, "journal"]["found"]
    assert "logging in was not tried" in checks["helper", "login"]["found"]
    assert kept_device(bridge) == device
    assert not (bridge.folder / "journal" / "devices" / "helper.json").exists()


async def test_homeserver_that_hangs_is_not_waited_for(
    new_bridge: NewBridge, new_proxy: NewProxy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(account, "LOGIN_SECONDS", 0.2)
    monkeypatch.setattr(homeserver_module, "PROBE_SECONDS", 1.0)
    proxy = await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    proxy.rule(hang(asyncio.Event()), "POST", "/login$")
    config = str(bridge.folder / "config.yaml")

    async def failed() -> list[tuple[str, str]]:
        assert await asyncio.to_thread(main, ["doctor", "--json", "-c", config]) == 1
        checks = json.loads(capsys.readouterr().out)["checks"]
        return [(each["name"], each["found"]) for each in checks if each["status"] == "fail"]

    assert await failed() == [("login", "no answer within 0.2 s")]
    proxy.rule(hang(asyncio.Event()), "GET", "/versions$")
    assert await failed() == [("homeserver", f"{proxy.url}/_matrix/client/versions gives no answer within 1 s")]


async def test_rooms_that_can_not_be_asked_are_a_warning(
    new_bridge: NewBridge, new_proxy: NewProxy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rooms, "ASK_SECONDS", 0.2)
    proxy = await new_proxy()
    bridge = await new_bridge(homeserver=proxy.url)
    proxy.rule(hang(asyncio.Event()), "GET", "/joined_rooms$")

    assert await asyncio.to_thread(main, ["doctor", "--json", "-c", str(bridge.folder / "config.yaml")]) == 0

    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [(each["name"], each["status"], each["found"]) for each in checks if each["status"] != "ok"] == [
        ("rooms", "warn", "could not be asked: no answer within 0.2 s")
    ]


# The homeserver alone


@pytest.fixture
async def proxy(new_proxy: NewProxy) -> Proxy:
    return await new_proxy()


async def test_web_server_in_place_of_the_homeserver_is_told_with_the_address_that_it_names(
    proxy: Proxy, homeserver: Homeserver
) -> None:
    proxy.rule(answer(404, HTML), "GET", "/versions$")
    proxy.rule(answer(200, {"m.homeserver": {"base_url": f"{homeserver.url}/"}}), "GET", "/.well-known/matrix/client$")

    (found,) = await homeserver_checks(proxy.url)

    assert (found.status, found.advice) == (
        "fail",
        f"set `homeserver: {homeserver.url}`, which {proxy.url.removeprefix('http://')} itself names as its homeserver",
    )


@pytest.mark.parametrize("body", [HTML, b"[" * 5_000, {}, {"versions": []}, {"versions": "v1.1"}, b"\xff"])
async def test_whatever_is_no_homeserver_is_no_homeserver(proxy: Proxy, body: Any) -> None:
    proxy.rule(answer(200, body), "GET", "/versions$")
    proxy.rule(answer(200, body), "GET", "/.well-known/matrix/client$")

    (found,) = await homeserver_checks(proxy.url)

    assert (found.status, found.found) == (
        "fail",
        f"{proxy.url} is no Matrix homeserver: /_matrix/client/versions gives HTTP status 200",
    )


async def test_server_with_an_error_of_its_own_is_down(proxy: Proxy) -> None:
    proxy.rule(answer(502, HTML), "GET", "/versions$")

    (found,) = await homeserver_checks(proxy.url)

    assert (found.status, found.found) == ("fail", f"{proxy.url} answers with HTTP status 502")


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("Tue, 01 Jan 2019 00:00:00 GMT", ["ok", "warn"]),
        ("Fri, 01 Jan 2199 00:00:00 GMT", ["ok", "warn"]),
        ("yesterday", ["ok"]),
    ],
)
async def test_clock_is_compared_where_the_server_tells_the_time(proxy: Proxy, date: str, expected: list[str]) -> None:
    proxy.rule(answer(200, {"versions": ["v1.1"]}, Date=date), "GET", "/versions$")

    assert [each.status for each in await homeserver_checks(proxy.url)] == expected
