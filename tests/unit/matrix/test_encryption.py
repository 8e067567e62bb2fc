"""What one device's encryption makes of what others send, and keeps of it."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import nio
import pytest
import vodozemac
from nio.crypto.olm_machine import Olm
from nio.event_builders import DummyMessage, RoomKeyRequestMessage
from nio.events import ForwardedRoomKeyEvent, RoomKeyEvent, ToDeviceEvent, UnknownEvent
from nio.responses import KeysClaimResponse, KeysQueryResponse

from mindbridge.ids import UserId
from mindbridge.matrix.errors import Unreachable
from mindbridge.matrix.key_store import KeyFolder, KeysLost
from mindbridge.matrix.machine import Machine
from tests.unit.matrix.devices import ALICE, BOT, ROOM, TEXT, Devices, encrypted, learn, message, upload


@pytest.fixture
def devices(tmp_path: Path) -> Iterator[Devices]:
    both = Devices(tmp_path)
    yield both
    both.close()


@pytest.fixture
def with_nio(tmp_path: Path) -> Iterator[Devices]:
    both = Devices(tmp_path / "nio", Olm)
    yield both
    both.close()


def reopened(tmp_path: Path) -> Machine:
    """The bot's device as a process finds it that starts now."""
    return Machine(BOT, "BOT", KeyFolder(tmp_path).open(UserId(BOT), "BOT"))


def read(machine: Any, event: nio.MegolmEvent) -> dict[str, Any] | None:
    decrypted = machine._decrypt_megolm_no_error(event)  # noqa: SLF001
    return None if decrypted is None else decrypted.source


def share_key(devices: Devices) -> None:
    devices.claim_from_bot()
    assert isinstance(devices.bot.handle_to_device_event(devices.room_key()), RoomKeyEvent)


# Messages of other devices that can't be read


def names_unknown_key(devices: Devices) -> ToDeviceEvent:
    account = vodozemac.Account()
    account.generate_one_time_keys(1)
    [never_there] = account.one_time_keys.values()
    devices.alice.create_session(never_there.to_base64(), devices.alice.device_store[BOT]["BOT"].curve25519)
    return devices.to_bot("m.dummy", {})


def with_body(kind: int, body: str) -> Callable[[Devices], ToDeviceEvent]:
    def make(devices: Devices) -> ToDeviceEvent:
        own_key = devices.bot.account.identity_keys["curve25519"]
        sender_key = devices.alice.account.identity_keys["curve25519"]
        ciphertext = {own_key: {"type": kind, "body": body}}
        return encrypted(
            {"algorithm": "m.olm.v1.curve25519-aes-sha2", "sender_key": sender_key, "ciphertext": ciphertext}
        )

    return make


def bad_room_key(devices: Devices) -> ToDeviceEvent:
    devices.claim_from_bot()
    content = {"algorithm": "m.megolm.v1.aes-sha2", "room_id": ROOM, "session_id": "x", "session_key": "no key"}
    return devices.to_bot("m.room_key", content)


BAD = [names_unknown_key, with_body(0, "no message"), with_body(1, "no message"), with_body(1, "é"), bad_room_key]


@pytest.mark.parametrize("make", BAD)
def test_device_message_that_cannot_be_read_is_passed_over(
    devices: Devices, make: Callable[[Devices], ToDeviceEvent], caplog: pytest.LogCaptureFixture
) -> None:
    assert devices.bot.handle_to_device_event(make(devices)) is None
    assert "device_message_passed_over" in caplog.text
    share_key(devices)


@pytest.mark.parametrize("make", BAD)
def test_nio_raises_at_a_device_message_that_cannot_be_read(
    with_nio: Devices, make: Callable[[Devices], ToDeviceEvent]
) -> None:
    """The fault that `Machine.handle_to_device_event` is there for; where this fails, nio has mended it."""
    with pytest.raises(ValueError):  # noqa: PT011 - vodozemac's errors, and base64's
        with_nio.bot.handle_to_device_event(make(with_nio))


def test_new_session_is_made_with_a_device_whose_message_could_not_be_read(devices: Devices) -> None:
    devices.bot.handle_to_device_event(names_unknown_key(devices))
    [device] = devices.bot.wedged_devices
    assert (device.user_id, device.id) == (ALICE, "ALICE")
    one_time_key = dict([devices.alice_keys["one_time_keys"].popitem()])
    devices.bot.handle_response(KeysClaimResponse({ALICE: {"ALICE": one_time_key}}, {}))
    [dummy] = devices.bot.outgoing_to_device_messages
    assert isinstance(dummy, DummyMessage)
    assert isinstance(devices.alice.handle_to_device_event(encrypted(dummy.content, BOT)), nio.events.DummyEvent)


