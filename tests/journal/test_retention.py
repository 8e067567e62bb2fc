"""What is settled loses its texts after `keep` and is forgotten later; what is not settled stays."""

import asyncio
import json
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from mindbridge import steps
from mindbridge.bridge.admission import decide, interest_of
from mindbridge.bridge.closing import edit_without_buttons
from mindbridge.bridge.replies import outcome_of
from mindbridge.events import RoomEvent
from mindbridge.ids import DeliveryId, EventId, QuestionId, TurnId
from mindbridge.journal import retention
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import FILE_NAME, QUERIES, Database, JournalDamaged, JournalError, migrations
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Decisions, Membership
from mindbridge.journal.reports import Reports
from mindbridge.journal.retention import Retention
from mindbridge.journal.turns import TurnStore
from mindbridge.questions.answers import Verdict
from mindbridge.steps import Side, Step
from tests.journal.sample_rows import (
    HELPER,
    NOW,
    ROOM,
    admit,
    delivery,
    everything,
    outcome,
    queue,
    record,
    rows,
    send_all,
    sighting,
    turn,
    value,
)
from tests.unit.sample_questions import THREAD, batch, click
from tests.unit.sample_room import BOB, HELPER_USER, STRANGER, message, roster

DAY = 24 * 60 * 60 * 1000
REPLY = """SECRET prose

```interactive
{"question": "SECRET question?", "options": [{"emoji": "🚀", "label": "SECRET label", "value": "SECRET value"},
                                             {"emoji": "none", "label": "SECRET too"}]}
```
"""


async def forget(database: Database, days: float, keep: int = 90) -> Mapping[str, int]:
    """Forgets what is due so many days after `NOW`, when everything here happens; the bridge ran all the time."""
    return await retaining(database, NOW + int(days * DAY), ran=days, keep=keep).forget()


def retaining(database: Database, now: int, *, ran: float, keep: int = 90) -> Retention:
    """Retention at a time by the bridge's clock, that many days after it found the journal's newest event."""
    seconds = chain([0.0], repeat(ran * DAY / 1000))
    return Retention(database, timedelta(days=keep), lambda: now, lambda: next(seconds))


async def see(database: Database, *events: RoomEvent, now: int = NOW) -> Decisions:
    """The helper's account is shown these events."""
    response = batch(*events)
    store = AdmissionStore(database)
    return await store.admit(
        HELPER, interest_of(response), "s1", lambda known: decide(HELPER, response, roster(), known), now
    )


@pytest.fixture(autouse=True)
async def _joined(database: Database) -> None:
    await AdmissionStore(database).record_account(HELPER, HELPER_USER, NOW)
    await AdmissionStore(database).record_membership(HELPER, Membership(room_id=ROOM, state="joined", invited_ts=None))


async def run_turn(database: Database, reply: str, now: int = NOW) -> TurnId:
    """The oldest turn that waits gets this reply, which is sent."""
    store = TurnStore(database)
    running, _ = (await store.runnable(HELPER))[0]
    await store.context(running)
    assert await store.end(running, HELPER_USER, outcome_of(running, reply, 5), now)
    await send_all(database)
    return running.turn_id


async def ask(database: Database, number: int = 1) -> tuple[QuestionId, EventId]:
    """Alice says something and is asked a question, which is seen in the room."""
    said = message("SECRET request", f"$request {number}", thread_id=THREAD, mentions=frozenset({HELPER_USER}))
    await see(database, replace(said, sender_name="SECRET name"))
    running = await run_turn(database, REPLY)
    ((question, event),) = rows(
        database,
        f"SELECT question_id, event_id FROM questions WHERE turn_id = '{running}'",  # noqa: S608 -- own id
    )
    await see(database, message("?", event, HELPER_USER, thread_id=THREAD, question_id=question))
    return question, event


async def answered(database: Database, number: int = 1) -> tuple[QuestionId, EventId]:
    """A question that Alice answered; all that follows is done and sent."""
    question, event = await ask(database, number)
    decided = await see(database, click("🚀", event, f"$click {number}"))
    assert [each.verdict for each in decided.verdicts] == [Verdict.SELECTED]
    await run_turn(database, "SECRET thanks")
    return question, event


