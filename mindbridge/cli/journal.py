"""`mindbridge journal`: what happened, running a parked turn again, a copy of all of it."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from mindbridge.config.faults import ConfigError
from mindbridge.config.load import load_config
from mindbridge.ids import TurnId
from mindbridge.journal.backup import back_up
from mindbridge.journal.database import Database, JournalError
from mindbridge.journal.reports import Report, Reports
from mindbridge.journal.turns import TurnStore

_Value = TypeVar("_Value")


def run(options: argparse.Namespace) -> int:
    """Runs one of the journal's commands.

    Args:
        options: the command line; `action` names the command.

    Returns:
        0, or 1 where what was asked for isn't there or the journal can't be used, or 2 for a wrong configuration.
    """
    try:
        home = load_config(options.config, os.environ).journal
        reports = Reports(home)
        match options.action:
            case "status":
                return _print(reports.status(), _status_lines, as_json=options.json)
            case "questions":
                return _print(reports.questions(), _question_lines, as_json=options.json)
            case "show":
                return _show(reports, options.id, as_json=options.json)
            case "why":
                return _print(reports.why(options.event), _why_lines, as_json=options.json)
            case "export":
                return _export(reports)
            case "backup":
                return _back_up(home, options.file)
            case _:
                return asyncio.run(_retry(home, TurnId(options.turn)))
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except JournalError as error:
        print(error, file=sys.stderr)
        return 1


def _show(reports: Reports, wanted: str, *, as_json: bool) -> int:
    found = reports.show(wanted)
    if found is None:
        print(f"{wanted}: no question, turn or event of this id is in the journal", file=sys.stderr)
        return 1
    return _print(found, lambda report: [json.dumps(report, ensure_ascii=False, indent=2)], as_json=as_json)


def _export(reports: Reports) -> int:
    try:
        for question in reports.export():
            print(json.dumps(question, ensure_ascii=False))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has had enough. What is left in the buffer must go somewhere, or Python complains at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def _back_up(home: Path, target: Path) -> int:
    back_up(home, target, datetime.now(UTC))
    print(f"{target}: the journal as it is now; keep {home / 'devices'} and {home / 'identities'} with it")
    return 0


async def _retry(home: Path, turn: TurnId) -> int:
    database = await Database.open(home)
    try:
        requeued = await TurnStore(database).requeue(turn)
    finally:
        await database.close()
    if not requeued:
        print(f"{turn}: is no parked turn; `mindbridge journal status` lists those", file=sys.stderr)
        return 1
    print(f"{turn}: runs again now, or when the bridge starts")
    return 0


def _print(report: _Value, lines: Callable[[_Value], list[str]], *, as_json: bool) -> int:
    print(json.dumps(report, ensure_ascii=False) if as_json else "\n".join(lines(report)))
    return 0


def _status_lines(status: Report) -> list[str]:
    lines = [status["journal"]]
    for agent in status["agents"]:
        counts = "; ".join(
            f"{what}: {', '.join(f'{number} {state}' for state, number in agent[what].items()) or 'none'}"
            for what in ("turns", "questions", "deliveries")
        )
        lines.append(f"{agent['agent']} ({agent['user_id']}): {counts}")
    lines += [f"parked {each['turn_id']} of {each['agent']}: {each['error']}" for each in status["parked"]]
    lines += [
        f"{state} {each['kind']} {each['delivery_id']} of {each['agent']}: {each['error']}"
        for state in ("refused", "uncertain")
        for each in status[state]
    ]
    lines += [f"behind {each['room_id']} of {each['agent']}: its history can't be read" for each in status["behind"]]
    lines += [
        f"unread {each['event_id']} from {each['sender']} in {each['room_id']} of {each['agent']}: its key has not come"
        for each in status["unread"]
    ]
    return lines


def _question_lines(questions: list[Report]) -> list[str]:
    if not questions:
        return ["no questions yet"]
    return [_question_line(question) for question in questions]


def _question_line(question: Report) -> str:
    answer = question["selection"]
    label = "(no longer kept)" if question["expired"] else answer and answer["label"]
    state = f"{question['state']}: {question['close_reason']}" if question["close_reason"] else question["state"]
    outcome = f"{answer['number']}. {label} by {answer['answered_by']}" if answer else state
    text = "(no longer kept)" if question["expired"] else " ".join(question["question_text"].split())
    asked_at = question["asked_at"] or "not posted yet"
    return f"{question['question_id']}  {asked_at}  {question['agent']}  {text}  -> {outcome}"


def _why_lines(why: Report) -> list[str]:
    return [
        f"{why['verdict'] or 'no verdict'}: {why['reason']}",
        *([f"question {why['question_id']}"] if why["question_id"] else []),
    ]
