"""A question of which couldn't be told whether the room holds it, and which is there after all."""

from mindbridge.ids import DeliveryId, EventId
from mindbridge.journal.database import Database
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Acknowledged
from tests.journal.sample_rows import HELPER, NOW, admit, asking, end, queue, rows, seen, turn
from tests.journal.sending import sent_names, without_buttons

ECHO = Acknowledged(delivery_id=DeliveryId("q"), event_id=EventId("$event of q"))


async def give_up(outbox: Outbox) -> None:
    due = await outbox.claim_next(HELPER, NOW)
    assert due is not None
    assert due.delivery_id == "q"
    await outbox.give_up(due.delivery_id, "the history can't be read", NOW)


async def test_question_whose_echo_comes_late_gets_its_buttons(outbox: Outbox, database: Database) -> None:
    await queue(database, turn())
    await end(database, "one", asking(buttons=2))
    await give_up(outbox)
    assert await sent_names(database) == []
    await admit(database, acknowledged=[ECHO], opened=[seen()])
    assert await sent_names(database) == ["q button 1", "q button 2"]
    assert await outbox.claim_next(HELPER, NOW) is None


async def test_question_whose_echo_comes_late_and_that_was_asked_again_meanwhile_says_so(
    outbox: Outbox, database: Database
) -> None:
    await queue(database, turn(), turn("two"))
    await end(database, "one", asking("q", "Tea?", buttons=1))
    await give_up(outbox)
    assert await sent_names(database) == []
    await end(database, "two", asking("again", "Tea?", buttons=0))
    assert await sent_names(database) == ["again"]
    await admit(database, acknowledged=[ECHO], opened=[seen()])
    assert await sent_names(database) == ["closing of question_q"]
    assert rows(database, "SELECT state FROM deliveries WHERE delivery_id = 'q button 1'") == [("dropped",)]


async def test_buttons_that_were_dropped_for_another_reason_stay_so(outbox: Outbox, database: Database) -> None:
    await queue(database, turn())
    await end(database, "one", asking(buttons=2))
    question = await outbox.claim_next(HELPER, NOW)
    assert question is not None
    await outbox.acknowledge(question.delivery_id, ECHO.event_id, NOW)
    button = await outbox.claim_next(HELPER, NOW)
    assert button is not None
    await outbox.refuse(button.delivery_id, "403 M_FORBIDDEN", NOW, without_buttons)
    await admit(database, acknowledged=[ECHO], opened=[seen()])
    assert rows(database, "SELECT state FROM deliveries WHERE kind = 'button'") == [("refused",), ("dropped",)]