def test_unknown_device_whose_message_could_not_be_read_is_looked_for_first(devices: Devices) -> None:
    stranger = "@stranger:example.org"
    event = names_unknown_key(devices)
    event.sender = stranger
    devices.bot.handle_to_device_event(event)
    assert stranger in devices.bot.users_for_key_query
    assert devices.bot.wedged_devices == []
    keys = dict(devices.alice_keys["device_keys"])
    learn(devices.bot, ALICE, "ALICE", keys)
    devices.bot.handle_to_device_event(names_unknown_key(devices))
    assert [device.id for device in devices.bot.wedged_devices] == ["ALICE"]


# Keys of other devices


def test_signed_one_time_key_that_is_no_key_stops_no_other_device(devices: Devices) -> None:
    signed: dict[str, Any] = {"key": "no key"}
    signed["signatures"] = {ALICE: {"ed25519:ALICE": devices.alice.sign_json({"key": "no key"})}}
    good = dict([devices.alice_keys["one_time_keys"].popitem()])
    devices.bot.handle_response(KeysClaimResponse({ALICE: {"ALICE": {"signed_curve25519:AAAA": signed}}}, {}))
    assert devices.bot.session_store.get(devices.alice.account.identity_keys["curve25519"]) is None
    devices.bot.handle_response(KeysClaimResponse({"@x:y": {"NONE": good}, ALICE: {"ALICE": good}}, {}))
    assert devices.bot.session_store.get(devices.alice.account.identity_keys["curve25519"]) is not None


def test_device_with_a_key_that_is_none_stops_no_other_device(devices: Devices, tmp_path: Path) -> None:
    keys = {"ed25519:BAD": "no key", "curve25519:BAD": "no key"}
    bad = {"user_id": ALICE, "device_id": "BAD", "keys": keys, "signatures": {ALICE: {"ed25519:BAD": "no signature"}}}
    other: Any = Olm(ALICE, "OTHER", KeyFolder(tmp_path).open(UserId(ALICE), "OTHER"))
    sound = upload(other)["device_keys"]
    other.store.close()
    alice = dict(devices.alice_keys["device_keys"])
    devices.bot.handle_response(KeysQueryResponse({ALICE: {"BAD": bad, "OTHER": sound, "ALICE": alice}}, {}))
    assert {device.id for device in devices.bot.device_store.active_user_devices(ALICE)} == {"ALICE", "OTHER"}


# Events of rooms


def test_decrypted_event_is_as_if_it_had_been_sent_in_the_clear(devices: Devices) -> None:
    share_key(devices)
    event = devices.in_room(message(), unsigned={"age": 5, "transaction_id": "t"})
    event.source["content"]["m.relates_to"] = {"rel_type": "m.thread", "event_id": "$root"}
    assert read(devices.bot, event) == {
        "event_id": "$event",
        "sender": ALICE,
        "origin_server_ts": 1_700_000_000_000,
        "unsigned": {"age": 5, "transaction_id": "t"},
        "type": "m.room.message",
        "content": {**TEXT, "m.relates_to": {"rel_type": "m.thread", "event_id": "$root"}},
    }


SAYS_NOTHING = [
    {"type": "m.room.redaction", "content": {"redacts": "$other"}, "redacts": "$other", "room_id": ROOM},
    {"type": "m.room.encrypted", "content": {}, "room_id": ROOM},
    {"type": 5, "content": {}, "room_id": ROOM},
    {"type": "m.room.message", "content": [], "room_id": ROOM},
    b"\xff",
]


@pytest.mark.parametrize("payload", SAYS_NOTHING)
def test_ciphertext_that_is_no_message_stops_nothing(devices: Devices, payload: object) -> None:
    share_key(devices)
    source = read(devices.bot, devices.in_room(payload))
    assert source is not None
    assert source["content"] == {}
    assert source["sender"] == ALICE


