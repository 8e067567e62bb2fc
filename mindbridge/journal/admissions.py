"""Admitting a sync response: what it means is decided and written in one transaction with its position."""

import json
from collections.abc import Callable, Mapping, Sequence

from mindbridge.ids import AgentName, EventId, QuestionId, RoomId, UserId
from mindbridge.journal.closings import close_all_of_agent, close_one, close_room
from mindbridge.journal.database import Database, Row, Transaction
from mindbridge.journal.outbox import record_deliveries, withdraw_buttons
from mindbridge.journal.records import (
    AskedQuestion,
    CloseReason,
    Comparable,
    Decisions,
    Interest,
    Membership,
    MembershipState,
    NewDelivery,
    RecordedUpgrade,
    Selected,
    Snapshot,
    Upgrade,
    parameters_of,
)
from mindbridge.questions.lifecycle import State
from mindbridge.steps import Step

Decide = Callable[[Snapshot], Decisions]

# A room with more open questions than this is judged by the newest of them, and those of the threads that are touched.
_MOST_OPEN = 1000


class AdmissionStore:
    """The journal as admission uses it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record_account(self, agent: AgentName, user_id: UserId, now: int) -> str | None:
        """Notes the agent's account; the sync position from which to go on, None for the very first sync.

        Of a former account of the agent nothing goes on: its questions are closed, what it had to send is dropped.
        """
        async with self._database.transaction(Step.RECORD_ACCOUNT) as transaction:
            account = {"agent": agent, "user_id": user_id}
            before = await transaction.one("account_of", account)
            if before is not None and before["user_id"] != user_id:
                await close_all_of_agent(transaction, agent, "agent_removed", now)
                dropped = {"agent": agent, "error": "the agent has another account now", "now": now}
                await transaction.run("drop_deliveries_of_agent", dropped)
            await transaction.run("forget_behind_of_former_account", account)
            await transaction.run("forget_upgrades_of_former_account", account)
            await transaction.run("forget_memberships_of_former_account", account)
            await transaction.run("record_account", account)
            row = await transaction.one("account_of", {"agent": agent})
        return None if row is None else row["next_batch"]

    async def admit(
        self,
        agent: AgentName,
        interest: Interest,
        next_batch: str | None,
        decide: Decide,
        now: int,
        *,
        behind: Mapping[RoomId, str] | None = None,
        caught_up: RoomId | None = None,
        compared: QuestionId | None = None,
        read_late: Sequence[EventId] = (),
    ) -> Decisions:
        """Admits one sync response of the agent's account, or what it has missed.

        Args:
            agent: whose account saw it.
            interest: what it touches.
            next_batch: the position after it, None where it is no sync response.
            decide: a pure function from what the journal knows to what the response changes.
            now: the time in milliseconds.
            behind: rooms whose part of the response is not in it, with the position after which they are missing.
            caught_up: the room that is not behind any more.
            compared: the question that was compared with the server.
            read_late: the events of it that were unread until now.

        Returns:
            What was decided and is now committed.
        """
        async with self._database.transaction(Step.ADMIT) as transaction:
            if compared is not None:
                # The question's event was not known when these were judged.
                events = {"events": json.dumps(interest.events)}
                await transaction.run("forget_sightings_of_unknown", events)
                await transaction.run("forget_unknown", events)
            places = await _take_unread(transaction, agent, read_late) if read_late else {}
            decisions = decide(await _snapshot(transaction, agent, interest, places))
            await _write(transaction, agent, decisions, now)
            if next_batch is not None:
                await transaction.run("advance_account", {"agent": agent, "next_batch": next_batch})
            await transaction.many(
                "record_behind",
                [{"agent": agent, "room_id": room, "since": since} for room, since in (behind or {}).items()],
            )
            if caught_up is not None:
                await transaction.run("forget_behind", {"agent": agent, "room_id": caught_up})
            if compared is not None:
                await transaction.run("compared", {"question_id": compared})
        return decisions

    async def mark_gap(self, agent: AgentName, room_id: RoomId) -> None:
        """Notes that events of a room were missed: the agent's open questions are to be compared."""
        async with self._database.transaction(Step.MARK_GAP) as transaction:
            await transaction.run("compare_questions_of_room", {"agent": agent, "room_id": room_id})

    async def rooms_behind(self, agent: AgentName) -> list[tuple[Membership, str]]:
        """The rooms in which the agent's account has missed something, each with the position after which it did."""
        async with self._database.reading() as transaction:
            rows = await transaction.all("rooms_behind", {"agent": agent})
        return [(_membership(row), row["since"]) for row in rows]

    async def to_compare(self, agent: AgentName) -> list[Comparable]:
        """The agent's questions that are to be compared with the server."""
        async with self._database.reading() as transaction:
            rows = await transaction.all("questions_to_compare", {"agent": agent})
        return [Comparable(**dict(row)) for row in rows]

    async def close_compared(self, question: QuestionId, reason: CloseReason, now: int) -> None:
        """Closes a question whose message in the room is not, or not any more, what the journal holds."""
        async with self._database.transaction(Step.CLOSE_COMPARED) as transaction:
            await close_one(transaction, question, reason, now)

    async def memberships_in(self, agent: AgentName, rooms: Sequence[RoomId]) -> dict[RoomId, Membership]:
        """What the journal knows of the account in these rooms."""
        async with self._database.reading() as transaction:
            rows = await transaction.all("memberships_of", {"agent": agent, "rooms": json.dumps(rooms)})
        return {RoomId(row["room_id"]): _membership(row) for row in rows}

    async def memberships(self, agent: AgentName, state: MembershipState) -> list[Membership]:
        """The rooms in which the agent's account is in `state`."""
        async with self._database.reading() as transaction:
            rows = await transaction.all("memberships_in_state", {"agent": agent, "state": state})
        return [_membership(row) for row in rows]

    async def record_membership(self, agent: AgentName, membership: Membership) -> None:
        """Notes the account's state in one room."""
        async with self._database.transaction(Step.RECORD_MEMBERSHIP) as transaction:
            await transaction.run("record_membership", parameters_of(membership) | {"agent": agent})

    async def upgrades(self, agent: AgentName) -> list[RecordedUpgrade]:
        """The upgrades of rooms of the agent's account that are not settled yet."""
        async with self._database.reading() as transaction:
            rows = await transaction.all("upgrades", {"agent": agent})
        flags = ("had_questions", "joined_for_it")
        return [RecordedUpgrade(**{**dict(row), **{flag: bool(row[flag]) for flag in flags}}) for row in rows]

    async def settle_upgrade(
        self, agent: AgentName, upgrade: Upgrade, deliveries: Sequence[NewDelivery], now: int
    ) -> None:
        """Forgets an upgrade; `deliveries` are what is to be sent for it."""
        async with self._database.transaction(Step.SETTLE_UPGRADE) as transaction:
            await transaction.run("forget_upgrade", {"agent": agent, "event_id": upgrade.event_id})
            await record_deliveries(transaction, deliveries, now)