def states(database: Database, table: str) -> Counter[str]:
    return Counter(state for (state,) in rows(database, f"SELECT state FROM {table}"))  # noqa: S608 -- own names


# Texts


async def test_texts_of_what_is_settled_are_gone_from_the_file_itself_after_their_time(database: Database) -> None:
    await answered(database)
    assert set(states(database, "turns")) == {"done"}
    assert set(states(database, "deliveries")) == {"sent"}
    files = [database.path, database.path.with_name(f"{database.path.name}-wal")]

    assert await forget(database, 89) == {}
    assert b"SECRET" in b"".join(file.read_bytes() for file in files)

    await forget(database, 90.01)

    assert all(b"SECRET" not in file.read_bytes() for file in files)


async def test_ids_and_verdicts_stay_when_texts_go(database: Database) -> None:
    question, event = await answered(database)
    before = everything(database)

    await forget(database, 8, keep=7)

    after = everything(database)
    kept = {"accounts", "memberships", "sightings", "verdicts", "utterances", "echoes", "facts"}
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert {name: len(after[name]) for name in ("turns", "questions", "selections", "deliveries")} == {
        name: len(before[name]) for name in ("turns", "questions", "selections", "deliveries")
    }
    assert after["messages"] == []
    assert rows(database, "SELECT question_id, event_id, state FROM questions") == [(question, event, "answered")]
    assert await forget(database, 9, keep=7) == {}


async def test_journal_tells_of_an_expired_question_what_is_still_known(database: Database) -> None:
    question, event = await answered(database)
    reports = Reports(database.path.parent)
    (before,) = reports.questions()
    assert before["expired"] is False

    await forget(database, 8, keep=7)

    (after,) = reports.questions()
    answer = before["selection"] | {"label": None, "value": None}
    assert after == before | {"question_text": "", "options": [], "selection": answer, "expired": True}
    assert list(reports.export()) == [after | {"answered_at": answer["answered_at"], "revision": 1}]
    shown = reports.show(event)
    assert shown is not None
    assert shown["question"] == after
    assert [each["verdict"] for each in shown["verdicts"]] == ["selected"]
    asked = reports.show(before["turn_id"])
    assert asked is not None
    emptied = {name: asked["turn"][name] for name in ("text", "reply", "selection", "error", "expired")}
    assert emptied == {"text": "", "reply": None, "selection": None, "error": None, "expired": True}
    why = reports.why("$click 1")
    assert (why["verdict"], why["question_id"]) == ("selected", question)


async def test_late_answers_to_an_expired_question_select_nothing_and_break_nothing(database: Database) -> None:
    _, event = await answered(database)
    await forget(database, 8, keep=7)

    late = await see(database, click("🚀", event, "$late"), click("1️⃣", event, "$keycap", BOB))
    typed = await see(database, message("1", "$typed", thread_id=THREAD), message("1", "$reply", reply_to=event))

    assert [each.verdict for each in late.verdicts] == [Verdict.NOT_AN_OPTION] * 2
    assert {each.reason for each in late.verdicts} == {"The question's options are no longer kept."}
    assert typed.verdicts == []
    assert [each.text for each in typed.turns] == ["1"]
    assert late.selections == typed.selections == []
    assert late.deliveries == typed.deliveries == []


async def test_problem_goes_with_the_turn_that_was_told_and_not_before(database: Database) -> None:
    await ask(database)
    assert value(database, "SELECT COUNT(*) FROM problems WHERE told_in IS NULL") == 1
    await forget(database, 8, keep=7)
    assert value(database, "SELECT COUNT(*) FROM problems") == 1

    await see(database, message("go on", "$more", thread_id=THREAD))
    await run_turn(database, "yes")
    await forget(database, 8, keep=7)

    assert value(database, "SELECT COUNT(*) FROM problems") == 0


# What is not settled


