"""Deliveries: recorded before they are sent, sent in order, settled once."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from typing import Literal

from mindbridge import ids
from mindbridge.ids import AgentName, DeliveryId, EventId, QuestionId, RoomId, TurnId
from mindbridge.journal.database import Database, Row, Transaction
from mindbridge.journal.records import (
    RANKS,
    Acknowledged,
    Delivery,
    DeliveryKind,
    NewDelivery,
    Unanswered,
    parameters_of,
)
from mindbridge.questions.lifecycle import Happening, State, after
from mindbridge.questions.model import ProblemCode
from mindbridge.steps import Step


async def record_deliveries(transaction: Transaction, deliveries: Sequence[NewDelivery], now: int) -> None:
    """Records outgoing events; one that is recorded already stays as it is.

    Those are taken as sent that the room holds already: after a backup was put back, what caused them happens again.
    """
    if not deliveries:
        return
    await transaction.many(
        "record_delivery",
        [parameters_of(delivery) | {"rank": RANKS[delivery.kind], "now": now} for delivery in deliveries],
    )
    recorded = json.dumps([delivery.delivery_id for delivery in deliveries])
    for echo in await transaction.all("echoes_of", {"deliveries": recorded}):
        await _acknowledge(transaction, echo["transaction_id"], echo["event_id"], now)
        found = {"delivery_id": echo["transaction_id"], "asked_ts": echo["server_ts"]}
        await transaction.run("open_question_found", found)


async def withdraw_buttons(transaction: Transaction, after_turns: Mapping[QuestionId, TurnId], now: int) -> None:
    """Takes closed questions' buttons away: unsent ones are dropped, the others redacted once the turn given ended."""
    await transaction.many("drop_unsent_buttons", [{"question_id": each, "now": now} for each in after_turns])
    redactions = [
        NewDelivery(
            delivery_id=ids.delivery_id(row["question_id"], f"redaction of {row['delivery_id']}"),
            agent=AgentName(row["agent"]),
            room_id=row["room_id"],
            kind="redaction",
            content="{}",
            question_id=row["question_id"],
            target_id=DeliveryId(row["delivery_id"]),
            after_turn=after_turns[row["question_id"]],
        )
        for row in await transaction.all("buttons_out", {"questions": json.dumps(list(after_turns))})
    ]
    await record_deliveries(transaction, redactions, now)


def unanswered(row: Row) -> Unanswered:
    """The question of a row."""
    return Unanswered(**{each.name: row[each.name] for each in fields(Unanswered)})


async def _acknowledge(transaction: Transaction, delivery: DeliveryId, event_id: EventId | None, now: int) -> None:
    parameters = {"delivery_id": delivery, "event_id": event_id, "now": now}
    await transaction.run("revive_deliveries", parameters)
    await transaction.run("acknowledge_delivery", parameters)
    await transaction.run("acknowledge_question", parameters)