def test_nio_raises_at_a_ciphertext_that_is_no_text(with_nio: Devices) -> None:
    """The fault that `Machine._decrypt_megolm_no_error` is there for; where this fails, nio has mended it."""
    share_key(with_nio)
    with pytest.raises(UnicodeDecodeError):
        read(with_nio.bot, with_nio.in_room(b"\xff"))


def test_nothing_encrypted_is_a_state_event_or_claims_another_sender(devices: Devices) -> None:
    share_key(devices)
    claims = {"sender": BOT, "event_id": "$other", "origin_server_ts": 1, "unsigned": {"transaction_id": "t"}}
    payload = {"type": "m.room.member", "state_key": BOT, "content": {"membership": "leave"}, "room_id": ROOM, **claims}
    decrypted = devices.bot._decrypt_megolm_no_error(devices.in_room(payload))  # noqa: SLF001
    assert type(decrypted) is UnknownEvent
    assert decrypted.source == {
        "event_id": "$event",
        "sender": ALICE,
        "origin_server_ts": 1_700_000_000_000,
        "type": "m.room.member",
        "content": {"membership": "leave"},
    }


def test_key_that_is_missing_is_asked_of_the_device_that_sent_the_event_once(devices: Devices) -> None:
    devices.claim_from_bot()
    devices.room_key()
    event, again = devices.in_room(message()), devices.in_room(message(), "$again")
    assert read(devices.bot, event) is None
    assert read(devices.bot, again) is None
    [request] = devices.bot.outgoing_to_device_messages
    assert isinstance(request, RoomKeyRequestMessage)
    assert (request.recipient, request.recipient_device, request.session_id) == (ALICE, "ALICE", event.session_id)


def test_no_more_keys_are_asked_for_than_can_wait(devices: Devices) -> None:
    devices.claim_from_bot()
    devices.room_key()
    event = devices.in_room(message())
    for number in range(200):
        event.session_id = str(number)
        read(devices.bot, event)
    assert len(devices.bot.outgoing_to_device_messages) == 100


def forwarded(devices: Devices, forwarder: Any) -> ToDeviceEvent:
    """The room's key, forwarded to the bot by a device."""
    maker_key = devices.alice.account.identity_keys["curve25519"]
    session_id = devices.alice.outbound_group_sessions[ROOM].id
    inbound = devices.alice.inbound_group_store.get(ROOM, maker_key, session_id)
    device = forwarder.device_store[BOT]["BOT"]
    session = forwarder.session_store.get(device.curve25519)
    content = forwarder._encrypt_forwarding_key(ROOM, inbound, session, device).content  # noqa: SLF001
    return encrypted(content, forwarder.user_id)


def test_event_can_be_read_once_its_sender_forwards_the_key(devices: Devices) -> None:
    devices.claim_from_bot()
    devices.room_key()
    event = devices.in_room(message())
    assert read(devices.bot, event) is None
    [request] = devices.bot.outgoing_to_device_messages
    devices.bot.handle_response(nio.ToDeviceResponse(request))
    assert isinstance(devices.bot.handle_to_device_event(forwarded(devices, devices.alice)), ForwardedRoomKeyEvent)
    clear = read(devices.bot, event)
    assert clear is not None
    assert clear["content"] == TEXT


def test_key_that_was_not_asked_for_is_not_taken_from_anyone(devices: Devices) -> None:
    devices.claim_from_bot()
    devices.room_key()
    assert devices.bot.handle_to_device_event(forwarded(devices, devices.alice)) is None
    assert read(devices.bot, devices.in_room(message())) is None


def test_key_is_not_taken_from_another_device_than_the_one_that_made_it(devices: Devices, tmp_path: Path) -> None:
    devices.claim_from_bot()
    devices.room_key()
    event = devices.in_room(message())
    assert read(devices.bot, event) is None
    [request] = devices.bot.outgoing_to_device_messages
    devices.bot.handle_response(nio.ToDeviceResponse(request))
    mallory: Any = Olm("@mallory:x", "M", KeyFolder(tmp_path).open(UserId("@mallory:x"), "M"))
    learn(mallory, BOT, "BOT", devices.bot_keys["device_keys"])
    name, key = devices.bot_keys["one_time_keys"].popitem()
    mallory.handle_response(KeysClaimResponse({BOT: {"BOT": {name: key}}}, {}))
    assert devices.bot.handle_to_device_event(forwarded(devices, mallory)) is None
    assert read(devices.bot, event) is None
    mallory.store.close()


# What is kept


