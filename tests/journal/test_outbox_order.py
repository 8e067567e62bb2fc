"""Deliveries: in which order they are sent, each once, and what their acknowledgement keeps."""

import pytest

from mindbridge.ids import DeliveryId, EventId
from mindbridge.journal.database import Database
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Acknowledged
from mindbridge.journal.turns import TurnStore
from tests.journal.sample_rows import (
    CRITIC,
    HELPER,
    NOW,
    admit,
    asking,
    delivery,
    end,
    outcome,
    queue,
    record,
    rows,
    send_all,
    turn,
    value,
)
from tests.journal.sending import claimed, sent_names, states, without_buttons

# Order


@pytest.mark.parametrize(
    "order",
    [
        ("redaction", "edit", "button", "message"),
        ("edit", "message", "redaction", "button"),
        ("button", "redaction", "message", "edit"),
    ],
    ids="-".join,
)
async def test_messages_go_first_then_buttons_then_edits_then_redactions(
    database: Database, order: tuple[str, ...]
) -> None:
    await record(database, delivery("earlier"))
    await send_all(database)
    await record(database, *(delivery(kind, kind, target_id=DeliveryId("earlier")) for kind in order))
    assert await sent_names(database) == ["message", "button", "edit", "redaction"]


async def test_within_a_kind_the_order_is_that_of_recording(database: Database) -> None:
    await record(database, *(delivery(name, "button") for name in ("b", "a", "d", "c")))
    await record(database, delivery("1 notice", "notice"), delivery("3 message"), delivery("2 notice", "notice"))
    assert await sent_names(database) == ["1 notice", "3 message", "2 notice", "b", "a", "d", "c"]


async def test_message_that_comes_later_overtakes_waiting_buttons(database: Database, outbox: Outbox) -> None:
    await queue(database, turn())
    await end(database, "one", asking())
    assert await claimed(outbox) == "q"
    await outbox.acknowledge(DeliveryId("q"), EventId("$q"), NOW)
    await record(database, delivery("urgent"))
    assert await sent_names(database) == ["urgent", "q button 1", "q button 2"]


async def test_redactions_wait_until_their_turn_ended(database: Database) -> None:
    await queue(database, turn())
    await record(database, delivery("button", "button"))
    await send_all(database)
    await record(
        database,
        delivery("redaction", "redaction", target_id=DeliveryId("button"), after_turn=turn().turn_id),
        delivery("edit", "edit", target_id=DeliveryId("button")),
    )
    assert await sent_names(database) == ["edit"]
    await TurnStore(database).delay(turn().turn_id, "broke", NOW + 1)
    assert await sent_names(database) == []
    await end(database, "one", outcome(delivery("reply")))
    assert await sent_names(database) == ["reply", "redaction"]


async def test_redactions_do_not_wait_for_a_turn_that_was_parked(database: Database) -> None:
    await queue(database, turn())
    await record(database, delivery("button", "button"))
    await send_all(database)
    await record(
        database, delivery("redaction", "redaction", target_id=DeliveryId("button"), after_turn=turn().turn_id)
    )
    await TurnStore(database).park(turn().turn_id, "broke", delivery("parked", "notice"), NOW)
    assert await sent_names(database) == ["parked", "redaction"]


async def test_each_agent_is_given_its_own_deliveries(database: Database) -> None:
    await record(database, delivery("helpers"), delivery("critics", agent=CRITIC))
    assert [each.delivery_id for each in await send_all(database, CRITIC)] == ["critics"]
    assert [each.delivery_id for each in await send_all(database, HELPER)] == ["helpers"]


async def test_delivery_is_given_whole_with_the_event_that_it_relates_to(database: Database) -> None:
    await queue(database, turn())
    await end(database, "one", asking(buttons=1))
    message, button = await send_all(database)
    assert (message.kind, message.room_id, message.question_id, message.target_event) == (
        "message",
        "!room",
        "question_q",
        None,
    )
    assert (button.kind, button.content, button.question_id, button.target_event) == (
        "button",
        '{"body":"q button 1"}',
        "question_q",
        "$event of q",
    )


# Once, and not lost


async def test_crash_between_claim_and_acknowledgement_claims_the_same_delivery_again(
    outbox: Outbox, database: Database
) -> None:
    await record(database, delivery("first"), delivery("second"))
    assert [await claimed(outbox) for _ in range(3)] == ["first", "first", "first"]
    assert states(database) == {"first": "attempted", "second": "pending"}


async def test_message_that_overtakes_leaves_the_claimed_button_to_be_claimed_again(
    outbox: Outbox, database: Database
) -> None:
    await record(database, delivery("button", "button"))
    assert await claimed(outbox) == "button"
    await record(database, delivery("message"))
    assert await sent_names(database) == ["message", "button"]


async def test_button_waits_until_its_message_is_acknowledged(outbox: Outbox, database: Database) -> None:
    await queue(database, turn())
    await end(database, "one", asking(buttons=1))
    await record(database, delivery("other", agent=HELPER))
    assert await claimed(outbox) == "q"
    assert await claimed(outbox) == "q"
    await outbox.acknowledge(DeliveryId("q"), EventId("$q"), NOW)
    assert await sent_names(database) == ["other", "q button 1"]


