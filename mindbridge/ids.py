"""Names of things, each derived from what it is about, so that doing a step again makes nothing new."""

import hashlib
from typing import NewType

AgentName = NewType("AgentName", str)
UserId = NewType("UserId", str)
RoomId = NewType("RoomId", str)
EventId = NewType("EventId", str)
TurnId = NewType("TurnId", str)
QuestionId = NewType("QuestionId", str)
DeliveryId = NewType("DeliveryId", str)


def _derive(kind: str, *parts: str) -> str:
    digest = hashlib.sha256("\0".join((kind, *parts)).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{kind}_{digest[:24]}"


def turn_id(agent: AgentName, source: EventId) -> TurnId:
    """The id of the turn that `agent` takes because of the event `source`."""
    return TurnId(_derive("turn", agent, source))


def question_id(turn: TurnId) -> QuestionId:
    """The id of the one question that a turn can ask."""
    return QuestionId(_derive("question", turn))


def delivery_id(origin: TurnId | QuestionId, step: str) -> DeliveryId:
    """The id of an outgoing event: `step` says what it is for its origin, such as `part 1` or `button 3`.

    It serves as Matrix transaction id as well.
    """
    return DeliveryId(_derive("delivery", origin, step))
