"""Questions that can't be answered any more: closed with their reason, and what was to be sent for them."""

from dataclasses import replace
from typing import Any

import pytest

from mindbridge.ids import DeliveryId, EventId, QuestionId, RoomId, UserId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.closings import close_questions_of_removed
from mindbridge.journal.database import Database
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Closed, CloseReason, NewDelivery, RoomClosed, Unanswered
from mindbridge.journal.turns import TurnStore
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
    everything,
    queue,
    queued,
    record,
    rows,
    seen,
    send_all,
    take,
    turn,
    value,
)

CRITIC_USER = UserId("@critic:example.org")
OTHER_ROOM = RoomId("!other")
LATER = NOW + 60_000


def closing(question: Unanswered) -> NewDelivery:
    """The edit of a question whose agent is gone."""
    return delivery(
        f"{question.delivery_id} closed",
        "edit",
        agent=question.agent,
        room_id=question.room_id,
        question_id=question.question_id,
        target_id=question.delivery_id,
    )


async def ask(database: Database, name: str, *, room_id: RoomId = ROOM) -> None:
    """The helper's question with two buttons, not sent yet."""
    await queue(database, turn(f"of {name}", room_id=room_id))
    asked = asking(name, f"{name}?")
    there = [replace(each, room_id=room_id) for each in asked.deliveries]
    await end(database, f"of {name}", replace(asked, deliveries=there))


async def ask_as_critic(database: Database, name: str) -> None:
    """The critic's question in the same room; its message alone, not sent yet."""
    await queue(database, turn(f"of {name}", agent=CRITIC))
    running = await queued(database, f"of {name}", CRITIC)
    asked = asking(name, f"{name}?", buttons=0)
    own = [replace(each, agent=CRITIC) for each in asked.deliveries]
    await TurnStore(database).end(running, CRITIC_USER, replace(asked, deliveries=own), NOW)


async def post(database: Database, name: str) -> None:
    """Sends the question's message and its first button; both accounts have seen the message then."""
    outbox = Outbox(database)
    for expected in (name, f"{name} button 1"):
        due = await outbox.claim_next(HELPER, NOW)
        assert due is not None
        assert due.delivery_id == expected
        await outbox.acknowledge(due.delivery_id, EventId(f"$event of {expected}"), NOW)
    await admit(database, opened=[seen(name)])


def questions(database: Database) -> dict[str, tuple[str, str | None]]:
    found = rows(database, "SELECT delivery_id, state, close_reason FROM questions ORDER BY seq")
    return {name: (state, reason) for name, state, reason in found}


def deliveries(database: Database) -> dict[str, str]:
    return dict(rows(database, "SELECT delivery_id, state FROM deliveries ORDER BY seq"))


# Redacted


async def test_redacted_question_is_closed_and_its_unsent_buttons_are_dropped(database: Database) -> None:
    await ask(database, "q")
    await post(database, "q")
    await admit(database, closed=[Closed(question_id=QuestionId("question_q"), seq=12)])
    assert rows(database, "SELECT state, close_reason, closed_seq, closed_at FROM questions") == [
        ("closed", "question_redacted", 12, NOW)
    ]
    assert deliveries(database) == {"q": "sent", "q button 1": "sent", "q button 2": "dropped"}


async def test_answered_question_that_is_redacted_keeps_its_answer(database: Database) -> None:
    await ask(database, "q")
    await post(database, "q")
    await take(database)
    before = everything(database)
    await admit(database, closed=[Closed(question_id=QuestionId("question_q"), seq=12)])
    assert everything(database) == before


# Room left or upgraded


async def test_questions_of_a_room_that_was_left_are_closed_and_nothing_is_sent_there_any_more(
    database: Database,
) -> None:
    await ask(database, "q")
    await post(database, "q")
    await ask(database, "posting")
    await record(database, delivery("word"), delivery("elsewhere", room_id=OTHER_ROOM))
    await admit(database, rooms_closed=[RoomClosed(room_id=ROOM, reason="room_left")])
    assert questions(database) == {"q": ("closed", "room_left"), "posting": ("closed", "room_left")}
    assert [each.delivery_id for each in await send_all(database)] == ["elsewhere"]
    assert set(rows(database, "SELECT error FROM deliveries WHERE state = 'dropped'")) == {("the room was left",)}


