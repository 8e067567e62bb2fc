"""Turns: queued by admission, run in order within a thread, ended in one transaction with all that follows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from mindbridge.ids import AgentName, DeliveryId, EventId, QuestionId, TurnId, UserId
from mindbridge.journal.database import Database, Row
from mindbridge.journal.outbox import record_deliveries, unanswered, withdraw_buttons
from mindbridge.journal.records import NewDelivery, NewQuestion, QueuedTurn, TurnContext, Unanswered, parameters_of
from mindbridge.questions.lifecycle import Happening, State, after
from mindbridge.questions.model import Problem, ProblemCode
from mindbridge.steps import Step

HISTORY_ENTRIES = 50
OPEN_QUESTIONS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyPart:
    """One message of a reply as it is remembered for the history."""

    delivery_id: DeliveryId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """All that a turn's reply leads to. `supersede`: the edit that closes an unanswered question with the same text."""

    reply: str
    parts: Sequence[ReplyPart]
    question: NewQuestion | None
    deliveries: Sequence[NewDelivery]
    problems: Sequence[Problem]
    supersede: Callable[[Unanswered], NewDelivery]


class TurnStore:
    """The journal as running turns uses it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def runnable(self, agent: AgentName) -> list[tuple[QueuedTurn, int]]:
        """The first queued turn of each of the agent's threads, with the time at which it is due."""
        async with self._database.reading() as transaction:
            rows = await transaction.all("heads_of_threads", {"agent": agent})
        return [(_queued(row), int(row["due_at"])) for row in rows]

    async def context(self, turn: QueuedTurn) -> TurnContext:
        """What the turn's agent is told of its thread, as it is now; problems that no turn was told go to this one."""
        place = {"agent": turn.agent, "room_id": turn.room_id, "thread_id": turn.thread_id, "turn_id": turn.turn_id}
        async with self._database.transaction(Step.START_TURN) as transaction:
            history = await transaction.all(
                "history_of_thread", place | {"source_event_id": turn.source_event_id, "limit": HISTORY_ENTRIES}
            )
            questions = await transaction.all("open_questions_of_thread", place | {"limit": OPEN_QUESTIONS})
            await transaction.run("tell_problems", place)
            problems = await transaction.all("problems_told", {"turn_id": turn.turn_id})
        return TurnContext(
            history=tuple((UserId(row["sender"]), row["text"]) for row in reversed(history)),
            open_questions=tuple(
                (QuestionId(row["question_id"]), EventId(row["event_id"]), row["text"]) for row in reversed(questions)
            ),
            problems=tuple(Problem(ProblemCode(row["code"]), row["message"]) for row in problems),
        )

    async def end(self, turn: QueuedTurn, sender: UserId, outcome: Outcome, now: int) -> bool:
        """Ends the turn: its reply, question, deliveries and problems become true together, once.

        Args:
            turn: the turn that was run.
            sender: the agent's own account.
            outcome: all that its reply leads to.
            now: the time in milliseconds.

        Returns:
            False when the turn had ended before; then nothing is changed.
        """
        place = {"agent": turn.agent, "room_id": turn.room_id, "thread_id": turn.thread_id, "turn_id": turn.turn_id}
        async with self._database.transaction(Step.END_TURN) as transaction:
            ended = {"turn_id": turn.turn_id, "reply": outcome.reply, "now": now}
            if not await transaction.run("end_turn", ended):
                return False
            await transaction.many(
                "record_problem", [place | {"code": each.code, "message": each.message} for each in outcome.problems]
            )
            await transaction.many(
                "record_reply_part",
                [place | {"sender": sender, "now": now} | parameters_of(part) for part in outcome.parts],
            )
            deliveries = list(outcome.deliveries)
            if outcome.question is not None:
                same_text = place | {"text": outcome.question.text}
                for row in await transaction.all("questions_asked_anew", same_text):
                    state = after(State(row["state"]), Happening.ASKED_ANEW)
                    closing = {"question_id": row["question_id"], "state": state, "seq": None, "now": now}
                    await transaction.run("close_question", closing | {"reason": None})
                    await withdraw_buttons(transaction, {row["question_id"]: turn.turn_id}, now)
                    deliveries.append(outcome.supersede(unanswered(row)))
                await transaction.run("record_question", place | parameters_of(outcome.question) | {"now": now})
            await record_deliveries(transaction, deliveries, now)
            await transaction.run("requeue_parked_turns", {"agent": turn.agent})
        return True

    async def delay(self, turn: TurnId, error: str, due_at: int) -> None:
        """Notes a failed attempt; the turn, and those behind it in its thread, wait until `due_at`."""
        async with self._database.transaction(Step.DELAY_TURN) as transaction:
            await transaction.run("delay_turn", {"turn_id": turn, "error": error, "due_at": due_at})

    async def park(self, turn: TurnId, error: str, notice: NewDelivery, now: int) -> None:
        """Notes the last failed attempt: the turn is set aside, `notice` tells the room, those behind it go on.

        A turn that has ended stays as it is.
        """
        async with self._database.transaction(Step.PARK_TURN) as transaction:
            if await transaction.run("park_turn", {"turn_id": turn, "error": error, "now": now}):
                await transaction.run("untell_problems", {"turn_id": turn})
                await record_deliveries(transaction, [notice], now)

    async def requeue_parked(self, agent: AgentName) -> None:
        """Lets all parked turns of the agent run once more."""
        async with self._database.transaction(Step.REQUEUE_PARKED) as transaction:
            await transaction.run("requeue_parked_turns", {"agent": agent})

    async def requeue(self, turn: TurnId) -> bool:
        """Lets one parked turn run once more; False when it isn't parked."""
        async with self._database.transaction(Step.RETRY_TURN) as transaction:
            return bool(await transaction.run("requeue_turn", {"turn_id": turn}))


def _queued(row: Row) -> QueuedTurn:
    return QueuedTurn(**{name.name: row[name.name] for name in fields(QueuedTurn)})
