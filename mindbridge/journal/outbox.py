"""Deliveries: recorded before they are sent, sent in order, settled once."""

from collections.abc import Sequence
from dataclasses import asdict

from mindbridge import ids
from mindbridge.ids import AgentName, DeliveryId, EventId, QuestionId, TurnId
from mindbridge.journal.database import Database, Transaction
from mindbridge.journal.records import RANKS, Acknowledged, Delivery, NewDelivery
from mindbridge.questions.lifecycle import Happening, State, after
from mindbridge.questions.model import ProblemCode


async def record_deliveries(transaction: Transaction, deliveries: Sequence[NewDelivery], now: int) -> None:
    """Records outgoing events; one that is recorded already stays as it is."""
    await transaction.many(
        "record_delivery", [asdict(delivery) | {"rank": RANKS[delivery.kind], "now": now} for delivery in deliveries]
    )


async def withdraw_buttons(transaction: Transaction, question: QuestionId, after_turn: TurnId, now: int) -> None:
    """Takes a closed question's buttons away: unsent ones are dropped, the others redacted once `after_turn` ended."""
    await transaction.run("drop_unsent_buttons", {"question_id": question, "now": now})
    redactions = [
        NewDelivery(
            delivery_id=ids.delivery_id(question, f"redaction of {row['delivery_id']}"),
            agent=AgentName(row["agent"]),
            room_id=row["room_id"],
            kind="redaction",
            content="{}",
            question_id=question,
            target_id=DeliveryId(row["delivery_id"]),
            after_turn=after_turn,
        )
        for row in await transaction.all("buttons_out", {"question_id": question})
    ]
    await record_deliveries(transaction, redactions, now)


async def _acknowledge(transaction: Transaction, delivery: DeliveryId, event_id: EventId | None, now: int) -> None:
    parameters = {"delivery_id": delivery, "event_id": event_id, "now": now}
    await transaction.run("acknowledge_delivery", parameters)
    await transaction.run("acknowledge_question", parameters)


class Outbox:
    """The journal as sending uses it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim_next(self, agent: AgentName, now: int, acknowledged: Acknowledged | None = None) -> Delivery | None:
        """The agent's next delivery that may be sent, noted as attempted; None when nothing is due.

        The one before it is acknowledged in the same transaction: between two sends there is one commit. A delivery
        whose target was refused or dropped has nothing to relate to and is dropped on the way.
        """
        async with self._database.transaction() as transaction:
            if acknowledged is not None:
                await _acknowledge(transaction, acknowledged.delivery_id, acknowledged.event_id, now)
            while True:
                row = await transaction.one("next_delivery", {"agent": agent})
                if row is None:
                    return None
                if row["target_id"] is None or row["target_event"] is not None:
                    await transaction.run("attempt_delivery", {"delivery_id": row["delivery_id"]})
                    return Delivery(
                        delivery_id=row["delivery_id"],
                        agent=row["agent"],
                        room_id=row["room_id"],
                        kind=row["kind"],
                        content=row["content"],
                        question_id=row["question_id"],
                        target_event=row["target_event"],
                    )
                reason = f"what it relates to was {row['target_state']} without an event"
                dropped = {"delivery_id": row["delivery_id"], "state": "dropped", "error": reason, "now": now}
                await transaction.run("settle_delivery", dropped)

    async def acknowledge(self, delivery: DeliveryId, event_id: EventId | None, now: int) -> None:
        """The server has the delivery, as `event_id`; None where it only said that it has it already."""
        async with self._database.transaction() as transaction:
            await _acknowledge(transaction, delivery, event_id, now)

    async def refuse(self, delivery: DeliveryId, error: str, now: int) -> None:
        """The server refused the delivery for good; a question in it has failed, and its agent will be told.

        A delivery that is settled already, by its echo in a sync response, stays as it is.
        """
        async with self._database.transaction() as transaction:
            parameters = {"delivery_id": delivery, "state": "refused", "error": error, "now": now}
            if not await transaction.run("settle_delivery", parameters):
                return
            question = await transaction.one("question_of_delivery", {"delivery_id": delivery})
            state = None if question is None else after(State(question["state"]), Happening.REFUSED)
            if question is None or state is not State.FAILED:
                return
            await transaction.run(
                "close_question", {"question_id": question["question_id"], "state": state, "seq": None}
            )
            problem = {"code": ProblemCode.QUESTION_NOT_POSTED, "message": f"The question was not posted: {error}"}
            place = {key: question[key] for key in ("agent", "room_id", "thread_id", "turn_id")}
            await transaction.run("record_problem", problem | place)

    async def hold(self, agent: AgentName, until: int) -> None:
        """The server asked the agent's account to wait until this time."""
        async with self._database.transaction() as transaction:
            await transaction.run("hold_account", {"agent": agent, "wait_until": until})

    async def held_until(self, agent: AgentName) -> int:
        """The time until which the agent's account must not send; 0 when it may."""
        async with self._database.transaction() as transaction:
            row = await transaction.one("account_of", {"agent": agent})
        return 0 if row is None else int(row["wait_until"])
