"""The encrypted client that other tests rely on, shown with two people and no bridge."""

import pytest

from tests.live.js_people import JsPeople
from tests.live.js_person import JsPersonError, Shield


async def test_messages_threads_edits_and_reactions_are_read_in_an_encrypted_room(new_js_person: JsPeople) -> None:
    alice, bob = await new_js_person("Alice"), await new_js_person("Bob")
    room = await alice.create_room(invite=[bob.user_id])
    await bob.join(room)
    await bob.wait_for_device(alice.user_id, alice.device_id)

    root = await alice.send_text(room, "hello")
    read = await bob.wait_for_event(room, root)
    in_thread = await bob.send_text(room, "in the thread", thread=root)
    reply = await bob.send_text(room, "a reply", reply_to=root)
    await bob.react(room, root, "👍")
    withdrawn = await bob.react(room, root, "🚀")
    await bob.redact(room, withdrawn)
    edit = await alice.edit(room, root, "hello again")

    assert (read.sender, read.type, read.encrypted, read.text) == (alice.user_id, "m.room.message", True, "hello")
    assert read.shield == Shield(colour="NONE", reason=None)
    threaded = await alice.wait_for_event(room, in_thread)
    assert (threaded.encrypted, threaded.text, threaded.thread) == (True, "in the thread", root)
    assert (await alice.wait_for_event(room, reply)).relation == {"m.in_reply_to": {"event_id": root}}
    edited = await bob.wait_for(room, lambda event: event.event_id == root and event.edited_by == edit)
    assert (edited.text, edited.content["body"]) == ("hello again", "hello")
    assert (await alice.wait_for(room, lambda event: event.event_id == withdrawn and event.redacted)).text is None
    assert (await alice.wait_for_event(room, root)).reactions == {"👍": [bob.user_id]}


async def test_room_key_that_comes_late_makes_the_message_readable(new_js_person: JsPeople) -> None:
    alice, bob = await new_js_person("Alice"), await new_js_person("Bob")
    room = await alice.create_room(invite=[bob.user_id])
    await bob.join(room)

    await alice.hold_keys()
    message = await alice.send_text(room, "hello")
    unread = await bob.wait_for_event(room, message, readable=False)
    released = await alice.release_keys()

    assert (unread.failure, unread.text, unread.shield) == ("MEGOLM_UNKNOWN_INBOUND_SESSION_ID", None, None)
    assert released == 1
    assert (await bob.wait_for_event(room, message)).text == "hello"


async def test_client_that_trusts_only_signed_devices_hides_what_an_unsigned_one_sends(new_js_person: JsPeople) -> None:
    alice, bob = await new_js_person("Alice", isolation="only_signed"), await new_js_person("Bob", signed=False)
    room = await alice.create_room(invite=[bob.user_id])
    await bob.join(room)
    await alice.wait_for_device(bob.user_id, bob.device_id, signed=False)

    hidden = await bob.send_text(room, "from an unsigned device")
    shown = await alice.wait_for_event(room, hidden, readable=False)
    withheld = await alice.send_text(room, "for signed devices")

    assert (shown.failure, shown.text) == ("UNSIGNED_SENDER_DEVICE", None)
    refused = await bob.wait_for_event(room, withheld, readable=False)
    assert refused.failure == "MEGOLM_KEY_WITHHELD_FOR_UNVERIFIED_DEVICE"


async def test_client_that_trusts_all_devices_warns_of_an_unsigned_one(new_js_person: JsPeople) -> None:
    alice, bob = await new_js_person("Alice"), await new_js_person("Bob", signed=False)
    room = await alice.create_room(invite=[bob.user_id])
    await bob.join(room)
    await alice.wait_for_device(bob.user_id, bob.device_id, signed=False)

    read = await alice.wait_for_event(room, await bob.send_text(room, "hello"))

    assert (read.text, read.shield) == ("hello", Shield(colour="RED", reason="UNSIGNED_DEVICE"))


async def test_second_device_of_a_person_reads_along_and_is_signed_with_the_recovery_key(
    new_js_person: JsPeople,
) -> None:
    alice, bob = await new_js_person("Alice", signed=False), await new_js_person("Bob", isolation="only_signed")
    recovery_key = await alice.sign_device()
    phone = await new_js_person.another_device(alice)
    await phone.sign_device(recovery_key)
    room = await alice.create_room(invite=[bob.user_id])
    await bob.join(room)
    await bob.wait_for_device(phone.user_id, phone.device_id)

    from_phone = await phone.send_text(room, "from the phone")
    from_bob = await bob.send_text(room, "to both")

    assert (await bob.wait_for_event(room, from_phone)).text == "from the phone"
    assert (await alice.wait_for_event(room, from_bob)).text == "to both"
    assert (await phone.wait_for_event(room, from_bob)).text == "to both"


async def test_encryption_that_is_switched_on_later_holds_from_then_on(new_js_person: JsPeople) -> None:
    alice, bob = await new_js_person("Alice"), await new_js_person("Bob")
    room = await alice.create_room(invite=[bob.user_id], encrypted=False)
    await bob.join(room)

    plain = await alice.send_text(room, "plain")
    await alice.enable_encryption(room)
    secret = await alice.send_text(room, "secret")

    seen = [await bob.wait_for_event(room, each) for each in (plain, secret)]
    assert [(event.text, event.encrypted) for event in seen] == [("plain", False), ("secret", True)]


async def test_client_that_has_ended_or_refuses_says_so_with_its_standard_error(new_js_person: JsPeople) -> None:
    alice = await new_js_person("Alice")

    with pytest.raises(JsPersonError, match=r"(?s)join: M_\w+: MatrixError: \[404\].*standard error:\n.*MatrixError"):
        await alice.join("!nowhere:nowhere")
    await alice.stop()
    with pytest.raises(JsPersonError, match="the client has ended"):
        await alice.timeline("!nowhere:nowhere")
