"""Rooms with more open questions than a decision is given: each answer still finds the one that it means."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mindbridge.bridge.admission import decide, interest_of
from mindbridge.events import JoinedRoom, RoomEvent
from mindbridge.ids import EventId, RoomId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.records import Decisions, Interest, Membership, Snapshot
from mindbridge.steps import Step
from tests.journal.sample_rows import ALICE, HELPER, HELPER_USER, NOW, rows, turn
from tests.unit import sample_room
from tests.unit.sample_questions import batch, click, part_of

MANY = 1_200
CROWDED, CALM = RoomId("!crowded"), RoomId("!calm")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """A journal in which the calm room has two open questions, and the crowded one very many that are newer."""
    opened = await Database.open(tmp_path / "home")
    names = [(CALM, f"calm {number}") for number in range(2)]
    names += [(CROWDED, f"crowded {number}") for number in range(MANY)]
    async with opened.transaction(Step.ADMIT) as transaction:
        newest = {"agent": HELPER, "event_id": "$newest", "server_ts": NOW, "judged": 1, "now": NOW}
        await transaction.run("record_sighting", newest | {"seq": len(names)})
        for seq, (room_id, name) in enumerate(names, start=1):
            about: dict[str, Any] = {"question_id": name, "event_id": f"${name}"}
            asked = turn(f"of {name}", room_id=room_id, thread_id=EventId(f"$thread of {name}"))
            fields = {field: getattr(asked, field) for field in asked.__dataclass_fields__}
            await transaction.run("record_turn", fields | {"now": NOW})
            fields |= {"delivery_id": name, "requester": ALICE, "text": f"{name}?", "part": part_of(f"{name}?")}
            await transaction.run("record_question", fields | about | {"now": NOW})
            await transaction.run("open_question", about | {"asked_ts": NOW, "seq": seq})
            await transaction.run("end_turn", {"turn_id": asked.turn_id, "reply": "", "now": NOW})
    store = AdmissionStore(opened)
    await store.record_account(HELPER, HELPER_USER, NOW)
    for room_id in (CROWDED, CALM):
        await store.record_membership(HELPER, Membership(room_id=room_id, state="joined", invited_ts=None))
    yield opened
    await opened.close()


async def admit(database: Database, *shown: tuple[RoomId, RoomEvent]) -> Decisions:
    members = frozenset({HELPER_USER, ALICE})
    joined = tuple(
        JoinedRoom(room_id=room_id, members=members, limited=False, events=(event,)) for room_id, event in shown
    )
    told, roster = batch(joined=joined), sample_room.roster()
    return await AdmissionStore(database).admit(
        HELPER, interest_of(told), "s1", lambda known: decide(HELPER, told, roster, known), NOW
    )


def selections(database: Database) -> list[tuple[str, int]]:
    return rows(database, "SELECT question_id, number FROM selections ORDER BY question_id")


@pytest.mark.parametrize("name", ["crowded 0", f"crowded {MANY - 1}"])
async def test_click_means_its_question_however_many_are_newer(database: Database, name: str) -> None:
    await admit(database, (CROWDED, click("🔍", target=f"${name}")))
    assert selections(database) == [(name, 2)]


@pytest.mark.parametrize("name", ["crowded 0", f"crowded {MANY - 1}"])
async def test_number_in_a_thread_means_its_question_however_many_are_newer(database: Database, name: str) -> None:
    typed = sample_room.message("2", "$typed", thread_id=EventId(f"$thread of {name}"))
    await admit(database, (CROWDED, typed))
    assert selections(database) == [(name, 2)]


@pytest.mark.parametrize("name", ["crowded 0", f"crowded {MANY - 1}"])
async def test_reply_means_its_question_however_many_are_newer(database: Database, name: str) -> None:
    await admit(database, (CROWDED, sample_room.message("2", "$typed", reply_to=EventId(f"${name}"))))
    assert selections(database) == [(name, 2)]


async def test_number_outside_threads_answers_none_of_many(database: Database) -> None:
    await admit(database, (CROWDED, sample_room.message("2", "$typed")))
    assert selections(database) == []


async def test_many_open_questions_of_one_room_hide_none_of_another_in_the_same_response(database: Database) -> None:
    """Of two open questions in the calm room a number outside threads means neither."""
    typed, other = sample_room.message("2", "$typed"), sample_room.message("hm", "$other")
    await admit(database, (CALM, typed), (CROWDED, other))
    assert selections(database) == []


async def test_a_decision_is_given_the_newest_of_each_room_and_no_more_than_it_can_use(database: Database) -> None:
    given: list[Snapshot] = []

    def look(known: Snapshot) -> Decisions:
        given.append(known)
        return Decisions()

    interest = Interest(rooms=(CROWDED, CALM), events=(), transactions=(), targets=(), claims=(), threads=())
    await AdmissionStore(database).admit(HELPER, interest, "s1", look, NOW)
    newest = [f"crowded {number}" for number in range(MANY - 1_000, MANY)]
    assert [each.question_id for each in given[0].questions] == ["calm 0", "calm 1", *newest]
