"""`mindbridge doctor`: each verdict, and how it is told (contract, section 6)."""

import json
import math
import os
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from pydantic import ValidationError

from mindbridge.bridge.budget import Budget
from mindbridge.cli import doctor
from mindbridge.cli.main import main
from mindbridge.config.load import load
from mindbridge.config.programs import blame_what_is_absent
from mindbridge.doctor.backend import backend_check
from mindbridge.doctor.findings import Check, Finding, Status, told
from mindbridge.doctor.homeserver import clock_checks
from mindbridge.doctor.records import deliveries_check, no_record, rate_limit_check, turns_check
from mindbridge.doctor.rooms import Rooms, display_name_check, permissions_check, rooms_check, what_it_lacks
from mindbridge.doctor.storage import LEAST_FREE_BYTES, disk_check, home_fault, journal_check
from mindbridge.ids import AgentName, RoomId, UserId
from mindbridge.journal.condition import NEWEST_VERSION, Condition
from mindbridge.journal.database import FILE_NAME, JournalDamaged
from mindbridge.matrix.errors import Unreachable
from mindbridge.matrix.probe import Answering
from mindbridge.matrix.standing import Power, power_in
from tests.unit.config_files import SMALL, load_text, with_backend, write
from tests.unit.doc_pages import codes_of, page

ONE, ACCOUNT = AgentName("one"), UserId("@one:example.org")
LOBBY, LAB = RoomId("!lobby"), RoomId("!lab")
NOW = 1_796_040_000_000
MINUTE, HOUR = 60_000, 3_600_000
RECORD = no_record(ONE, ACCOUNT)
ENOUGH = Power(own=0, messages=0, buttons=0, redactions=0)


# How it is told


def test_findings_are_told_in_aligned_lines_with_what_to_do_below(tmp_path: Path) -> None:
    findings = [
        Finding("homeserver", None, Status.OK, "is there"),
        Finding("rate_limit", ONE, Status.WARN, "two\nlines", "lift it"),
        Finding("backend", ONE, Status.FAIL, "is not there", "make it"),
    ]

    assert doctor.lines(load_text(tmp_path, SMALL), findings) == [
        "ok    homeserver  is there",
        "",
        "one (@one:example.org)",
        "warn  rate limit  two lines",
        "                  -> lift it",
        "fail  backend     is not there",
        "                  -> make it",
        "",
        "1 failed, 1 to look at, 1 good",
    ]


def test_error_is_parted_into_what_is_wrong_and_what_to_do() -> None:
    error = JournalDamaged("it is damaged: here; there; take the backup")

    assert told("journal", None, error) == Finding(
        "journal", None, Status.FAIL, "it is damaged: here; there", "take the backup"
    )
    assert told("journal", None, JournalDamaged("broken")) == Finding("journal", None, Status.FAIL, "broken")


def test_wrong_configuration_is_told_as_check_tells_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "-c", str(write(tmp_path, SMALL + "nonsense: 1\n"))]) == 2

    output = capsys.readouterr()
    assert output.out == ""
    assert "config.yaml:11:1 nonsense: " in output.err
    assert list(tmp_path.iterdir()) == [tmp_path / "config.yaml"]


def test_every_check_is_documented() -> None:
    rows = page("docs/commands.md").section("mindbridge doctor").rows()

    assert [name for code, *_ in rows for name in codes_of(code)] == list(get_args(Check))


# Homeserver


@pytest.mark.parametrize(
    ("ahead_seconds", "status", "words"),
    [
        (59.0, "ok", "the same"),
        (-59.0, "ok", "the same"),
        (3_600.0, "warn", "3600 s behind"),
        (-90.0, "warn", "90 s ahead"),
    ],
)
def test_clock_may_differ_by_a_minute(ahead_seconds: float, status: str, words: str) -> None:
    (found,) = clock_checks(Answering(("v1.1",), 0.1, ahead_seconds))

    assert found.status == status
    assert words in found.found


def test_clock_of_a_server_that_does_not_tell_it_is_left_out() -> None:
    assert clock_checks(Answering(("v1.1",), 0.1, None)) == ()


# Rooms


