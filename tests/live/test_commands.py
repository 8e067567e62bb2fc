"""The commands beside a running bridge, and `run` where it can't (contract, section 6)."""

import json
import signal
from typing import Any

import pytest

from mindbridge.cli.main import main
from tests.live.conftest import NewBridge, NewPerson
from tests.live.conversation import ask, is_message, room_with, root_of
from tests.live.waiting import wait_until


async def test_journal_tells_what_happened(
    new_bridge: NewBridge, new_person: NewPerson, capsys: pytest.CaptureFixture[str]
) -> None:
    alice, bridge = await new_person("Alice"), await new_bridge()
    await bridge.start()
    account = bridge.user_id()
    room = await room_with(alice, account)
    question = await ask(alice, room)
    root = root_of(question)
    click = await alice.react(room, question["event_id"], "🔍")
    await alice.wait_for(room, is_message("You chose Careful and manual."))
    late = await alice.react(room, question["event_id"], "🚀")
    await alice.wait_for(room, is_message("already answered"))

    def all_is_sent() -> bool:
        return bool(bridge.journal.status()["agents"][0]["deliveries"] == {"sent": 8})

    await wait_until(all_is_sent)

    config = str(bridge.folder / "config.yaml")

    def told(*arguments: str) -> Any:
        assert main(["journal", *arguments, "-c", config]) == 0
        for_people = capsys.readouterr()
        assert for_people.out.strip()
        assert main(["journal", *arguments, "-c", config, "--json"]) == 0
        for_programs = capsys.readouterr()
        assert for_people.err == for_programs.err == ""
        return json.loads(for_programs.out)

    assert told("status") == {
        "journal": str(bridge.folder / "journal" / "journal.sqlite3"),
        "agents": [
            {
                "agent": "assistant",
                "user_id": account,
                "turns": {"done": 2},
                "questions": {"answered": 1},
                "deliveries": {"sent": 8},
            }
        ],
        "parked": [],
        "refused": [],
        "uncertain": [],
        "behind": [],
        "unread": [],
    }
    asked, answered = bridge.turns()
    selection = answered["selection"]
    entry = {
        "question_id": selection["question_id"],
        "agent": "assistant",
        "room_id": room,
        "thread_id": root,
        "event_id": question["event_id"],
        "state": "answered",
        "close_reason": None,
        "question_text": "What approach would you prefer?",
        "requester": alice.user_id,
        "turn_id": asked["turn_id"],
        "asked_at": selection["asked_at"],
        "options": [
            {"number": 1, "button": "🚀", "label": "Fast and automated", "value": "fast"},
            {"number": 2, "button": "🔍\ufe0f", "label": "Careful and manual", "value": "careful"},
        ],
        "selection": {
            "number": 2,
            "key": "🔍\ufe0f",
            "label": "Careful and manual",
            "value": "careful",
            "answered_by": alice.user_id,
            "answered_at": selection["answered_at"],
            "source_event_id": click,
            "turn_id": answered["turn_id"],
        },
        "expired": False,
    }
    assert told("questions") == [entry]
    shown = told("show", selection["question_id"])
    assert shown["question"] == entry
    assert [each["verdict"] for each in shown["verdicts"]] == ["selected", "already_answered"]
    kinds = ["message", "button", "button", "edit", "redaction", "redaction", "notice"]
    assert sorted(each["kind"] for each in shown["deliveries"]) == sorted(kinds)
    turn = told("show", answered["turn_id"])
    assert (turn["turn"]["selection"], turn["turn"]["state"]) == (selection, "done")
    assert turn["turn"]["reply"] == "You chose Careful and manual."
    status, output, errors = await bridge.command("journal", "show", "nonsense")
    assert (status, output) == (1, "")
    assert "nonsense" in errors

    for event, verdict, question_id in (
        (click, "selected", selection["question_id"]),
        (late, "already_answered", selection["question_id"]),
        (root, None, None),
        ("$nonsense", None, None),
    ):
        why = told("why", event)
        reason = why["reason"]
        assert why == {"event_id": event, "verdict": verdict, "reason": reason, "question_id": question_id}
        assert reason.endswith(".")


async def test_run_says_why_it_can_not(new_bridge: NewBridge) -> None:
    bridge = await new_bridge("assistant", "helper")
    accounts = [bridge.config["agents"][name]["account"] for name in ("assistant", "helper")]
    right = accounts[0]["password"]
    accounts[0]["password"] = accounts[1]["password"] = "certainly-wrong"
    bridge.prepare()
    status, output, errors = await bridge.command("run")
    assert (status, output) == (1, "")
    assert accounts[0]["user_id"] in errors
    assert "password" in errors
    assert "certainly-wrong" not in errors
    assert "Traceback" not in errors

    # One usable account is enough for the other agents to go on.
    accounts[0]["password"] = right
    bridge.prepare()
    await bridge.start()
    second = await bridge.command("run")
    assert (second[0], second[1]) == (1, "")
    assert "another mindbridge" in second[2]
    assert bridge.is_running
    assert await bridge.stop(signal.SIGINT) == 0

    bridge.config["agents"]["assistant"]["respond"] = "sometimes"
    bridge.config["agents"]["helper"]["backend"] = {"type": "http", "url": "http://localhost"}
    bridge.config["acess"] = {}
    bridge.prepare()
    status, output, errors = await bridge.command("run")
    assert (status, output) == (2, "")
    for words in ("config.yaml:", "agents.assistant.respond", "agents.helper.backend", "acess"):
        assert words in errors

    bridge.config.pop("acess")
    bridge.config["agents"]["assistant"].pop("respond")
    bridge.config["agents"]["helper"]["backend"] = {"type": "python", "python": "agent:missing"}
    bridge.prepare()
    status, output, errors = await bridge.command("run")
    assert (status, output) == (2, "")
    assert "missing" in errors


async def test_run_waits_for_a_homeserver_that_is_down_until_it_is_told_to_stop(new_bridge: NewBridge) -> None:
    bridge = await new_bridge(homeserver="http://127.0.0.1:9")
    await bridge.launch()
    await wait_until(lambda: sum("homeserver_unreachable" in line for line in bridge.log) == 2)
    assert await bridge.stop() == 0
