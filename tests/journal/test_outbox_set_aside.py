"""What is left alone for a while holds up nothing that doesn't depend on it."""

from mindbridge.ids import DeliveryId, EventId, QuestionId
from mindbridge.journal.database import Database
from mindbridge.journal.outbox import Outbox
from tests.journal.sample_rows import HELPER, NOW, asking, delivery, end, queue, record, turn


async def test_question_that_is_set_aside_holds_up_no_other(outbox: Outbox, database: Database) -> None:
    await queue(database, turn(), turn("two"))
    await end(database, "one", asking("q", "Tea?", buttons=1))
    await end(database, "two", asking("r", "Coffee?", buttons=1))
    for name in ("q", "r"):
        question = await outbox.claim_next(HELPER, NOW)
        assert question is not None
        await outbox.acknowledge(question.delivery_id, EventId(f"${name}"), NOW)
    await record(database, delivery("edit", "edit", target_id=DeliveryId("r")))
    sent = []
    while due := await outbox.claim_next(HELPER, NOW, set_aside=[QuestionId("question_q")]):
        sent.append(due.delivery_id)
        await outbox.acknowledge(due.delivery_id, EventId(f"${due.delivery_id}"), NOW)
    assert sent == ["r button 1", "edit"]
    last = await outbox.claim_next(HELPER, NOW)
    assert last is not None
    assert last.delivery_id == "q button 1"
