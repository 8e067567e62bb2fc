"""The turn as its agent gets it, from the queued turn and the journal's context (contract, section 5)."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from pydantic import BaseModel

from mindbridge.agents.turn import HistoryEntry, OpenQuestion, Selection, Sender, Turn, TurnProblem
from mindbridge.bridge.roster import Roster
from mindbridge.config.schema import AgentConfig
from mindbridge.journal.records import QueuedTurn, TurnContext

MOST_ENTRIES = 50
MOST_BYTES = 32 * 1024

_Entry = TypeVar("_Entry", bound=BaseModel)


def turn_input(turn: QueuedTurn, context: TurnContext, config: AgentConfig, roster: Roster) -> Turn:
    """The turn for the agent: at most 50 entries and 32 KB each of history and open questions, the newest kept."""
    own_user = config.account.user_id
    history = (
        HistoryEntry(role="assistant" if sender == own_user else "user", sender=sender, text=text)
        for sender, text in context.history
        if roster.may_talk(sender) or roster.agent_of(sender) is not None
    )
    questions = (
        OpenQuestion(question_id=question_id, question_event_id=event_id, question_text=text)
        for question_id, event_id, text in context.open_questions
    )
    return Turn(
        turn_id=turn.turn_id,
        attempt=turn.failures + 1,
        agent=turn.agent,
        kind=turn.kind,
        room_id=turn.room_id,
        thread_id=turn.thread_id,
        event_id=turn.source_event_id,
        sender=Sender(user_id=turn.sender, display_name=turn.sender_name),
        text=turn.text,
        selection=Selection.model_validate_json(turn.selection) if turn.selection else None,
        history=_newest(history, lambda entry, room: entry.model_copy(update={"text": entry.text[-room // 8 :]})),
        open_questions=_newest(questions, lambda _, __: None),
        problems=tuple(TurnProblem(code=each.code, message=each.message) for each in context.problems),
        role=config.role,
        instructions=config.instructions,
    )


def _newest(entries: Iterable[_Entry], shorten: Callable[[_Entry, int], _Entry | None]) -> tuple[_Entry, ...]:
    """The newest entries that fit; the first that doesn't is shortened where that is possible."""
    kept: list[_Entry] = []
    room = MOST_BYTES
    for entry in reversed(list(entries)[-MOST_ENTRIES:]):
        size = len(entry.model_dump_json().encode())
        if size > room:
            cut = shorten(entry, room) if not kept else None
            kept += [cut] if cut is not None else []
            break
        room -= size
        kept.append(entry)
    return tuple(reversed(kept))
