"""What the bridge's journal says, as `mindbridge journal` tells it to anyone."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, JsonValue, TypeAdapter

from mindbridge.demo.bridge_process import BridgeError
from mindbridge.ids import AgentName, EventId, QuestionId, UserId


class SelectionTold(BaseModel, frozen=True):
    """The answer that was taken."""

    number: int
    key: str
    value: JsonValue
    answered_by: UserId
    source_event_id: EventId


class QuestionTold(BaseModel, frozen=True):
    """A question and its answer, if it has one."""

    question_id: QuestionId
    agent: AgentName
    event_id: EventId | None
    state: str
    selection: SelectionTold | None


class AgentTold(BaseModel, frozen=True):
    """An agent's turns, numbers by state."""

    agent: AgentName
    turns: dict[str, int]


class _Status(BaseModel):
    agents: tuple[AgentTold, ...]


class _Verdict(BaseModel):
    verdict: str | None


@dataclass(frozen=True, slots=True)
class JournalView:
    """Questions, the oldest first; turns of each agent; what became of one event."""

    questions: Sequence[QuestionTold]
    agents: Sequence[AgentTold]
    verdict: str | None


async def read_journal(config: Path, event_id: EventId) -> JournalView:
    """Ask the journal of the bridge with this configuration; the verdict is that on `event_id`.

    Raises:
        BridgeError: a command failed.
    """
    newest_first = TypeAdapter(list[QuestionTold]).validate_json(await _journal(config, "questions"))
    status = _Status.model_validate_json(await _journal(config, "status"))
    why = _Verdict.model_validate_json(await _journal(config, "why", event_id))
    return JournalView(newest_first[::-1], status.agents, why.verdict)


async def _journal(config: Path, *arguments: str) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mindbridge", "journal", *arguments, "--json", "-c", str(config)),
        cwd=config.parent,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, errors = await process.communicate()
    except asyncio.CancelledError:
        if process.returncode is None:
            process.kill()
        await asyncio.shield(process.wait())
        raise
    if process.returncode:
        raise BridgeError(f"mindbridge journal {arguments[0]} ended with {process.returncode}: {errors.decode()}")
    return output
