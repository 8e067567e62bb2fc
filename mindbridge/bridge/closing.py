"""The edits of a question's message: what closes it (contract, section 4), and what says that it has no buttons."""

from mindbridge import ids
from mindbridge.bridge import wording
from mindbridge.journal.records import NewDelivery, Unanswered
from mindbridge.matrix import content
from mindbridge.questions.lifecycle import State
from mindbridge.questions.render import part_from_json


def closing_edit(question: Unanswered, state: State, line: str) -> NewDelivery:
    """The edit after which a question reads as closed: prose and list stay, `line` takes the instruction's place.

    Args:
        question: the question, as it was asked.
        state: the final state, told in the metadata.
        line: one line of plain text.

    Raises:
        ValueError: its message holds no question, which only a damaged journal can bring about.
    """
    return _edit(question, f"closed as {state}", state, line)


def edit_without_buttons(question: Unanswered) -> NewDelivery:
    """The edit that tells people to type the number, where the room allows no buttons."""
    return _edit(question, "without buttons", State.OPEN, wording.NO_BUTTONS_LINE)


def closing_as_removed(question: Unanswered) -> NewDelivery:
    """The edit that closes a question whose agent is not configured any more."""
    return closing_edit(question, State.CLOSED, wording.AGENT_REMOVED_LINE)


def _edit(question: Unanswered, step: str, state: State, line: str) -> NewDelivery:
    part = part_from_json(question.part)
    if part.question is None:
        raise ValueError(f"{question.question_id}: the journal holds no options for it")
    metadata = content.question_metadata(question.question_id, part.question, state)
    return NewDelivery(
        delivery_id=ids.delivery_id(question.question_id, step),
        agent=question.agent,
        room_id=question.room_id,
        kind="edit",
        content=content.edit(line, part.text(line), metadata),
        question_id=question.question_id,
        target_id=question.delivery_id,
    )
