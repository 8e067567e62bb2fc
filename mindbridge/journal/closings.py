"""Closing questions that can't be answered any more, and what was still to be sent for them."""

from collections.abc import Callable, Collection

from mindbridge.ids import AgentName, QuestionId
from mindbridge.journal.database import Database, Row, Transaction
from mindbridge.journal.outbox import record_deliveries, unanswered
from mindbridge.journal.records import CloseReason, NewDelivery, RoomClosed, Unanswered
from mindbridge.questions.lifecycle import State
from mindbridge.steps import Step


async def close_one(
    transaction: Transaction, question: QuestionId, reason: CloseReason, now: int, *, seq: int | None = None
) -> None:
    """Closes a question; buttons that were not sent yet are dropped. `seq`: the place of the event that closed it."""
    closing = {"question_id": question, "state": State.CLOSED, "reason": reason, "seq": seq, "now": now}
    await transaction.run("close_question", closing)
    await transaction.run("drop_unsent_buttons", closing)


async def close_room(transaction: Transaction, agent: AgentName, closed: RoomClosed, now: int) -> None:
    """Closes the agent's open questions in a room that was left or upgraded."""
    place = {"agent": agent, "room_id": closed.room_id, "reason": closed.reason, "seq": None, "now": now}
    await transaction.run("close_questions_of_room", place)
    if closed.reason == "room_left":
        await transaction.run("drop_deliveries_of_room", place | {"error": "the room was left"})
        await transaction.run("forget_behind", place)
        await transaction.run("forget_unread_of_room", place)
    else:
        await transaction.run("drop_unsent_buttons_of_room", place)


async def close_all_of_agent(transaction: Transaction, agent: AgentName, reason: CloseReason, now: int) -> list[Row]:
    """Closes all open questions of an agent; gives what they were."""
    rows = await transaction.all("open_questions_of_agent", {"agent": agent})
    for row in rows:
        await close_one(transaction, row["question_id"], reason, now)
    return rows


async def close_questions_of_removed(
    database: Database, agents: Collection[AgentName], closing_edit: Callable[[Unanswered], NewDelivery], now: int
) -> int:
    """Closes the open questions of all agents that are not configured any more.

    Args:
        database: the journal.
        agents: those that are configured.
        closing_edit: makes the edit that is sent should the agent come back.
        now: the time in milliseconds.

    Returns:
        How many questions were closed.
    """
    async with database.transaction(Step.CLOSE_REMOVED) as transaction:
        closed = 0
        for row in await transaction.all("agents_of_open_questions"):
            agent = AgentName(row["agent"])
            if agent not in agents:
                rows = await close_all_of_agent(transaction, agent, "agent_removed", now)
                edits = [closing_edit(unanswered(each)) for each in rows]
                await record_deliveries(transaction, edits, now)
                closed += len(rows)
    return closed
