"""From an agent's reply to all that it leads to: messages, question, buttons, problems. Pure."""

from mindbridge import ids
from mindbridge.agents.turn import Selection
from mindbridge.bridge import wording
from mindbridge.bridge.closing import closing_edit
from mindbridge.ids import EventId
from mindbridge.journal.records import NewDelivery, NewQuestion, QueuedTurn
from mindbridge.journal.turns import Outcome, ReplyPart
from mindbridge.matrix import content
from mindbridge.questions.lifecycle import State
from mindbridge.questions.read import read_reply
from mindbridge.questions.render import part_to_json, render_reply


def outcome_of(turn: QueuedTurn, text: str, max_options: int) -> Outcome:
    """What the reply `text` to `turn` leads to.

    Args:
        turn: the turn that was run.
        text: the reply's Markdown, with or without blocks.
        max_options: how many options of a question count.

    Returns:
        The outcome to record; its ids derive from the turn, so that a second one is the same.
    """
    reply = read_reply(text, max_options=max_options)
    question_id = ids.question_id(turn.turn_id)
    parts: list[ReplyPart] = []
    deliveries: list[NewDelivery] = []
    question: NewQuestion | None = None
    for number, part in enumerate(render_reply(reply), start=1):
        delivery_id = ids.delivery_id(turn.turn_id, f"part {number}")
        shown = part.text()
        metadata = None
        if part.question is not None:
            metadata = content.question_metadata(question_id, part.question, State.OPEN)
            question = NewQuestion(
                question_id=question_id,
                delivery_id=delivery_id,
                requester=turn.sender,
                text=part.question.text,
                part=part_to_json(part),
            )
        parts.append(ReplyPart(delivery_id=delivery_id, text=shown.body))
        deliveries.append(
            NewDelivery(
                delivery_id=delivery_id,
                agent=turn.agent,
                room_id=turn.room_id,
                kind="message",
                content=content.reply(shown, turn.thread_id, latest_in_thread(turn), metadata),
                turn_id=turn.turn_id,
                question_id=None if part.question is None else question_id,
            )
        )
    if question is not None and reply.question is not None:
        deliveries += [
            NewDelivery(
                delivery_id=ids.delivery_id(turn.turn_id, f"button {option.number}"),
                agent=turn.agent,
                room_id=turn.room_id,
                kind="button",
                content=content.button(option.button),
                turn_id=turn.turn_id,
                question_id=question_id,
                target_id=question.delivery_id,
            )
            for option in reply.question.options
        ]
    return Outcome(
        reply=text.encode("utf-8", "replace").decode(),
        parts=parts,
        question=question,
        deliveries=deliveries,
        problems=reply.problems,
        supersede=lambda before: closing_edit(before, State.SUPERSEDED, wording.SUPERSEDED_LINE),
    )


def latest_in_thread(turn: QueuedTurn) -> EventId:
    """The event that clients without threads show the reply under: the message, or the question that was answered."""
    if turn.selection is None:
        return turn.source_event_id
    return EventId(Selection.model_validate_json(turn.selection).question_event_id)