async def _take_unread(transaction: Transaction, agent: AgentName, events: Sequence[EventId]) -> dict[EventId, int]:
    """Forgets that the account was shown these events, none of which it could read; gives their places."""
    chosen = {"agent": agent, "events": json.dumps(events)}
    rows = await transaction.all("places_of_unread", chosen)
    await transaction.run("forget_sightings_of_unread", chosen)
    await transaction.run("forget_unread", chosen)
    return {EventId(row["event_id"]): row["seq"] for row in rows}


async def _snapshot(
    transaction: Transaction, agent: AgentName, interest: Interest, places: Mapping[EventId, int]
) -> Snapshot:
    events = {"events": json.dumps(interest.events)}
    rooms = json.dumps(interest.rooms)
    threads = json.dumps(interest.threads)
    touched = {
        "rooms": rooms,
        "targets": json.dumps(interest.targets),
        "claims": json.dumps(interest.claims),
        "threads": threads,
        "most": _MOST_OPEN,
    }
    last, sightings, verdicts, questions, participations, memberships, own = await transaction.all_of(
        ("last_seq", {}),
        ("sightings_of", events),
        ("verdicts_of", events),
        ("questions_touched", touched),
        ("participations_in", {"agent": agent, "threads": threads}),
        ("memberships_of", {"agent": agent, "rooms": rooms}),
        ("turns_of_events", events | {"transactions": json.dumps(interest.transactions)}),
    )
    return Snapshot(
        next_seq=1 + last[0]["seq"],
        sighted=frozenset(EventId(row["event_id"]) for row in sightings if row["agent"] == agent),
        judged=frozenset(EventId(row["event_id"]) for row in sightings if row["judged"]),
        verdicts=frozenset(EventId(row["event_id"]) for row in verdicts),
        questions=tuple(_asked_question(row) for row in questions),
        participations=frozenset((RoomId(row["room_id"]), EventId(row["thread_id"])) for row in participations),
        memberships=tuple(_membership(row) for row in memberships),
        turns_of_events={key: row["turn_id"] for row in own for key in (row["event_id"], row["delivery_id"]) if key},
        places=places,
    )


