"""The edit that closes a question (contract, section 4)."""

from mindbridge import ids
from mindbridge.ids import AgentName, DeliveryId, QuestionId, RoomId
from mindbridge.journal.records import NewDelivery
from mindbridge.matrix import content
from mindbridge.questions.lifecycle import State
from mindbridge.questions.render import Part


def closing_edit(
    question_id: QuestionId,
    delivery_id: DeliveryId,
    *,
    agent: AgentName,
    room_id: RoomId,
    part: Part,
    state: State,
    line: str,
) -> NewDelivery:
    """The edit after which a question reads as closed: prose and list stay, `line` takes the instruction's place.

    Args:
        question_id: the question.
        delivery_id: the delivery of its message, which is edited.
        agent: whose question it is.
        room_id: where it stands.
        part: its message as it was rendered.
        state: the final state, told in the metadata.
        line: one line of plain text.

    Raises:
        ValueError: `part` holds no question, which only a damaged journal can bring about.
    """
    if part.question is None:
        raise ValueError(f"{question_id}: the journal holds no options for it")
    return NewDelivery(
        delivery_id=ids.delivery_id(question_id, f"closed as {state}"),
        agent=agent,
        room_id=room_id,
        kind="edit",
        content=content.edit(line, part.text(line), content.question_metadata(question_id, part.question, state)),
        question_id=question_id,
        target_id=delivery_id,
    )