async def test_what_is_not_settled_stays_however_old_it_is(database: Database) -> None:
    question, event = await ask(database)
    await queue(database, turn("queued", text="SECRET"), turn("parked", thread_id=None, text="SECRET"))
    await TurnStore(database).park(TurnId("turn_parked"), "SECRET error", delivery("notice", "notice"), NOW)
    await record(database, delivery("waiting", content='{"body":"SECRET"}'))
    await see(database, click("🚀", event, "$stranger", STRANGER), click("🎈", event, "$balloon"))
    tables = ("questions", "problems", "verdicts")
    unsettled = "SELECT * FROM turns WHERE state <> 'done'", "SELECT * FROM deliveries WHERE settled_at IS NULL"
    before, waiting = everything(database), [rows(database, each) for each in unsettled]

    await forget(database, 400, keep=1)

    after = everything(database)
    assert {name: after[name] for name in tables} == {name: before[name] for name in tables}
    assert [rows(database, each) for each in unsettled] == waiting
    assert value(database, "SELECT COUNT(*) FROM messages") == 2
    asked = rows(database, f"SELECT kind, event_id IS NULL FROM deliveries WHERE question_id = '{question}'")  # noqa: S608 -- own id
    assert sorted(asked) == [("button", 0), ("button", 0), ("message", 0)]

    late = await see(database, click("🚀", event, "$answer"))
    (selected,) = late.selections
    assert (selected.question_id, selected.number) == (question, 1)
    again = await see(database, click("🚀", event, "$stranger", STRANGER))
    assert again.verdicts == []


async def test_number_outside_threads_counts_for_an_old_open_question_as_it_did(database: Database) -> None:
    await ask(database)
    said = message("by the way", "$newer", HELPER_USER, thread_id=THREAD)
    await see(database, said, message("indeed", "$newest", BOB))

    await forget(database, 400, keep=1)

    assert (await see(database, message("1", "$number"))).selections == []


async def test_settled_question_stays_while_something_of_it_waits(database: Database) -> None:
    _, event = await ask(database)
    await see(database, click("🚀", event, "$click"))
    assert states(database, "questions") == {"answered": 1}

    await forget(database, 400, keep=1)

    ((state, text),) = rows(database, "SELECT state, text FROM questions")
    assert (state, text) == ("answered", "")
    store = TurnStore(database)
    ((waiting, _),) = await store.runnable(HELPER)
    assert json.loads(waiting.selection or "")["question_text"] == "SECRET question?"
    assert [each.kind for each in await send_all(database)] == ["edit"]
    assert await store.end(waiting, HELPER_USER, outcome_of(waiting, "thanks", 5), NOW)

    await forget(database, 400, keep=1)

    assert states(database, "questions") == {"answered": 1}
    assert [each.kind for each in await send_all(database)] == ["message", "redaction", "redaction"]

    await forget(database, 400, keep=1)

    assert value(database, "SELECT COUNT(*) FROM questions") == 0
    assert value(database, "SELECT COUNT(*) FROM deliveries") == 0


# Whole rows


@pytest.mark.parametrize(("keep", "stays", "goes"), [(1, 89, 91), (90, 89, 91), (200, 199, 201)])
async def test_ids_go_after_90_days_or_keep_if_that_is_longer(
    database: Database, keep: int, stays: int, goes: int
) -> None:
    await answered(database)
    await Outbox(database).refuse(DeliveryId("unknown"), "?", NOW, edit_without_buttons)
    counts = {name: len(found) for name, found in everything(database).items()}

    await forget(database, stays, keep)

    tables = ("turns", "questions", "selections", "deliveries", "verdicts", "sightings", "utterances")
    assert {name: value(database, f"SELECT COUNT(*) FROM {name}") for name in tables} == {  # noqa: S608 -- own names
        name: counts[name] for name in tables
    }

    await forget(database, goes, keep)

    left = {name: value(database, f"SELECT COUNT(*) FROM {name}") for name in tables}  # noqa: S608 -- own names
    assert left == dict.fromkeys(tables, 0) | {"sightings": 1}
    assert value(database, "SELECT COUNT(*) FROM problems") == 0
    assert Reports(database.path.parent).why("$click 1")["verdict"] is None
    assert rows(database, "PRAGMA foreign_key_check") == []