def _asked_question(row: Row) -> AskedQuestion:
    return AskedQuestion(**{**dict(row), "state": State(row["state"])})


def _membership(row: Row) -> Membership:
    return Membership(room_id=RoomId(row["room_id"]), state=row["state"], invited_ts=row["invited_ts"])


async def _write(transaction: Transaction, agent: AgentName, decisions: Decisions, now: int) -> None:
    acknowledged = [parameters_of(each) | {"now": now} for each in decisions.acknowledged]
    await transaction.many_of(
        ("record_sighting", [parameters_of(each) | {"agent": agent, "now": now} for each in decisions.sightings]),
        ("record_unread", [parameters_of(each) | {"agent": agent, "now": now} for each in decisions.unread]),
        ("forget_withdrawn", [{"agent": agent, "event_id": each} for each in decisions.withdrawn]),
        # A question that was uncertain is in the room after all: so are its buttons to be, or the edit that closed it.
        ("revive_deliveries", acknowledged),
        ("acknowledge_delivery", acknowledged),
        ("acknowledge_question", acknowledged),
        ("record_echo", acknowledged),
        ("open_question", [parameters_of(each) for each in decisions.opened]),
        ("record_utterance", [parameters_of(each) for each in decisions.utterances]),
        ("record_verdict", [parameters_of(each) | {"now": now} for each in decisions.verdicts]),
        ("record_said", [parameters_of(each) | {"now": now} for each in decisions.said]),
        ("record_turn", [parameters_of(each) | {"now": now} for each in decisions.turns]),
        ("record_membership", [parameters_of(each) | {"agent": agent} for each in decisions.memberships]),
        (
            "wanted_in_replacement",
            [{"agent": agent, "room_id": each.room_id} for each in decisions.memberships if each.state == "accepted"],
        ),
    )
    await record_deliveries(transaction, decisions.deliveries, now)
    await _write_selections(transaction, decisions.selections, now)
    for closed in decisions.closed:
        await close_one(transaction, closed.question_id, "question_redacted", now, seq=closed.seq)
    # Before the questions are closed: it notes whether any were open.
    await transaction.many("record_upgrade", [parameters_of(each) | {"agent": agent} for each in decisions.upgrades])
    for room in decisions.rooms_closed:
        await close_room(transaction, agent, room, now)


async def _write_selections(transaction: Transaction, selections: Sequence[Selected], now: int) -> None:
    if not selections:
        return
    closing = {"state": State.ANSWERED, "reason": None, "now": now}
    await transaction.many_of(
        ("record_selection", [parameters_of(each) for each in selections]),
        ("close_question", [closing | {"question_id": each.question_id, "seq": each.seq} for each in selections]),
    )
    await withdraw_buttons(transaction, {each.question_id: each.turn_id for each in selections}, now)