async def test_delivery_that_is_recorded_twice_is_sent_once_as_it_was_first(database: Database) -> None:
    await record(database, delivery("one", content='{"body":"first"}'))
    await record(database, delivery("one", content='{"body":"second"}'))
    (sent,) = await send_all(database)
    await record(database, delivery("one", content='{"body":"third"}'))
    assert sent.content == '{"body":"first"}'
    assert await send_all(database) == []


async def test_nothing_is_due_in_an_empty_journal(outbox: Outbox) -> None:
    assert await claimed(outbox) is None


# Acknowledged


async def test_acknowledgement_keeps_the_event_and_its_question_has_it_too(outbox: Outbox, database: Database) -> None:
    await queue(database, turn())
    await end(database, "one", asking(buttons=0))
    await claimed(outbox)
    await outbox.acknowledge(DeliveryId("q"), EventId("$q"), NOW + 5)
    assert rows(database, "SELECT state, event_id, error, settled_at FROM deliveries") == [
        ("sent", "$q", None, NOW + 5)
    ]
    assert rows(database, "SELECT event_id, state, opened_seq FROM questions") == [("$q", "posting", None)]


async def test_first_acknowledgement_counts(outbox: Outbox, database: Database) -> None:
    await record(database, delivery("one"))
    await claimed(outbox)
    await outbox.acknowledge(DeliveryId("one"), EventId("$first"), NOW)
    await outbox.acknowledge(DeliveryId("one"), EventId("$second"), NOW)
    await outbox.acknowledge(DeliveryId("one"), None, NOW)
    assert value(database, "SELECT event_id FROM deliveries") == "$first"


async def test_acknowledgement_without_an_event_ends_the_delivery_and_the_echo_tells_the_event(
    outbox: Outbox, database: Database
) -> None:
    await record(database, delivery("button", "button"))
    await claimed(outbox)
    await outbox.acknowledge(DeliveryId("button"), None, NOW)
    assert await claimed(outbox) is None
    assert rows(database, "SELECT state, event_id FROM deliveries") == [("sent", None)]
    await admit(database, acknowledged=[Acknowledged(delivery_id=DeliveryId("button"), event_id=EventId("$echo"))])
    assert rows(database, "SELECT state, event_id FROM deliveries") == [("sent", "$echo")]


async def test_echo_acknowledges_a_delivery_whose_answer_got_lost(outbox: Outbox, database: Database) -> None:
    await queue(database, turn())
    await end(database, "one", asking(buttons=1))
    await claimed(outbox)
    await admit(database, acknowledged=[Acknowledged(delivery_id=DeliveryId("q"), event_id=EventId("$echo"))])
    assert value(database, "SELECT event_id FROM questions") == "$echo"
    assert await sent_names(database) == ["q button 1"]


async def test_next_claim_acknowledges_what_was_sent_before_it(outbox: Outbox, database: Database) -> None:
    await record(database, delivery("first"), delivery("button", "button", target_id=DeliveryId("first")))
    assert await claimed(outbox) == "first"
    sent = Acknowledged(delivery_id=DeliveryId("first"), event_id=EventId("$first"))
    due = await outbox.claim_next(HELPER, NOW + 4, sent)
    assert due is not None
    assert (due.delivery_id, due.target_event) == ("button", "$first")
    assert rows(database, "SELECT state, event_id, settled_at FROM deliveries WHERE delivery_id = 'first'") == [
        ("sent", "$first", NOW + 4)
    ]


async def test_what_was_sent_last_is_acknowledged_where_nothing_else_is_due(outbox: Outbox, database: Database) -> None:
    await record(database, delivery("last"))
    assert await claimed(outbox) == "last"
    sent = Acknowledged(delivery_id=DeliveryId("last"), event_id=EventId("$last"))
    assert await outbox.claim_next(HELPER, NOW, sent) is None
    assert states(database) == {"last": "sent"}


async def test_events_that_are_some_delivery_are_told_from_others(outbox: Outbox, database: Database) -> None:
    await record(database, delivery("one"), delivery("two", agent=CRITIC), delivery("waiting"))
    await claimed(outbox)
    await outbox.acknowledge(DeliveryId("one"), EventId("$one"), NOW)
    await send_all(database, CRITIC)
    events = [EventId(name) for name in ("$one", "$event of two", "$strange")]
    assert await outbox.acknowledged_events(events) == {"$one", "$event of two"}
    assert await outbox.acknowledged_events([]) == frozenset()


async def test_what_the_account_sent_lately_is_known_with_its_time(outbox: Outbox, database: Database) -> None:
    await record(
        database, delivery("old"), delivery("new"), delivery("b", "button"), delivery("waiting", "edit"), delivery("no")
    )
    for name, at in (("old", NOW), ("new", NOW + 1), ("no", NOW + 2), ("b", NOW + 3)):
        assert await claimed(outbox) == name
        if name == "no":
            await outbox.refuse(DeliveryId(name), "403 M_FORBIDDEN", at, without_buttons)
        else:
            await outbox.acknowledge(DeliveryId(name), EventId(f"${name}"), at)
    assert await outbox.sent_since(HELPER, NOW) == [(NOW + 1, "message"), (NOW + 3, "button")]
    assert await outbox.sent_since(CRITIC, NOW) == []