async def test_numbers_of_sightings_go_on_when_all_are_forgotten(database: Database) -> None:
    await ask(database)
    last = value(database, "SELECT MAX(seq) FROM sightings")

    await forget(database, 100)
    await see(database, message("hello", "$new", thread_id=THREAD))

    assert value(database, "SELECT seq FROM sightings WHERE event_id = '$new'") == last + 1


async def test_reaction_to_a_forgotten_question_is_of_no_question(database: Database) -> None:
    _, event = await answered(database)
    await forget(database, 91)

    late = await see(database, click("🚀", event, "$late"))

    assert [(each.verdict, each.question_id) for each in late.verdicts] == [(Verdict.UNKNOWN_QUESTION, None)]


async def test_event_has_no_verdict_when_it_could_be_judged_anew(database: Database) -> None:
    _, event = await answered(database)
    late = click("🔍", event, "$late")
    await see(database, late, message("newer", "$newer"))
    for days in (89, 91):
        await forget(database, days)
        orphans = "SELECT event_id FROM verdicts WHERE event_id NOT IN (SELECT event_id FROM sightings)"
        assert rows(database, orphans) == []

    again = await see(database, late)

    assert [each.verdict for each in again.verdicts] == [Verdict.UNKNOWN_QUESTION]


async def test_file_does_not_grow_when_as_much_is_forgotten_as_comes(database: Database) -> None:
    pages = []
    for month in range(20):
        now = NOW + month * 30 * DAY
        for number in range(20):
            mention = frozenset({HELPER_USER})
            await see(database, message("words " * 100, f"$said {month} {number}", mentions=mention), now=now)
            await run_turn(database, "reply " * 100, now)
        await forget(database, month * 30, keep=30)
        pages.append(value(database, "PRAGMA page_count"))

    assert pages[0] < pages[3]
    assert pages[-1] < pages[6] * 1.1


async def test_what_an_older_journal_holds_without_a_time_is_as_old_as_its_migration(tmp_path: Path) -> None:
    home = tmp_path / "older"
    now = time.time_ns() // 1_000_000
    home.mkdir()
    with closing(sqlite3.connect(home / FILE_NAME)) as connection:
        connection.executescript(f"{migrations()[0][1]} PRAGMA user_version = 1;")
        connection.execute("INSERT INTO messages (room_id, sender, text) VALUES ('!room', '@alice:example.org', 'hi')")
        for event in ("$one", "$two"):
            sighted = "INSERT INTO sightings (agent, event_id, server_ts, judged) VALUES ('helper', ?, ?, 1)"
            connection.execute(sighted, (event, now))
        connection.commit()
    migrated = await Database.open(home)

    for days, left in ((0, (1, 2)), (89, (1, 2)), (91, (0, 1))):
        await retaining(migrated, now + days * DAY, ran=days).forget()
        counted = "SELECT (SELECT COUNT(*) FROM messages), (SELECT COUNT(*) FROM sightings)"
        assert rows(migrated, counted) == [left]
    await migrated.close()


# The clock


async def test_clock_that_is_ahead_forgets_nothing_early(database: Database) -> None:
    await answered(database)
    before = everything(database)

    assert await retaining(database, NOW + 730 * DAY, ran=0).forget() == {}
    assert await retaining(database, NOW + 730 * DAY, ran=89).forget() == {}

    assert everything(database) == before
    assert await retaining(database, NOW + 730 * DAY, ran=90.01).forget() != {}


async def test_time_that_passed_counts_from_the_newest_event(database: Database) -> None:
    await answered(database)
    days = 0.0
    working = Retention(database, timedelta(days=90), lambda: NOW + 730 * DAY, lambda: days * DAY / 1000)
    assert await working.forget() == {}
    days = 60
    newest = [replace(sighting("$newest", 100), server_ts=NOW + 60 * DAY)]
    await admit(database, sightings=newest)
    assert await working.forget() == {}
    days = 89
    assert await working.forget() == {}
    days = 90.01
    assert await working.forget() != {}


