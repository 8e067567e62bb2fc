"""Deliveries: in which order they are sent, and what becomes of them."""

import pytest

from mindbridge.ids import DeliveryId, EventId, RoomId, UserId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Acknowledged, Membership, NewDelivery, Unanswered
from mindbridge.journal.turns import TurnStore
from tests.journal.sample_rows import (
    CRITIC,
    HELPER,
    HELPER_USER,
    NOW,
    ROOM,
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


@pytest.fixture
def outbox(database: Database) -> Outbox:
    return Outbox(database)


def without_buttons(question: Unanswered) -> NewDelivery:
    return delivery(f"{question.delivery_id} without buttons", "edit", target_id=question.delivery_id)


async def claimed(outbox: Outbox) -> str | None:
    due = await outbox.claim_next(HELPER, NOW)
    return None if due is None else due.delivery_id


async def sent_names(database: Database) -> list[str]:
    return [each.delivery_id for each in await send_all(database)]


def states(database: Database) -> dict[str, str]:
    return dict(rows(database, "SELECT delivery_id, state FROM deliveries ORDER BY seq"))


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


# Tried, with no word from the server


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
