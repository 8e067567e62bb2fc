"""Deliveries that the server refuses, and the buttons of questions that are closed."""

from mindbridge.ids import DeliveryId, EventId
from mindbridge.journal.database import Database
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Acknowledged
from mindbridge.journal.turns import TurnStore
from tests.journal.sample_rows import (
    HELPER,
    HELPER_USER,
    NOW,
    admit,
    asking,
    delivery,
    end,
    outcome,
    queue,
    queued,
    record,
    rows,
    seen,
    send_all,
    take,
    turn,
    value,
)
from tests.journal.sending import claimed, sent_names, states, without_buttons

# Refused


async def test_what_relates_to_a_refused_message_is_dropped(outbox: Outbox, database: Database) -> None:
    await queue(database, turn())
    await end(database, "one", asking())
    await record(
        database,
        delivery("edit", "edit", target_id=DeliveryId("q")),
        delivery("redaction", "redaction", target_id=DeliveryId("q button 1")),
        delivery("other"),
    )
    assert await claimed(outbox) == "q"
    await outbox.refuse(DeliveryId("q"), "403 M_FORBIDDEN", NOW, without_buttons)

    assert await sent_names(database) == ["other"]
    assert states(database) == {
        "q": "refused",
        "q button 1": "dropped",
        "q button 2": "dropped",
        "edit": "dropped",
        "redaction": "dropped",
        "other": "sent",
    }
    assert value(database, "SELECT error FROM deliveries WHERE delivery_id = 'edit'") == (
        "what it relates to was refused without an event"
    )


async def test_refused_question_has_failed_and_its_agent_is_told_with_its_next_turn(
    outbox: Outbox, database: Database
) -> None:
    await queue(database, turn(), turn("two"))
    await end(database, "one", asking())
    await claimed(outbox)
    await outbox.refuse(DeliveryId("q"), "403 M_FORBIDDEN", NOW, without_buttons)
    context = await TurnStore(database).context(await queued(database, "two"))
    assert value(database, "SELECT state FROM questions") == "failed"
    assert [(problem.code, problem.message) for problem in context.problems] == [
        ("question_not_posted", "The question was not posted: 403 M_FORBIDDEN")
    ]


async def test_refused_button_of_an_open_question_takes_the_others_with_it_and_the_message_says_so(
    outbox: Outbox, database: Database
) -> None:
    await queue(database, turn())
    await end(database, "one", asking(buttons=3))
    await claimed(outbox)
    await outbox.acknowledge(DeliveryId("q"), EventId("$event of q"), NOW)
    await admit(database, opened=[seen()])
    assert await claimed(outbox) == "q button 1"
    await outbox.refuse(DeliveryId("q button 1"), "403 M_FORBIDDEN", NOW, without_buttons)
    assert await sent_names(database) == ["q without buttons"]
    assert states(database) == {
        "q": "sent",
        "q button 1": "refused",
        "q button 2": "dropped",
        "q button 3": "dropped",
        "q without buttons": "sent",
    }
    assert value(database, "SELECT state FROM questions") == "open"
    assert value(database, "SELECT COUNT(*) FROM problems") == 0


async def test_refused_button_of_a_question_that_no_timeline_showed_yet_takes_the_others_with_it_as_well(
    outbox: Outbox, database: Database
) -> None:
    await queue(database, turn())
    await end(database, "one", asking(buttons=2))
    await claimed(outbox)
    await outbox.acknowledge(DeliveryId("q"), EventId("$event of q"), NOW)
    assert await claimed(outbox) == "q button 1"
    await outbox.refuse(DeliveryId("q button 1"), "403 M_FORBIDDEN", NOW, without_buttons)
    assert await sent_names(database) == ["q without buttons"]
    assert states(database)["q button 2"] == "dropped"


async def test_refused_button_of_a_closed_question_changes_its_message_no_more(
    outbox: Outbox, database: Database
) -> None:
    await queue(database, turn())
    await end(database, "one", asking(buttons=2))
    await claimed(outbox)
    await outbox.acknowledge(DeliveryId("q"), EventId("$event of q"), NOW)
    assert await claimed(outbox) == "q button 1"
    await admit(database, opened=[seen()])
    await take(database)
    await outbox.refuse(DeliveryId("q button 1"), "403 M_FORBIDDEN", NOW, without_buttons)
    assert value(database, "SELECT COUNT(*) FROM deliveries WHERE kind = 'edit'") == 0


async def test_refusal_of_what_its_echo_showed_to_be_there_changes_nothing(outbox: Outbox, database: Database) -> None:
    await queue(database, turn())
    await end(database, "one", asking())
    await claimed(outbox)
    await admit(
        database,
        acknowledged=[Acknowledged(delivery_id=DeliveryId("q"), event_id=EventId("$event of q"))],
        opened=[seen()],
    )
    await take(database)
    closed_seq = value(database, "SELECT closed_seq FROM questions")
    await outbox.refuse(DeliveryId("q"), "403 M_FORBIDDEN", NOW, without_buttons)
    assert rows(database, "SELECT state, event_id FROM deliveries WHERE delivery_id = 'q'") == [("sent", "$event of q")]
    assert rows(database, "SELECT state, closed_seq FROM questions") == [("answered", closed_seq)]
    assert value(database, "SELECT COUNT(*) FROM problems") == 0


# The buttons of a closed question


async def test_answered_questions_unsent_buttons_are_dropped_and_sent_ones_redacted_after_the_answers_turn(
    outbox: Outbox, database: Database
) -> None:
    await queue(database, turn())
    await end(database, "one", asking(buttons=3))
    for name in ("q", "q button 1"):
        assert await claimed(outbox) == name
        await outbox.acknowledge(DeliveryId(name), EventId(f"$event of {name}"), NOW)
    assert await claimed(outbox) == "q button 2"
    await admit(database, opened=[seen()])
    selection = await take(database)

    assert states(database)["q button 3"] == "dropped"
    assert await sent_names(database) == ["q button 2"]
    assert await send_all(database) == []
    (ending,) = [each for each, _ in await TurnStore(database).runnable(HELPER)]
    assert ending.turn_id == selection
    await TurnStore(database).end(ending, HELPER_USER, outcome(delivery("thanks")), NOW)
    thanks, *redactions = await send_all(database)
    assert thanks.delivery_id == "thanks"
    assert [(each.kind, each.target_event) for each in redactions] == [
        ("redaction", "$event of q button 1"),
        ("redaction", "$event of q button 2"),
    ]


async def test_button_that_never_arrived_is_not_redacted(outbox: Outbox, database: Database) -> None:
    await queue(database, turn())
    await end(database, "one", asking(buttons=1))
    await claimed(outbox)
    await outbox.acknowledge(DeliveryId("q"), EventId("$q"), NOW)
    assert await claimed(outbox) == "q button 1"
    await take(database)
    await outbox.refuse(DeliveryId("q button 1"), "403 M_FORBIDDEN", NOW, without_buttons)
    (ending,) = [each for each, _ in await TurnStore(database).runnable(HELPER)]
    await TurnStore(database).end(ending, HELPER_USER, outcome(), NOW)
    assert await send_all(database) == []