def test_display_name_is_compared_with_the_configured_one() -> None:
    assert display_name_check(ONE, "One", "One").status is Status.OK
    other, missing = display_name_check(ONE, "One", "T\u202ewo"), display_name_check(ONE, "One", None)

    assert (other.status, other.found) == (Status.WARN, '"T\\u202ewo" in place of "One"')
    assert (missing.status, missing.found) == (Status.WARN, 'none in place of "One"')


def test_agent_in_no_room_is_told_whom_to_invite() -> None:
    found = rooms_check(ONE, ACCOUNT, Rooms((), (), ()))

    assert found == Finding("rooms", ONE, Status.OK, "in no room yet", f"invite {ACCOUNT} to a room")
    assert rooms_check(ONE, ACCOUNT, Rooms((LOBBY, LAB), (), ())) == Finding("rooms", ONE, Status.OK, "in 2 rooms")


def test_configured_rooms_that_are_missing_are_named() -> None:
    found = rooms_check(ONE, ACCOUNT, Rooms((LOBBY,), ("#lab:example.org",), ("#none:example.org",)))

    assert found.status is Status.WARN
    assert found.found == "in 1 room, not in #lab:example.org, and there is no #none:example.org"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({}, ENOUGH),
        ({"events_default": 10, "users_default": 5}, Power(5, 10, 10, 10)),
        ({"users": {ACCOUNT: "50"}, "events": {"m.reaction": "25"}}, Power(50, 0, 25, 0)),
        ({"users": {"@two:example.org": 100}, "events": {"m.room.redaction": 7}}, replace(ENOUGH, redactions=7)),
        ({"events": {"m.room.message": 1, "m.room.encrypted": 9}, "redact": 50}, replace(ENOUGH, messages=1)),
    ],
)
def test_power_levels_are_read_with_the_defaults_of_the_specification(content: dict[str, Any], expected: Power) -> None:
    assert power_in(content, ACCOUNT) == expected


