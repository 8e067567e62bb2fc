"""What `mindbridge journal` tells of deliveries that can't be told and of questions that were closed."""

from dataclasses import replace
from pathlib import Path

import pytest

from mindbridge.cli.main import main
from mindbridge.ids import DeliveryId, EventId, QuestionId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Acknowledged, Closed, Decisions, RoomClosed, Unread
from mindbridge.journal.reports import Reports
from tests.journal.sample_rows import (
    ALICE,
    HELPER,
    HELPER_USER,
    NOTHING,
    NOW,
    ROOM,
    admit,
    asking,
    end,
    queue,
    seen,
    turn,
)
from tests.journal.test_backup import CONFIGURATION
from tests.unit.sample_questions import part_of


async def ask(database: Database, name: str = "q") -> None:
    """The helper asks a question, whose message is not sent yet."""
    await queue(database, turn(f"of {name}"))
    asked = asking(name, f"{name}?", buttons=0)
    assert asked.question is not None
    await end(database, f"of {name}", replace(asked, question=replace(asked.question, part=part_of(f"{name}?"))))


async def test_status_lists_what_can_not_be_told_until_it_is_seen_after_all(database: Database) -> None:
    await AdmissionStore(database).record_account(HELPER, HELPER_USER, NOW)
    await ask(database)
    reports = Reports(database.path.parent)
    assert reports.status()["uncertain"] == []

    assert await Outbox(database).claim_next(HELPER, NOW) is not None
    await Outbox(database).give_up(DeliveryId("q"), "too much came since", NOW)

    status = reports.status()
    assert status["uncertain"] == [
        {"delivery_id": "q", "agent": HELPER, "room_id": ROOM, "kind": "message", "error": "too much came since"}
    ]
    assert status["refused"] == []
    assert status["agents"][0]["deliveries"] == {"uncertain": 1}

    await admit(database, acknowledged=[Acknowledged(delivery_id=DeliveryId("q"), event_id=EventId("$q"))])
    assert reports.status()["uncertain"] == []
    assert reports.status()["agents"][0]["deliveries"] == {"sent": 1}


async def test_list_of_questions_for_people_tells_why_one_is_closed(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIGURATION)
    await ask(database)
    await admit(database, opened=[seen()])
    await admit(database, closed=[Closed(question_id=QuestionId("question_q"), seq=9)])

    assert main(["journal", "questions", "-c", str(config)]) == 0

    assert capsys.readouterr().out.endswith("  q?  -> closed: question_redacted\n")


async def test_questions_tell_why_they_are_closed(database: Database) -> None:
    store = AdmissionStore(database)
    await store.record_account(HELPER, HELPER_USER, NOW)
    for number, name in enumerate(("redacted", "otherwise", "left"), start=1):
        await ask(database, name)
        await admit(database, opened=[seen(name, number)])
    reports = Reports(database.path.parent)
    assert {each["close_reason"] for each in reports.questions()} == {None}

    await admit(database, closed=[Closed(question_id=QuestionId("question_redacted"), seq=9)])
    await store.close_compared(QuestionId("question_otherwise"), "posted_otherwise", NOW)
    await admit(database, rooms_closed=[RoomClosed(room_id=ROOM, reason="room_left")])

    told = [(each["question_text"], each["state"], each["close_reason"]) for each in reports.questions()]
    assert told == [
        ("left?", "closed", "room_left"),
        ("otherwise?", "closed", "posted_otherwise"),
        ("redacted?", "closed", "question_redacted"),
    ]
    assert [each["close_reason"] for each in reports.export()] == ["question_redacted", "posted_otherwise", "room_left"]


async def test_status_tells_rooms_that_are_behind_and_events_that_wait_for_their_keys(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.yaml").write_text(CONFIGURATION)
    store = AdmissionStore(database)
    await store.record_account(HELPER, HELPER_USER, NOW)
    await store.admit(HELPER, NOTHING, "s", lambda _: Decisions(), NOW, behind={ROOM: "s"})
    hidden = Unread(event_id=EventId("$hidden"), room_id=ROOM, thread_id=None, sender=ALICE, source="{}", seq=1)
    await admit(database, unread=[hidden])

    status = Reports(database.path.parent).status()
    assert status["behind"] == [{"agent": HELPER, "room_id": ROOM}]
    assert status["unread"] == [{"agent": HELPER, "room_id": ROOM, "event_id": "$hidden", "sender": ALICE}]

    assert main(["journal", "status", "-c", str(tmp_path / "config.yaml")]) == 0
    told = capsys.readouterr().out
    assert f"behind {ROOM} of helper: its history can't be read\n" in told
    assert f"unread $hidden from {ALICE} in {ROOM} of helper: its key has not come\n" in told
