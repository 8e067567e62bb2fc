"""Deliveries that were tried with no word from the server."""

from mindbridge.ids import DeliveryId, EventId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Acknowledged
from mindbridge.journal.turns import TurnStore
from tests.journal.sample_rows import (
    HELPER,
    HELPER_USER,
    NOW,
    ROOM,
    admit,
    asking,
    delivery,
    end,
    queue,
    queued,
    record,
    rows,
    seen,
    turn,
    value,
)
from tests.journal.sending import claimed, sent_names, states


async def test_what_was_tried_is_claimed_again_with_the_position_before_its_first_try(
    outbox: Outbox, database: Database
) -> None:
    await AdmissionStore(database).record_account(HELPER, HELPER_USER, NOW)
    await admit(database, position="s1")
    await record(database, delivery("one"))
    first = await outbox.claim_next(HELPER, NOW)
    await admit(database, position="s2")
    again = await outbox.claim_next(HELPER, NOW)
    assert first is not None
    assert again is not None
    assert (first.tried_before, again.tried_before, again.attempted_since) == (False, True, "s1")


async def test_question_that_was_found_in_the_room_is_open_and_to_be_compared(
    outbox: Outbox, database: Database
) -> None:
    await queue(database, turn())
    await end(database, "one", asking())
    await claimed(outbox)
    await outbox.found(DeliveryId("q"), EventId("$q"), NOW + 7, NOW + 9)
    assert rows(database, "SELECT state, event_id, asked_ts, compare FROM questions") == [("open", "$q", NOW + 7, 1)]
    (marked,) = await AdmissionStore(database).to_compare(HELPER)
    assert (marked.event_id, marked.room_id) == ("$q", ROOM)
    assert states(database)["q"] == "sent"


async def test_what_cannot_be_told_is_not_sent_again_and_the_agent_hears_of_its_question(
    outbox: Outbox, database: Database
) -> None:
    await queue(database, turn(), turn("two"))
    await end(database, "one", asking())
    await claimed(outbox)
    await outbox.give_up(DeliveryId("q"), "the history can't be read", NOW)
    assert await sent_names(database) == []
    assert states(database) == {"q": "uncertain", "q button 1": "dropped", "q button 2": "dropped"}
    context = await TurnStore(database).context(await queued(database, "two"))
    assert [problem.code for problem in context.problems] == ["question_not_posted"]
    assert value(database, "SELECT state FROM questions") == "posting"


async def test_closed_question_that_is_found_in_the_room_stays_closed_and_is_not_compared(
    outbox: Outbox, database: Database
) -> None:
    await queue(database, turn(), turn("two"))
    await end(database, "one", asking("q", "Tea?", buttons=0))
    await claimed(outbox)
    await end(database, "two", asking("again", "Tea?", buttons=0))
    await outbox.found(DeliveryId("q"), EventId("$q"), NOW + 7, NOW + 9)
    assert rows(database, "SELECT state, event_id, compare FROM questions WHERE delivery_id = 'q'") == [
        ("superseded", "$q", 0)
    ]
    assert await AdmissionStore(database).to_compare(HELPER) == []
    assert await sent_names(database) == ["again", "closing of question_q"]


async def test_button_that_cannot_be_told_leaves_the_others_to_be_sent(outbox: Outbox, database: Database) -> None:
    await queue(database, turn())
    await end(database, "one", asking(buttons=2))
    await claimed(outbox)
    await outbox.acknowledge(DeliveryId("q"), EventId("$event of q"), NOW)
    assert await claimed(outbox) == "q button 1"
    await outbox.give_up(DeliveryId("q button 1"), "the history can't be read", NOW)
    assert await sent_names(database) == ["q button 2"]
    assert states(database) == {"q": "sent", "q button 1": "uncertain", "q button 2": "sent"}
    assert value(database, "SELECT COUNT(*) FROM problems") == 0


async def test_echo_of_what_was_uncertain_settles_it_after_all(outbox: Outbox, database: Database) -> None:
    await queue(database, turn())
    await end(database, "one", asking())
    await claimed(outbox)
    await outbox.give_up(DeliveryId("q"), "the history can't be read", NOW)
    echo = Acknowledged(delivery_id=DeliveryId("q"), event_id=EventId("$event of q"))
    await admit(database, acknowledged=[echo], opened=[seen()])
    assert states(database)["q"] == "sent"
    assert value(database, "SELECT state FROM questions") == "open"