@pytest.mark.parametrize("content", [{"users": []}, {"events": {"m.reaction": "many"}}, {"events_default": None}])
def test_power_levels_of_another_shape_are_refused(content: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        power_in(content, ACCOUNT)


def test_what_an_account_lacks_is_each_thing_that_takes_more_than_it_has() -> None:
    assert what_it_lacks(Power(own=10, messages=10, buttons=11, redactions=50)) == [
        "buttons (m.reaction takes 11)",
        "taking buttons away (m.room.redaction takes 50)",
    ]
    assert what_it_lacks(Power(own=math.inf, messages=10, buttons=11, redactions=50)) == []


def test_rooms_without_enough_power_are_told_by_name_and_the_rest_by_number() -> None:
    lacking = {RoomId(f"!{number}"): replace(ENOUGH, buttons=50) for number in range(5)}
    names = {RoomId("!0"): 'Lob"by', RoomId("!1"): None}

    found = permissions_check(ONE, lacking, names, [], looked_at=20, joined=40)

    assert found.status is Status.WARN
    assert found.found == (
        'too little power for buttons (m.reaction takes 50) in "Lob\\"by" (!0): it has 0; '
        "buttons (m.reaction takes 50) in !1: it has 0; something in 3 more"
    )
    assert "numbers still count" in str(found.advice)


def test_rooms_with_enough_power_are_told_with_how_many_were_looked_at() -> None:
    some = permissions_check(ONE, {}, {}, [], looked_at=20, joined=40)
    all_of_them = permissions_check(ONE, {}, {}, [], looked_at=3, joined=3)

    assert (some.status, some.found.rpartition(" in ")[2]) == (Status.OK, "the first 20 of its 40 rooms")
    assert (all_of_them.status, all_of_them.found.rpartition(" in ")[2]) == (Status.OK, "all its rooms")


def test_room_that_could_not_be_asked_is_a_warning() -> None:
    found = permissions_check(ONE, {}, {}, [Unreachable("no answer")], looked_at=3, joined=3)

    assert (found.status, found.found) == (Status.WARN, "1 of 3 rooms could not be asked: no answer")


# What the journal knows


def test_account_that_was_never_limited_is_good() -> None:
    assert rate_limit_check(RECORD, NOW).status is Status.OK
    assert rate_limit_check(replace(RECORD, limited_at=NOW - 25 * HOUR), NOW).status is Status.OK


def test_account_that_was_limited_lately_is_told_how_to_lift_it() -> None:
    budget = json.dumps(asdict(replace(Budget.unknown(), burst=10.2, per_second=0.2)))

    found = rate_limit_check(replace(RECORD, limited_at=NOW - 3 * MINUTE, budget=budget), NOW)

    assert (found.status, found.found) == (
        Status.WARN,
        "the homeserver limited the account 3 minutes ago; it takes about 10 events at once, then one in 5.0 s",
    )
    assert f"`POST /_synapse/admin/v1/users/{ACCOUNT}/override_ratelimit`" in str(found.advice)
    assert '`{"messages_per_second": 0, "burst_count": 0}`' in str(found.advice)
    assert "`rc_message`" in str(found.advice)


@pytest.mark.parametrize(
    ("limited_at", "words"),
    [(NOW - 10_000, "10 s ago"), (NOW + 10_000, "10 s ago"), (NOW - 5 * HOUR, "5 hours ago")],
)
def test_how_long_ago_an_account_was_limited_is_told_in_words(limited_at: int, words: str) -> None:
    found = rate_limit_check(replace(RECORD, limited_at=limited_at, wait_until=NOW + 40_000), NOW)

    assert found.found == f"the homeserver limited the account {words}; nothing is sent for another 40 s"


def test_parked_turns_are_told_with_the_commands_that_show_and_retry_them() -> None:
    assert turns_check(RECORD, "").status is Status.OK
    found = turns_check(replace(RECORD, parked=2), " -c other.yaml")

    assert (found.status, found.found) == (Status.WARN, "2 are parked: the agent's program failed")
    assert "`mindbridge journal status -c other.yaml`" in str(found.advice)
    assert "`mindbridge journal retry -c other.yaml TURN`" in str(found.advice)


@pytest.mark.parametrize(("refused", "uncertain"), [(1, 0), (0, 1), (2, 3)])
def test_deliveries_that_failed_are_told_with_the_command_that_shows_them(refused: int, uncertain: int) -> None:
    assert deliveries_check(RECORD, "").status is Status.OK
    found = deliveries_check(replace(RECORD, refused=refused, uncertain=uncertain), "")

    assert found.status is Status.WARN
    assert found.found == f"{refused} refused and {uncertain} uncertain within the last 7 days"
    assert "`mindbridge journal status`" in str(found.advice)


# The data home


def test_home_that_is_not_there_yet_can_be_made_and_is_not(tmp_path: Path) -> None:
    home = tmp_path / "a" / "journal"

    assert home_fault(home) is None
    found = journal_check(home, None, None)
    assert (found.status, "`mindbridge run` makes it" in found.found) == (Status.OK, True)
    assert disk_check(home).name == "disk"
    assert list(tmp_path.iterdir()) == []


def test_file_in_place_of_the_home_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("")

    for home in (tmp_path / "journal", tmp_path / "journal" / "below"):
        found = home_fault(home)
        assert found is not None
        assert (found.status, found.found) == (Status.FAIL, f"{tmp_path / 'journal'} is a file")


@pytest.mark.parametrize("name", ["x" * 300, "config.yaml", "config.yaml/below"])
def test_whatever_stands_in_place_of_the_home_fails_the_journal_and_ends_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    text = SMALL.replace("https://matrix.example.org", "http://127.0.0.1:9") + f"journal: {name}\n"

    assert main(["doctor", "--json", "-c", str(write(tmp_path, text))]) == 1

    output = capsys.readouterr()
    statuses = {each["name"]: each["status"] for each in json.loads(output.out)["checks"]}
    assert output.err == ""
    assert (statuses["homeserver"], statuses["journal"], statuses["backend"]) == ("fail", "fail", "ok")
    assert list(tmp_path.iterdir()) == [tmp_path / "config.yaml"]


def test_home_of_another_user_is_a_fault_since_nobody_else_could_read_what_is_made_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / FILE_NAME).write_text("")
    owner = os.geteuid()
    assert home_fault(tmp_path) is None

    monkeypatch.setattr(os, "geteuid", lambda: owner + 4_321)

    found = home_fault(tmp_path)
    assert found is not None
    assert found.status is Status.FAIL
    assert f"this is {owner + 4_321}" in found.found
    assert "sudo -u" in str(found.advice)


