"""What is sent for the helper, one after the other, and what became of it."""

from mindbridge.journal.database import Database
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import NewDelivery, Unanswered
from tests.journal.sample_rows import HELPER, NOW, delivery, rows, send_all


def without_buttons(question: Unanswered) -> NewDelivery:
    """The edit of a question whose buttons were refused."""
    return delivery(f"{question.delivery_id} without buttons", "edit", target_id=question.delivery_id)


async def claimed(outbox: Outbox) -> str | None:
    """Claims what is due next; its id."""
    due = await outbox.claim_next(HELPER, NOW)
    return None if due is None else due.delivery_id


async def sent_names(database: Database) -> list[str]:
    """Sends all that is due; the ids in their order."""
    return [each.delivery_id for each in await send_all(database)]


def states(database: Database) -> dict[str, str]:
    """The state of each delivery, as recorded."""
    return dict(rows(database, "SELECT delivery_id, state FROM deliveries ORDER BY seq"))