async def test_newest_events_time_lets_what_is_due_go_at_once(database: Database) -> None:
    await answered(database)
    await admit(database, sightings=[replace(sighting("$newest", 100), server_ts=NOW + 91 * DAY)])
    assert await retaining(database, NOW + 92 * DAY, ran=0).forget() != {}


async def test_event_that_says_it_is_of_the_future_forgets_nothing_early(database: Database) -> None:
    await answered(database)
    await admit(database, sightings=[replace(sighting("$newest", 100), server_ts=NOW + 730 * DAY)])
    assert await retaining(database, NOW + DAY, ran=1).forget() == {}


async def test_without_any_event_nothing_is_forgotten(database: Database) -> None:
    await queue(database, turn())
    await run_turn(database, "reply")
    assert await retaining(database, NOW + 730 * DAY, ran=400).forget() == {}


# Small transactions


async def test_it_is_done_in_small_transactions_between_which_others_come_in(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "MOST_ROWS", 10)
    turns = [turn(str(number), thread_id=EventId(f"${number}")) for number in range(45)]
    await queue(database, *turns)
    for _ in turns:
        await run_turn(database, "reply")
    await admit(database, sightings=[sighting("$newest", 1)])
    reached: list[Step] = []

    def watch(step: Step, side: Side) -> None:
        if side == "after":
            reached.append(step)

    monkeypatch.setattr(steps, "watcher", watch)

    async def go_on() -> None:
        for number in range(3):
            await admit(database, position=f"s{number}")

    forgotten, _ = await asyncio.gather(forget(database, 100), go_on())

    assert forgotten == {
        "turns_emptied": 45,
        "deliveries_emptied": 45,
        "messages": 90,
        "turns": 45,
        "deliveries": 45,
    }
    assert reached.count(Step.FORGET) >= sum(forgotten.values()) / 10
    last_admitted = len(reached) - reached[::-1].index(Step.ADMIT)
    assert Step.FORGET in reached[reached.index(Step.ADMIT) : last_admitted]
    assert reached[last_admitted:].count(Step.FORGET) > 10


LOOKS = [name for name in QUERIES if re.search(r"_to_(empty|forget)$", name)]


@pytest.mark.parametrize("name", [*LOOKS, "sightings_in_order", "forget_utterances", "forget_turns", "forget_problems"])
def test_no_step_looks_through_a_whole_table(database: Database, name: str) -> None:
    parameters: dict[str, Any] = dict.fromkeys(re.findall(r":(\w+)", QUERIES[name]), 1)
    if "chosen" in parameters:
        parameters["chosen"] = "[]"
    with closing(sqlite3.connect(database.path)) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {QUERIES[name]}", parameters)]

    scanned = [step for step in plan if step.startswith("SCAN") and "json_each" not in step and "VIRTUAL" not in step]
    assert [step for step in scanned if "LIST SUBQUERY" not in step] == []
    assert "TEMP B-TREE" not in " ".join(plan)


# The task


async def test_failure_is_told_and_tried_again_and_damage_ends_it(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retention, "EVERY_SECONDS", 0)
    faults = iter([JournalError("full"), JournalError("full"), JournalDamaged("broken")])

    async def fail(_self: Retention) -> Mapping[str, int]:
        raise next(faults)

    monkeypatch.setattr(Retention, "forget", fail)

    with pytest.raises(JournalDamaged):
        await Retention(database, timedelta(days=1), lambda: NOW).run()

    assert [each.getMessage().split()[0] for each in caplog.records] == ["not_forgotten"] * 2


async def test_it_forgets_at_start(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    await queue(database, turn())
    await admit(database, sightings=[replace(sighting("$now", 1), server_ts=NOW + 2 * DAY)])
    await TurnStore(database).end((await TurnStore(database).runnable(HELPER))[0][0], HELPER_USER, outcome(), NOW)
    task = asyncio.create_task(Retention(database, timedelta(days=1), lambda: NOW + 2 * DAY).run())
    async with asyncio.timeout(10):
        while not caplog.records:  # noqa: ASYNC110 -- nothing else tells
            await asyncio.sleep(0)
    task.cancel()

    assert caplog.messages == ["forgotten turns_emptied=1 messages=1"]