def test_home_that_another_user_made_for_the_bridge_is_its_own_unless_root_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Owned(NamedTuple):
        st_uid: int
        st_mode: int

    mode = tmp_path.stat().st_mode
    monkeypatch.setattr(Path, "stat", lambda *_, **__: Owned(1_234, mode))
    monkeypatch.setattr(Path, "exists", lambda path: path == tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: True)

    monkeypatch.setattr(os, "geteuid", lambda: 4_321)
    of_bridge = home_fault(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    of_root = home_fault(tmp_path)

    assert of_bridge is None
    assert of_root is not None


def test_home_or_journal_that_can_not_be_written_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / FILE_NAME
    path.write_text("")

    for closed in (tmp_path, path):
        monkeypatch.setattr(os, "access", lambda each, _, closed=closed: each != closed)
        found = home_fault(tmp_path)
        assert found is not None
        assert (found.status, found.found) == (Status.FAIL, f"{closed} can't be written")


def test_journal_that_is_sound_is_told_with_who_runs_on_it(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    newest, older, newer = (Condition(NEWEST_VERSION + change, ()) for change in (0, -1, 1))

    assert journal_check(tmp_path, newest, None).found == f"{path} is sound"
    assert journal_check(tmp_path, newest, 12).found == f"{path} is sound; a bridge runs on it (process 12)"
    assert f"which `mindbridge run` brings to {NEWEST_VERSION}" in journal_check(tmp_path, older, None).found
    too_new = journal_check(tmp_path, newer, None)
    assert (too_new.status, too_new.advice) == (Status.FAIL, "install the newer version again")


@pytest.mark.parametrize(("free", "status"), [(LEAST_FREE_BYTES, "ok"), (LEAST_FREE_BYTES - 1, "warn")])
def test_disk_without_room_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, status: str
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free))

    assert disk_check(tmp_path / "none" / "yet").status == status


# Backends


def backend_found(folder: Path, *lines: str) -> Finding:
    loaded = load(write(folder, with_backend(*lines)), os.environ)
    blame_what_is_absent(loaded.tree, loaded.config, os.environ)
    return backend_check(ONE, loaded.config.agents["one"].backend, loaded.tree.faults)


def test_program_that_is_there_is_good_and_not_run(tmp_path: Path) -> None:
    program = tmp_path / "agent.sh"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o700)

    found = backend_found(tmp_path, "type: command", "command: [./agent.sh, --key, secret-of-it]")

    assert found == Finding("backend", ONE, Status.OK, "the program ./agent.sh is there")
    assert not (tmp_path / "ran").exists()


def test_program_that_is_missing_fails_with_its_line(tmp_path: Path) -> None:
    found = backend_found(tmp_path, "type: command", "command: [no-such-program-anywhere]")

    assert found.status is Status.FAIL
    assert found.found == "agents.one.backend.command[0] names a program that is in no folder of PATH"
    assert found.advice == "it must be installed, or named with its folder (./…) (line 11)"


def test_program_where_nobody_may_look_fails(tmp_path: Path) -> None:
    found = backend_found(tmp_path, "type: command", f"command: [./{'x' * 300}]")

    assert found.status is Status.FAIL
    assert found.advice == "it must be one that this user may run (line 11)"


def test_module_is_looked_for_and_not_imported(tmp_path: Path) -> None:
    (tmp_path / "an_agent.py").write_text("raise SystemExit\n")

    there = backend_found(tmp_path, "type: python", "python: an_agent:reply")
    missing = backend_found(tmp_path, "type: python", "python: no_agent:reply")

    assert there == Finding("backend", ONE, Status.OK, "the module of an_agent:reply is there")
    assert missing.status is Status.FAIL


def test_fault_of_another_agent_is_not_told_of_this_one(tmp_path: Path) -> None:
    second = SMALL.partition("agents:\n")[2].replace("one", "one-more")
    text = SMALL + second.replace("type: demo", "type: command\n      command: [./none]")
    loaded = load(write(tmp_path, text), os.environ)
    blame_what_is_absent(loaded.tree, loaded.config, os.environ)

    statuses = [
        backend_check(AgentName(name), agent.backend, loaded.tree.faults).status
        for name, agent in loaded.config.agents.items()
    ]

    assert statuses == [Status.OK, Status.FAIL]