class Outbox:
    """The journal as sending uses it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim_next(
        self,
        agent: AgentName,
        now: int,
        acknowledged: Acknowledged | None = None,
        *,
        messages_only: bool = False,
        set_aside: Collection[RoomId | QuestionId] = (),
    ) -> Delivery | None:
        """The agent's next delivery that may be sent, noted as attempted; None when nothing is due.

        The one before it is acknowledged in the same transaction: between two sends there is one commit. A delivery
        whose target was refused or dropped has nothing to relate to and is dropped on the way. What goes to a room
        whose join is not through waits for it.

        Args:
            agent: whose account sends.
            now: the time in milliseconds.
            acknowledged: the delivery before it, where the server has taken it.
            messages_only: leave buttons, edits and redactions for later.
            set_aside: rooms to which, and questions for which, nothing is sent for now.
        """
        most_rank = RANKS["message"] if messages_only else max(RANKS.values())
        due = {"agent": agent, "most_rank": most_rank, "set_aside": json.dumps(list(set_aside))}
        async with self._database.transaction(Step.CLAIM) as transaction:
            if acknowledged is not None:
                await _acknowledge(transaction, acknowledged.delivery_id, acknowledged.event_id, now)
            while True:
                row = await transaction.one("next_delivery", due)
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
                        tried_before=row["state"] == "attempted",
                        attempted_since=row["attempted_since"],
                    )
                reason = f"what it relates to was {row['target_state']} without an event"
                dropped = {"delivery_id": row["delivery_id"], "state": "dropped", "error": reason, "now": now}
                await transaction.run("settle_delivery", dropped)

    async def acknowledge(self, delivery: DeliveryId, event_id: EventId | None, now: int) -> None:
        """The server has the delivery, as `event_id`; None where it only said that it has it already."""
        async with self._database.transaction(Step.ACKNOWLEDGE) as transaction:
            await _acknowledge(transaction, delivery, event_id, now)

    async def found(self, delivery: DeliveryId, event_id: EventId, server_ts: int, now: int) -> None:
        """A delivery that was tried before is in the room, as `event_id`.

        A question in it counts as seen, and is to be compared with the server: what people did meanwhile may have come
        before the journal knew the question's event.
        """
        async with self._database.transaction(Step.FIND) as transaction:
            await _acknowledge(transaction, delivery, event_id, now)
            await transaction.run("open_question_found", {"delivery_id": delivery, "asked_ts": server_ts})

    async def acknowledged_events(self, events: Sequence[EventId]) -> frozenset[EventId]:
        """Those of the events that some delivery is known to be."""
        async with self._database.reading() as transaction:
            rows = await transaction.all("acknowledged_events", {"events": json.dumps(events)})
        return frozenset(EventId(row["event_id"]) for row in rows)

    async def give_up(self, delivery: DeliveryId, error: str, now: int) -> None:
        """It can't be told whether the server took the delivery; it is not sent again, and an agent is told."""
        await self._settle(delivery, "uncertain", error, now, lambda _: None)

    async def refuse(
        self, delivery: DeliveryId, error: str, now: int, without_buttons: Callable[[Unanswered], NewDelivery]
    ) -> None:
        """The server refused the delivery for good; a question in it has failed, and its agent will be told.

        Where it is a button, the question's other buttons are dropped, and the message says that numbers count. A
        delivery that is settled already, by its echo in a sync response, stays as it is.
        """
        await self._settle(delivery, "refused", error, now, without_buttons)

    async def _settle(
        self,
        delivery: DeliveryId,
        state: Literal["refused", "uncertain"],
        error: str,
        now: int,
        without_buttons: Callable[[Unanswered], NewDelivery | None],
    ) -> None:
        async with self._database.transaction(Step.REFUSE) as transaction:
            parameters = {"delivery_id": delivery, "state": state, "error": error, "now": now}
            if not await transaction.run("settle_delivery", parameters):
                return
            question = await transaction.one("question_of_delivery", {"delivery_id": delivery})
            if question is not None:
                await _fail(transaction, question, error, now, failed=state == "refused")
            asked = await transaction.one("question_of_button", {"delivery_id": delivery})
            if asked is None or asked["state"] not in {State.POSTING, State.OPEN}:
                return
            edit = without_buttons(unanswered(asked))
            if edit is not None:
                await transaction.run("drop_unsent_buttons", {"question_id": asked["question_id"], "now": now})
                await record_deliveries(transaction, [edit], now)

    async def hold(self, agent: AgentName, delivery: DeliveryId | None, until: int, budget: str, now: int) -> None:
        """The server asked the agent's account to wait until this time.

        Redactions that wait are dropped: what is left of the account's budget is for what people need.

        Args:
            agent: whose account it is.
            delivery: what the server did certainly not take; None where an earlier try may have reached it.
            until: the time in milliseconds.
            budget: what was learned of the server's limits, as JSON.
            now: the time in milliseconds.
        """
        async with self._database.transaction(Step.HOLD) as transaction:
            await transaction.run("release_delivery", {"delivery_id": delivery})
            await transaction.run("hold_account", {"agent": agent, "wait_until": until, "budget": budget, "now": now})
            await transaction.run("drop_redactions", {"agent": agent, "now": now})

    async def learn(self, agent: AgentName, budget: str) -> None:
        """Keeps what was learned of the server's limits for the agent's account, as JSON."""
        async with self._database.transaction(Step.LEARN) as transaction:
            await transaction.run("learn_budget", {"agent": agent, "budget": budget})

    async def sent_since(self, agent: AgentName, time: int) -> list[tuple[int, DeliveryKind]]:
        """When the agent's account sent something after `time`, and what."""
        async with self._database.reading() as transaction:
            rows = await transaction.all("sent_since", {"agent": agent, "time": time})
        return [(row["settled_at"], row["kind"]) for row in rows]

    async def limits(self, agent: AgentName) -> tuple[int, str | None]:
        """The time until which the agent's account must not send (0 when it may), and what was learned as JSON."""
        async with self._database.reading() as transaction:
            row = await transaction.one("account_of", {"agent": agent})
        return (0, None) if row is None else (int(row["wait_until"]), row["budget"])


async def _fail(transaction: Transaction, question: Row, error: str, now: int, *, failed: bool) -> None:
    """Tells the agent that its question is not in the room, or that this can't be told."""
    state = after(State(question["state"]), Happening.REFUSED)
    if state is not State.FAILED:
        return
    if failed:
        closing = {"question_id": question["question_id"], "state": state, "seq": None, "now": now}
        await transaction.run("close_question", closing | {"reason": None})
    said = "was not posted" if failed else "may not be in the room"
    problem = {"code": ProblemCode.QUESTION_NOT_POSTED, "message": f"The question {said}: {error}"}
    place = {key: question[key] for key in ("agent", "room_id", "thread_id", "turn_id")}
    await transaction.run("record_problem", problem | place)
