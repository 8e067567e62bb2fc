"""What happened, for people and programs that ask: read only, beside a running bridge."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mindbridge.journal.database import FILE_NAME, QUERIES, JournalError, migrations, version_of
from mindbridge.journal.reading import connect_to_read
from mindbridge.questions.render import part_from_json

Report = dict[str, Any]

_EXPORTED_AT_ONCE = 500


class Reports:
    """Questions to the journal in a data home."""

    def __init__(self, home: Path) -> None:
        """Takes the data home.

        Raises:
            JournalError: there is no journal of this version in it.
        """
        self._path = home / FILE_NAME
        version = self._version()
        if not version:
            raise JournalError(f"{self._path}: there is no journal yet; `mindbridge run` makes it")
        if version != migrations()[-1][0]:
            raise JournalError(
                f"{self._path}: has version {version}; run the bridge of this version once, or install the newer"
            )

    def _version(self) -> int:
        try:
            if not self._path.is_file():
                return 0
        except OSError as error:
            raise JournalError(f"{self._path}: can't be read: {error.strerror}") from error
        with self._connected() as connection:
            return version_of(self._path, connection.execute(QUERIES["kind_of_file"]).fetchone())

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(connect_to_read(self._path)) as connection:
                yield connection
        except sqlite3.Error as error:
            raise JournalError(f"{self._path}: can't be read: {error}") from error

    def _query(self, name: str, **parameters: object) -> list[Report]:
        with self._connected() as connection:
            return [dict(row) for row in connection.execute(QUERIES[name], parameters)]

    def status(self) -> Report:
        """Numbers by agent, and what has not gone its way: turns, deliveries, rooms, events that can't be read yet."""
        agents = [
            {
                "agent": row["agent"],
                "user_id": row["user_id"],
                **{name: json.loads(row[name]) for name in ("turns", "questions", "deliveries")},
            }
            for row in self._query("report_agents")
        ]
        return {
            "journal": str(self._path),
            "agents": agents,
            "parked": self._query("report_parked"),
            "refused": self._query("report_refused"),
            "uncertain": self._query("report_uncertain"),
            "behind": self._query("report_behind"),
            "unread": self._query("report_unread"),
        }

    def questions(self, question_id: str | None = None) -> list[Report]:
        """All questions, the newest first, each with its answer if it has one."""
        rows = self._query("report_questions", question_id=question_id, after=0, most=-1)
        return [_question(row) for row in reversed(rows)]

    def export(self) -> Iterator[Report]:
        """All questions, the oldest first, with more for evaluation; only some of them are in memory at a time."""
        after = 0
        while rows := self._query("report_questions", question_id=None, after=after, most=_EXPORTED_AT_ONCE):
            for row in rows:
                yield _question(row) | {"answered_at": _iso(row["answered_ts"]), "revision": row["revision"]}
            after = rows[-1]["seq"]

    def show(self, wanted: str) -> Report | None:
        """All about the question or turn with this id, or with this event; None where there is neither."""
        found = self._query("report_ids", id=wanted)[0]
        question_id, turn_id = found["question_id"], found["turn_id"]
        if question_id is not None:
            question = self.questions(question_id)[0]
            deliveries = self._query("report_deliveries", question_id=question_id, turn_id=None)
            verdicts = self._query("report_verdicts", question_id=question_id)
            return {"question": question, "deliveries": deliveries, "verdicts": verdicts}
        if turn_id is not None:
            turn = self._query("report_turn", turn_id=turn_id)[0]
            turn |= {"selection": json.loads(turn["selection"]) if turn["selection"] else None}
            turn |= {name: _iso(turn[name]) for name in ("queued_at", "ended_at")}
            turn |= {"expired": bool(turn["expired"])}
            return {"turn": turn, "deliveries": self._query("report_deliveries", question_id=None, turn_id=turn_id)}
        return None

    def why(self, event_id: str) -> Report:
        """What became of an event: its verdict, or why it has none."""
        verdicts = self._query("report_verdict", event_id=event_id)
        if verdicts:
            return verdicts[0]
        event = self._query("report_event", event_id=event_id)[0]
        if event["sent"]:
            reason = f"It was sent by the bridge: {event['sent']}."
        elif event["turns"]:
            reason = f"It was an ordinary message and started a turn of {event['turns']}."
        elif event["judged"]:
            reason = f"It was seen by {event['seen_by']}, answered no question and was a message to no agent."
        elif event["unread_by"]:
            reason = f"It is encrypted, and its key has not come to {event['unread_by']} yet."
        elif event["seen_by"]:
            reason = f"It is from before the account counted in its room, or could never be read ({event['seen_by']})."
        else:
            reason = "No agent's account was shown it, as far back as the journal goes."
        return {"event_id": event_id, "verdict": None, "reason": reason, "question_id": event["question_id"]}


def _question(row: Report) -> Report:
    part = part_from_json(row["part"])
    options = [] if part.question is None else part.question.options
    chosen = next((option for option in options if option.number == row["number"]), None)
    # Of a question whose texts are no longer kept, it is still known which number was chosen.
    answer = row["number"] and {
        "number": row["number"],
        "key": row["key"],
        "label": chosen and chosen.label,
        "value": chosen and chosen.value,
        "answered_by": row["answered_by"],
        "answered_at": _iso(row["answered_ts"]),
        "source_event_id": row["source_event_id"],
        "turn_id": row["selection_turn_id"],
    }
    kept = (
        "question_id",
        "agent",
        "room_id",
        "thread_id",
        "event_id",
        "state",
        "close_reason",
        "question_text",
        "requester",
        "turn_id",
    )
    shown = [
        {"number": each.number, "button": each.button, "label": each.label, "value": each.value} for each in options
    ]
    return {name: row[name] for name in kept} | {
        "asked_at": _iso(row["asked_ts"]),
        "options": shown,
        "selection": answer,
        "expired": bool(row["expired"]),
    }


def _iso(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