async def test_questions_of_an_upgraded_room_are_closed_and_their_buttons_dropped_but_words_are_sent(
    database: Database,
) -> None:
    await ask(database, "q")
    await post(database, "q")
    await record(database, delivery("word"))
    await admit(database, rooms_closed=[RoomClosed(room_id=ROOM, reason="room_upgraded")])
    assert questions(database) == {"q": ("closed", "room_upgraded")}
    assert [each.delivery_id for each in await send_all(database)] == ["word"]
    assert deliveries(database)["q button 2"] == "dropped"


@pytest.mark.parametrize("reason", ["room_left", "room_upgraded"])
async def test_room_is_closed_for_the_account_that_saw_it_and_no_other_room_or_agent(
    database: Database, reason: CloseReason
) -> None:
    await ask(database, "here")
    await ask(database, "there", room_id=OTHER_ROOM)
    await ask_as_critic(database, "critics")
    await admit(database, rooms_closed=[RoomClosed(room_id=ROOM, reason=reason)])
    assert questions(database) == {"here": ("closed", reason), "there": ("posting", None), "critics": ("posting", None)}
    assert [each.delivery_id for each in await send_all(database, CRITIC)] == ["critics"]


# Agent removed


async def test_questions_of_an_agent_that_is_gone_are_closed_and_say_so_should_it_come_back(
    database: Database,
) -> None:
    await ask(database, "q")
    await post(database, "q")
    await ask_as_critic(database, "critics")
    assert await close_questions_of_removed(database, [CRITIC], closing, LATER) == 1
    assert questions(database) == {"q": ("closed", "agent_removed"), "critics": ("posting", None)}
    assert value(database, "SELECT closed_at FROM questions WHERE delivery_id = 'q'") == LATER
    (edit,) = await send_all(database)
    assert (edit.delivery_id, edit.kind, edit.target_event) == ("q closed", "edit", "$event of q")


async def test_question_of_a_removed_agent_that_nobody_saw_yet_reads_as_closed_too(database: Database) -> None:
    await ask(database, "q")
    assert await close_questions_of_removed(database, [CRITIC], closing, LATER) == 1
    assert questions(database) == {"q": ("closed", "agent_removed")}
    assert [each.delivery_id for each in await send_all(database)] == ["q", "q closed"]


async def test_configured_agents_and_answered_questions_are_left_alone(database: Database) -> None:
    await ask(database, "q")
    await post(database, "q")
    await take(database)
    await ask_as_critic(database, "critics")
    before = everything(database)
    assert await close_questions_of_removed(database, [CRITIC], closing, LATER) == 0
    assert everything(database) == before


# Another account


async def test_of_an_agents_former_account_nothing_goes_on(database: Database) -> None:
    store, outbox = AdmissionStore(database), Outbox(database)
    for agent, user in ((HELPER, HELPER_USER), (CRITIC, CRITIC_USER)):
        await store.record_account(agent, user, NOW)
    await ask(database, "q")
    await post(database, "q")
    await ask_as_critic(database, "critics")
    await record(database, delivery("word"))
    assert await outbox.claim_next(HELPER, NOW) is not None
    await outbox.hold(HELPER, DeliveryId("nothing"), NOW + 5_000, '{"burst": 2}', NOW)

    assert await store.record_account(HELPER, UserId("@successor:example.org"), LATER) is None

    assert questions(database) == {"q": ("closed", "agent_removed"), "critics": ("posting", None)}
    assert await send_all(database) == []
    dropped: list[tuple[Any, ...]] = [("q button 2", LATER), ("word", LATER)]
    assert rows(database, "SELECT delivery_id, settled_at FROM deliveries WHERE state = 'dropped' ORDER BY seq") == (
        dropped
    )
    assert await outbox.limits(HELPER) == (0, None)
    assert [each.delivery_id for each in await send_all(database, CRITIC)] == ["critics"]


async def test_same_account_goes_on_with_its_questions_deliveries_and_limits(database: Database) -> None:
    store, outbox = AdmissionStore(database), Outbox(database)
    await store.record_account(HELPER, HELPER_USER, NOW)
    await ask(database, "q")
    await outbox.hold(HELPER, DeliveryId("nothing"), NOW + 5_000, '{"burst": 2}', NOW)
    before = everything(database)
    await store.record_account(HELPER, HELPER_USER, LATER)
    assert everything(database) == before
