"""Deliveries that have to wait: for the server's limit, for messages, for a room."""

from mindbridge.ids import DeliveryId, EventId, RoomId, UserId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Acknowledged, Membership
from tests.journal.sample_rows import (
    CRITIC,
    HELPER,
    NOW,
    ROOM,
    admit,
    asking,
    delivery,
    end,
    queue,
    record,
    rows,
    seen,
    send_all,
    take,
    turn,
    value,
)
from tests.journal.sending import claimed, states

# The server's limit


async def two_accounts(database: Database) -> None:
    for agent in (HELPER, CRITIC):
        await AdmissionStore(database).record_account(agent, UserId(f"@{agent}:example.org"), NOW)


async def test_account_waits_as_long_as_its_server_asked_for_and_keeps_what_it_learned(
    outbox: Outbox, database: Database
) -> None:
    await two_accounts(database)
    await outbox.hold(HELPER, DeliveryId("one"), NOW + 5_000, "{}", NOW)
    assert await outbox.limits(HELPER) == (NOW + 5_000, "{}")
    assert await outbox.limits(CRITIC) == (0, None)
    await outbox.learn(HELPER, '{"burst": 2}')
    assert await outbox.limits(HELPER) == (NOW + 5_000, '{"burst": 2}')


async def test_account_that_is_not_known_waits_for_nothing(outbox: Outbox) -> None:
    assert await outbox.limits(HELPER) == (0, None)


async def test_what_the_server_did_not_take_counts_as_never_tried_and_waiting_redactions_are_dropped(
    outbox: Outbox, database: Database
) -> None:
    await two_accounts(database)
    await record(database, delivery("one"), delivery("gone", "redaction"), delivery("other", "redaction", agent=CRITIC))
    assert await claimed(outbox) == "one"
    await outbox.hold(HELPER, DeliveryId("one"), NOW, "{}", NOW)
    assert states(database) == {"one": "pending", "gone": "dropped", "other": "pending"}
    again = await outbox.claim_next(HELPER, NOW)
    assert again is not None
    assert not again.tried_before


async def test_what_an_earlier_try_may_have_brought_to_the_server_stays_tried_while_the_account_waits(
    outbox: Outbox, database: Database
) -> None:
    await two_accounts(database)
    await record(database, delivery("one"))
    assert await claimed(outbox) == "one"
    await outbox.hold(HELPER, None, NOW, "{}", NOW)
    again = await outbox.claim_next(HELPER, NOW)
    assert again is not None
    assert again.tried_before


async def test_buttons_of_a_question_stay_when_the_account_was_limited_since_it_asked(
    outbox: Outbox, database: Database
) -> None:
    await two_accounts(database)
    await queue(database, turn())
    await end(database, "one", asking())
    await send_all(database)
    await admit(database, opened=[seen()])
    await outbox.hold(HELPER, DeliveryId("q"), NOW, "{}", NOW + 1)
    await take(database)
    assert rows(database, "SELECT * FROM deliveries WHERE kind = 'redaction'") == []


async def test_buttons_are_redacted_where_the_account_was_limited_only_before_it_asked(
    outbox: Outbox, database: Database
) -> None:
    await two_accounts(database)
    await outbox.hold(HELPER, DeliveryId("earlier"), NOW, "{}", NOW - 1)
    await outbox.hold(CRITIC, DeliveryId("another's"), NOW, "{}", NOW + 1)
    await queue(database, turn())
    await end(database, "one", asking())
    await send_all(database)
    await admit(database, opened=[seen()])
    await take(database)
    assert value(database, "SELECT COUNT(*) FROM deliveries WHERE kind = 'redaction'") == 2


async def test_limit_comes_too_late_for_what_its_echo_showed_to_be_there(outbox: Outbox, database: Database) -> None:
    await two_accounts(database)
    await record(database, delivery("one"))
    await claimed(outbox)
    await admit(database, acknowledged=[Acknowledged(delivery_id=DeliveryId("one"), event_id=EventId("$one"))])
    await outbox.hold(HELPER, DeliveryId("one"), NOW + 5_000, "{}", NOW)
    assert rows(database, "SELECT state, event_id FROM deliveries") == [("sent", "$one")]


# What is left for later


async def test_only_messages_and_notices_are_claimed_while_the_rest_has_to_wait(
    outbox: Outbox, database: Database
) -> None:
    await record(database, delivery("edit", "edit"), delivery("button", "button"), delivery("note", "notice"))
    claims = [await outbox.claim_next(HELPER, NOW, messages_only=True) for _ in range(2)]
    assert [each and each.delivery_id for each in claims] == ["note", "note"]
    await outbox.acknowledge(DeliveryId("note"), EventId("$note"), NOW)
    assert await outbox.claim_next(HELPER, NOW, messages_only=True) is None
    assert await claimed(outbox) == "button"


async def test_room_that_is_set_aside_holds_up_no_other(outbox: Outbox, database: Database) -> None:
    await record(database, delivery("here"), delivery("there", room_id=RoomId("!there")))
    other = await outbox.claim_next(HELPER, NOW, set_aside=[ROOM])
    assert other is not None
    assert other.delivery_id == "there"
    assert await claimed(outbox) == "here"


async def test_what_goes_to_a_room_waits_until_its_join_is_through(outbox: Outbox, database: Database) -> None:
    store = AdmissionStore(database)
    await record(database, delivery("word"))
    await store.record_membership(HELPER, Membership(room_id=ROOM, state="accepted", invited_ts=NOW))
    assert await outbox.claim_next(HELPER, NOW) is None
    await store.record_membership(HELPER, Membership(room_id=ROOM, state="joined", invited_ts=None))
    assert await claimed(outbox) == "word"
