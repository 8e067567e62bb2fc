"""What `mindbridge journal` tells has the fields that docs/commands.md shows, in that order."""

import json
from pathlib import Path
from typing import Any

import pytest

from mindbridge.bridge.closing import edit_without_buttons
from mindbridge.bridge.replies import outcome_of
from mindbridge.cli.main import main
from mindbridge.ids import DeliveryId, EventId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Judged, Opened, Unread
from mindbridge.journal.turns import TurnStore
from mindbridge.questions.answers import Verdict
from tests.journal.sample_rows import (
    ALICE,
    HELPER,
    HELPER_USER,
    NOW,
    ROOM,
    admit,
    answer,
    delivery,
    queue,
    queued,
    record,
    send_all,
    sighting,
    turn,
)
from tests.unit.doc_pages import page

REPLY = '```interactive\n{"question": "Deploy now?", "options": [{"emoji": "🚀", "label": "Now"}, "Tonight"]}\n```'
CONFIGURATION = """\
homeserver: https://matrix.example.org
journal: ./home
access: {users: ["*"]}
agents:
  helper: {account: {user_id: "@helper:example.org", password: pw}, backend: {type: demo}}
"""


@pytest.fixture
async def question_id(database: Database) -> str:
    """A journal with an answered question, a parked turn, a refused delivery and an event that can't be read yet."""
    store, outbox = TurnStore(database), Outbox(database)
    await AdmissionStore(database).record_account(HELPER, HELPER_USER, NOW)
    await queue(database, turn("one"), turn("two"))
    asking = await queued(database, "one")
    outcome = outcome_of(asking, REPLY, 5)
    assert outcome.question is not None
    question_id = outcome.question.question_id
    await store.end(asking, HELPER_USER, outcome, NOW)
    message, *_ = await send_all(database)
    asked = EventId(f"$event of {message.delivery_id}")
    caused, selected = answer(question_id)
    judged = Judged(
        event_id=selected.source_event_id,
        question_id=question_id,
        sender=ALICE,
        verdict=Verdict.SELECTED,
        reason="It was the first answer to the open question.",
    )
    await admit(
        database,
        opened=[Opened(question_id=question_id, event_id=asked, asked_ts=NOW, seq=1)],
        turns=[caused],
        selections=[selected],
        verdicts=[judged],
    )
    hidden = Unread(event_id=EventId("$hidden"), room_id=ROOM, thread_id=None, sender=ALICE, source="{}", seq=9)
    await admit(database, sightings=[sighting(hidden.event_id, hidden.seq, judged=False)], unread=[hidden])
    await store.park(turn("two").turn_id, "it failed", delivery("parked", "notice"), NOW)
    await record(database, delivery("unwanted"))
    await outbox.refuse(DeliveryId("unwanted"), "not here", NOW, edit_without_buttons)
    return question_id


class Told:
    """What the commands print about the journal."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._config = folder / "config.yaml"
        self._config.write_text(CONFIGURATION)
        self._capsys = capsys

    def __call__(self, *arguments: str) -> str:
        assert main(["journal", *arguments, "-c", str(self._config)]) == 0
        return self._capsys.readouterr().out

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    return Told(tmp_path, capsys)


def shown(action: str, number: int = 0) -> Any:
    return json.loads(page("docs/commands.md").section(f"mindbridge journal {action}").fences("json")[number].content)


def keys(value: object) -> object:
    """The names of fields, in order, at every level; of a list those of its first entry."""
    if isinstance(value, dict):
        return [(name, keys(each)) for name, each in value.items() if name not in COUNTED] or None
    return keys(value[0]) if isinstance(value, list) and value else None


COUNTED = {"turns", "questions", "deliveries"}  # of an agent, by state: which there are depends on what happened


def test_questions_are_told_as_shown(question_id: str, told: Told) -> None:
    (question,) = told.json("questions")

    assert question["question_id"] == question_id
    assert keys([question]) == keys(shown("questions"))


def test_questions_are_exported_one_a_line_as_shown(question_id: str, told: Told) -> None:
    (line,) = told("export").splitlines()
    exported = json.loads(line)

    assert (exported["question_id"], exported["revision"]) == (question_id, 1)
    assert exported["answered_at"] == exported["selection"]["answered_at"]
    assert keys(exported) == keys(shown("export"))
    assert told("export", "--json").splitlines() == [line]


@pytest.mark.usefixtures("question_id")
def test_status_is_told_as_shown(told: Told) -> None:
    status = told.json("status")

    assert status["parked"]
    assert status["refused"]
    assert status["unread"]
    assert keys(status) == keys(shown("status"))
    assert [set(agent) for agent in status["agents"]] == [set(shown("status")["agents"][0])]


def test_question_is_told_as_shown(question_id: str, told: Told) -> None:
    found, expected = told.json("show", question_id), shown("show")

    assert list(found) == list(expected)
    assert list(found["question"]) == list(expected["question"])
    assert keys(found["deliveries"]) == keys(expected["deliveries"])
    assert keys(found["verdicts"]) == keys(expected["verdicts"])


@pytest.mark.usefixtures("question_id")
def test_turn_is_told_as_shown(told: Told) -> None:
    found, expected = told.json("show", "turn_one"), shown("show", 1)

    assert list(found) == list(expected)
    assert keys(found["turn"]) == keys(expected["turn"])
    assert keys(found["deliveries"]) == keys(expected["deliveries"])


def test_reason_is_told_as_shown(question_id: str, told: Told) -> None:
    assert keys(told.json("why", "$click")) == keys(shown("why"))
    assert told("why", "$click").splitlines() == [
        "selected: It was the first answer to the open question.",
        f"question {question_id}",
    ]
