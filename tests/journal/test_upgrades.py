"""Upgrades of rooms, from the tombstone until the replacement is known to be one or not."""

import pytest

from mindbridge.ids import EventId, RoomId, UserId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.records import Membership, MembershipState, RecordedUpgrade, RoomClosed, Upgrade
from tests.journal.sample_rows import (
    CRITIC,
    HELPER,
    HELPER_USER,
    NOW,
    ROOM,
    admit,
    asking,
    delivery,
    end,
    queue,
    seen,
    send_all,
    take,
    turn,
)

NEW_ROOM = RoomId("!new")
CLOSED = RoomClosed(room_id=ROOM, reason="room_upgraded")


def upgrade(event_id: str = "$tombstone", *, joined_for_it: bool = True) -> Upgrade:
    return Upgrade(event_id=EventId(event_id), room_id=ROOM, replacement=NEW_ROOM, joined_for_it=joined_for_it)


def membership(state: MembershipState) -> Membership:
    return Membership(room_id=NEW_ROOM, state=state, invited_ts=None)


def recorded(
    *, had_questions: bool, joined_for_it: bool = True, membership: MembershipState | None = None
) -> RecordedUpgrade:
    return RecordedUpgrade(
        event_id=EventId("$tombstone"),
        room_id=ROOM,
        replacement=NEW_ROOM,
        joined_for_it=joined_for_it,
        had_questions=had_questions,
        membership=membership,
    )


@pytest.fixture
async def store(database: Database) -> AdmissionStore:
    store = AdmissionStore(database)
    await store.record_account(HELPER, HELPER_USER, NOW)
    return store


async def ask(database: Database) -> None:
    await queue(database, turn("of q"))
    await end(database, "of q", asking("q", "q?", buttons=0))
    await send_all(database)
    await admit(database, opened=[seen("q")])


async def test_upgrade_of_a_room_with_open_questions_is_kept_with_them(
    store: AdmissionStore, database: Database
) -> None:
    await ask(database)
    await admit(database, rooms_closed=[CLOSED], upgrades=[upgrade()], memberships=[membership("accepted")])
    assert await store.upgrades(HELPER) == [recorded(had_questions=True, membership="accepted")]
    assert await store.upgrades(CRITIC) == []


async def test_upgrade_of_a_room_whose_question_was_answered_has_none(
    store: AdmissionStore, database: Database
) -> None:
    await ask(database)
    await take(database)
    await admit(database, rooms_closed=[CLOSED], upgrades=[upgrade()])
    assert await store.upgrades(HELPER) == [recorded(had_questions=False)]


async def test_upgrade_that_is_shown_again_is_what_it_was(store: AdmissionStore, database: Database) -> None:
    await ask(database)
    await admit(database, rooms_closed=[CLOSED], upgrades=[upgrade()])
    await admit(database, rooms_closed=[CLOSED], upgrades=[upgrade(joined_for_it=False)])
    assert await store.upgrades(HELPER) == [recorded(had_questions=True)]


async def test_who_is_invited_to_the_replacement_has_another_reason_to_be_there(
    store: AdmissionStore, database: Database
) -> None:
    await admit(database, upgrades=[upgrade()], memberships=[membership("accepted")])
    await admit(database, memberships=[membership("joined")])
    assert await store.upgrades(HELPER) == [recorded(had_questions=False, membership="joined")]
    await admit(database, memberships=[membership("accepted")])
    assert await store.upgrades(HELPER) == [recorded(had_questions=False, joined_for_it=False, membership="accepted")]


async def test_settled_upgrade_is_gone_and_what_is_to_be_said_is_sent(
    store: AdmissionStore, database: Database
) -> None:
    await admit(database, upgrades=[upgrade(), upgrade("$another")])
    word = delivery("moved", "notice", room_id=NEW_ROOM)
    for _ in range(2):
        await store.settle_upgrade(HELPER, upgrade("$another"), [word], NOW)
    assert await store.upgrades(HELPER) == [recorded(had_questions=False)]
    assert [each.delivery_id for each in await send_all(database)] == ["moved"]


async def test_upgrades_of_an_agents_former_account_are_gone(store: AdmissionStore, database: Database) -> None:
    await admit(database, upgrades=[upgrade()])
    await store.record_account(HELPER, HELPER_USER, NOW)
    assert await store.upgrades(HELPER) == [recorded(had_questions=False)]
    await store.record_account(HELPER, UserId("@successor:example.org"), NOW)
    assert await store.upgrades(HELPER) == []