def test_room_key_and_the_session_it_came_over_are_kept_together(devices: Devices, tmp_path: Path) -> None:
    share_key(devices)
    event = devices.in_room(message())
    later = reopened(tmp_path)
    assert read(later, event) is not None
    assert isinstance(later.handle_to_device_event(devices.to_bot("m.dummy", {})), nio.events.DummyEvent)
    later.store.close()


def fail_half_way(devices: Devices, key: ToDeviceEvent) -> None:
    """The bot's device reads a room's key, but can't write more than the session that it came over."""
    with closing(sqlite3.connect(devices.bot.store.database_path)) as file:
        refuse = "BEGIN SELECT RAISE(ABORT, 'no room for it'); END"
        file.execute(f"CREATE TRIGGER refused BEFORE INSERT ON megolminboundsessions {refuse}")
        with pytest.raises(Exception, match="no room for it"):
            devices.bot.handle_to_device_event(key)
        file.execute("DROP TRIGGER refused")


def test_write_that_ends_half_way_leaves_the_message_readable_when_it_comes_again(
    devices: Devices, tmp_path: Path
) -> None:
    devices.claim_from_bot()
    key = devices.room_key()
    fail_half_way(devices, key)
    later = reopened(tmp_path)
    assert isinstance(later.handle_to_device_event(key), RoomKeyEvent)
    later.store.close()


def test_nio_loses_the_key_where_it_ends_between_two_writes(with_nio: Devices, tmp_path: Path) -> None:
    """The fault that all of an event is written at once for; where this fails, nio has mended it."""
    with_nio.claim_from_bot()
    key = with_nio.room_key()
    fail_half_way(with_nio, key)
    later: Any = Olm(BOT, "BOT", KeyFolder(tmp_path / "nio").open(UserId(BOT), "BOT"))
    assert later.handle_to_device_event(key) is None
    later.store.close()


def test_one_time_keys_are_kept_before_the_server_is_given_them(tmp_path: Path) -> None:
    first = reopened(tmp_path)
    keys = first.share_keys()
    first.store.close()
    second = reopened(tmp_path)
    assert second.share_keys() == keys
    second.store.close()


def test_nio_forgets_one_time_keys_that_the_server_may_have_been_given(tmp_path: Path) -> None:
    """The fault that `Machine.share_keys` is there for; where this fails, nio has mended it."""

    def machine() -> Any:
        return Olm(BOT, "BOT", KeyFolder(tmp_path).open(UserId(BOT), "BOT"))

    first = machine()
    keys = first.share_keys()["one_time_keys"]
    first.store.close()
    second = machine()
    other = second.share_keys()["one_time_keys"]
    second.store.close()
    assert set(keys) == set(other)  # the same names
    assert keys != other


def test_own_session_of_a_room_is_a_new_one_after_a_restart(devices: Devices, tmp_path: Path) -> None:
    devices.bot.create_outbound_group_session(ROOM)
    before = devices.bot.outbound_group_sessions[ROOM].id
    later = reopened(tmp_path)
    assert later.outbound_group_sessions == {}
    later.create_outbound_group_session(ROOM)
    assert later.outbound_group_sessions[ROOM].id != before
    later.store.close()


# Where it is kept


def test_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    machine = reopened(tmp_path)
    files = list((tmp_path / "keys").iterdir())
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    machine.store.close()


def test_longest_ids_have_a_file(tmp_path: Path) -> None:
    user = UserId("@" + "é/\0" * 60 + ":example.org")
    store = KeyFolder(tmp_path).open(user, "D/" * 127)
    store.close()
    assert len(list((tmp_path / "keys").iterdir())) == 1


def garbage(path: Path) -> None:
    path.write_bytes(b"garbage" * 2_000)


def garbage_inside(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * 8192 + content[12288:])


@pytest.mark.parametrize("damage", [garbage, garbage_inside])
def test_damaged_file_is_lost_keys(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    keys = KeyFolder(tmp_path)
    machine = reopened(tmp_path)
    upload(machine)
    machine.store.close()
    damage(keys.path(UserId(BOT), "BOT"))
    with pytest.raises(KeysLost):
        keys.open(UserId(BOT), "BOT")


def test_folder_that_is_none_is_to_be_tried_again(tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(b"")
    with pytest.raises(Unreachable):
        KeyFolder(tmp_path).open(UserId(BOT), "BOT")
