"""Encrypted rooms on a real homeserver: the bridge's client on one side, plain nio as a person's on the other."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import nio
import pytest
import vodozemac
from nio.client.async_client import AsyncClient, AsyncClientConfig
from nio.event_builders import ToDeviceMessage
from nio.store.database import SqliteStore

from mindbridge.demo.homeserver import Homeserver, Registered
from mindbridge.ids import RoomId, UserId
from mindbridge.matrix.client import ErrorAnswer
from mindbridge.matrix.encryption import EncryptedClient
from mindbridge.matrix.key_store import KeyFolder, KeysLost
from mindbridge.matrix.machine import Machine
from tests.live.conftest import NewProxy
from tests.live.person import Person
from tests.live.proxy import Proxy, answer, hang, limit, lose, refuse
from tests.live.waiting import wait_until

MEGOLM = {"algorithm": "m.megolm.v1.aes-sha2"}
TEXT: dict[str, Any] = {"msgtype": "m.text", "body": "hello", "m.mentions": {}}
CONFIG = AsyncClientConfig(max_limit_exceeded=0, max_timeouts=0, store_sync_tokens=False, request_timeout=30)
NIO_CONFIG = AsyncClientConfig(max_limit_exceeded=0, max_timeouts=0, store=SqliteStore, encryption_enabled=True)

NewClient = Callable[..., Awaitable[Any]]


def machine_of(client: AsyncClient) -> Any:
    assert client.olm is not None
    return client.olm


@pytest.fixture
async def bridge(homeserver: Homeserver, tmp_path: Path) -> AsyncIterator[NewClient]:
    """Makes the bridge's client of a fresh account, or of `account`; its keys are in the test's folder."""
    async with AsyncExitStack() as clients:

        async def make(account: Registered | None = None, url: str = homeserver.url) -> EncryptedClient:
            account = account or await homeserver.register(f"assistant-{secrets.token_hex(4)}", "a password")
            client = EncryptedClient(url, account.user_id, KeyFolder(tmp_path), CONFIG)
            clients.push_async_callback(client.close)
            client.restore_login(account.user_id, account.device_id, account.access_token)
            await client.check_device()
            await step(client)
            return client

        yield make


@pytest.fixture
async def person(homeserver: Homeserver, tmp_path: Path) -> AsyncIterator[NewClient]:
    """Makes a plain nio client of a fresh account, or a further device of one."""
    async with AsyncExitStack() as clients:

        async def make(user_id: str | None = None) -> AsyncClient:
            if user_id is None:
                user_id = (await homeserver.register(f"alice-{secrets.token_hex(4)}", "a password")).user_id
            folder = tmp_path / secrets.token_hex(4)
            folder.mkdir()
            client = AsyncClient(homeserver.url, user_id, store_path=str(folder), config=NIO_CONFIG)
            clients.push_async_callback(client.close)
            await client.login("a password")
            clients.callback(machine_of(client).store.database.close)
            await client.sync(full_state=True)
            await client.keys_upload()
            return client

        yield make


async def step(client: EncryptedClient) -> nio.SyncResponse:
    """One sync of the bridge's client, and what has to follow it."""
    response = await client.sync(timeout=0, full_state=not client.rooms)
    assert isinstance(response, nio.SyncResponse)
    await client.keep_keys()
    return response


async def nio_step(client: AsyncClient) -> nio.SyncResponse:
    """One sync of plain nio, and what its `sync_forever` does then."""
    response = await client.sync(timeout=0, full_state=not client.rooms)
    assert isinstance(response, nio.SyncResponse)
    if client.should_upload_keys:
        await client.keys_upload()
    if client.should_query_keys:
        await client.keys_query()
    return response


async def room_of(alice: AsyncClient, bot: EncryptedClient, *, encrypted: bool = True) -> str:
    """A room of the two, which both have synced."""
    state = [{"type": "m.room.encryption", "state_key": "", "content": MEGOLM}] if encrypted else []
    created = await alice.room_create(invite=[bot.user_id], initial_state=state)
    assert isinstance(created, nio.RoomCreateResponse)
    await bot.join(created.room_id)
    await step(bot)
    await nio_step(alice)
    return created.room_id


def events(response: nio.SyncResponse, room: str) -> list[dict[str, Any]]:
    """The JSON of a room's new events that are neither state nor unreadable."""
    timeline = response.rooms.join[room].timeline.events if room in response.rooms.join else []
    return [event.source for event in timeline if "state_key" not in event.source]


def texts(response: nio.SyncResponse, room: str) -> list[str]:
    """What the new messages of a room say; those that can't be read have no text."""
    return [source["content"].get("body", "") for source in events(response, room)]


async def on_server(client: AsyncClient, room: str, event_id: str) -> dict[str, Any]:
    # nio would decrypt it.
    async with Person.with_token(client.homeserver, client.user_id, client.access_token) as plain:
        return await plain.event(room, event_id)


async def test_messages_go_both_ways_and_the_server_sees_only_relations(bridge: NewClient, person: NewClient) -> None:
    bot, alice = await bridge(), await person()
    room = await room_of(alice, bot)
    asked = await alice.room_send(room, "m.room.message", TEXT, ignore_unverified_devices=True)
    [source] = events(await step(bot), room)
    age = source["unsigned"].pop("age")
    assert age >= 0
    assert source == {
        "event_id": asked.event_id,
        "sender": alice.user_id,
        "origin_server_ts": source["origin_server_ts"],
        "unsigned": {"membership": "join"},
        "type": "m.room.message",
        "content": TEXT,
    }
    relation = {"rel_type": "m.thread", "event_id": asked.event_id}
    sent = await bot.room_send(room, "m.room.message", {**TEXT, "body": "hi", "m.relates_to": relation}, "transaction")
    assert texts(await nio_step(alice), room)[-1] == "hi"
    seen = await on_server(alice, room, sent.event_id)
    assert seen["type"] == "m.room.encrypted"
    assert seen["content"]["m.relates_to"] == relation
    assert set(seen["content"]) == {"algorithm", "ciphertext", "device_id", "sender_key", "session_id", "m.relates_to"}
    [own] = events(await step(bot), room)
    assert own["unsigned"]["transaction_id"] == "transaction"
    assert own["content"] == {**TEXT, "body": "hi", "m.relates_to": relation}


async def test_history_and_single_events_are_read_too(bridge: NewClient, person: NewClient) -> None:
    bot, alice = await bridge(), await person()
    room = await room_of(alice, bot)
    asked = await alice.room_send(room, "m.room.message", TEXT, ignore_unverified_devices=True)
    [source] = events(await step(bot), room)
    [page] = [each.source for each in (await bot.room_messages(room, limit=1)).chunk]
    single = (await bot.room_get_event(room, asked.event_id)).event.source
    again = bot.read_encrypted(RoomId(room), await on_server(alice, room, asked.event_id))
    for each in (source, page, single, again):
        assert (each["event_id"], each["type"], each["content"]) == (asked.event_id, "m.room.message", TEXT)


async def test_edit_has_its_relation_outside_and_its_new_content_inside(bridge: NewClient, person: NewClient) -> None:
    bot, alice = await bridge(), await person()
    room = await room_of(alice, bot)
    first = await bot.room_send(room, "m.room.message", TEXT)
    relation = {"rel_type": "m.replace", "event_id": first.event_id}
    content = {**TEXT, "body": "* hi", "m.new_content": {**TEXT, "body": "hi"}, "m.relates_to": relation}
    edit = await bot.room_send(room, "m.room.message", content)
    seen = (await on_server(alice, room, edit.event_id))["content"]
    assert seen["m.relates_to"] == relation
    assert "m.new_content" not in seen
    [_, own] = events(await step(bot), room)
    assert own["content"] == content
    [related] = await edits_of(alice, room, first.event_id)
    assert related["event_id"] == edit.event_id


async def edits_of(client: AsyncClient, room: str, event_id: str) -> list[dict[str, Any]]:
    async with Person.with_token(client.homeserver, client.user_id, client.access_token) as plain:
        return await plain.relations(room, event_id, "m.replace")


async def test_same_transaction_is_one_event_though_it_is_encrypted_anew(bridge: NewClient, person: NewClient) -> None:
    bot, alice = await bridge(), await person()
    room = await room_of(alice, bot)
    first = await bot.room_send(room, "m.room.message", TEXT, "transaction")
    again = await bot.room_send(room, "m.room.message", TEXT, "transaction")
    assert first.event_id == again.event_id
    assert texts(await nio_step(alice), room) == ["hello"]


async def test_transaction_sent_before_the_room_was_encrypted_is_not_sent_once_more(
    bridge: NewClient, person: NewClient
) -> None:
    bot, alice = await bridge(), await person()
    room = await room_of(alice, bot, encrypted=False)
    first = await bot.room_send(room, "m.room.message", TEXT, "transaction")
    await alice.room_put_state(room, "m.room.encryption", MEGOLM)
    again = await bot.room_send(room, "m.room.message", TEXT, "transaction")
    assert first.event_id == again.event_id


async def test_reaction_is_sent_in_the_clear(bridge: NewClient, person: NewClient) -> None:
    bot, alice = await bridge(), await person()
    room = await room_of(alice, bot)
    asked = await alice.room_send(room, "m.room.message", TEXT, ignore_unverified_devices=True)
    content = {"m.relates_to": {"rel_type": "m.annotation", "event_id": asked.event_id, "key": "🚀"}}
    button = await bot.room_send(room, "m.reaction", content)
    seen = await on_server(alice, room, button.event_id)
    assert (seen["type"], seen["content"]) == ("m.reaction", content)


async def test_encryption_switched_on_after_the_last_sync_counts(bridge: NewClient, person: NewClient) -> None:
    bot, alice = await bridge(), await person()
    room = await room_of(alice, bot, encrypted=False)
    plain = await bot.room_send(room, "m.room.message", TEXT)
    assert (await on_server(alice, room, plain.event_id))["type"] == "m.room.message"
    await alice.room_put_state(room, "m.room.encryption", MEGOLM)
    secret = await bot.room_send(room, "m.room.message", TEXT)
    assert (await on_server(alice, room, secret.event_id))["type"] == "m.room.encrypted"
    await nio_step(alice)


async def test_encrypted_room_stays_encrypted_whatever_its_state_says_later(
    bridge: NewClient, person: NewClient, homeserver: Homeserver
) -> None:
    account = await homeserver.register(f"assistant-{secrets.token_hex(4)}", "a password")
    bot, alice = await bridge(account), await person()
    room = await room_of(alice, bot)
    changed = await alice.room_put_state(room, "m.room.encryption", {"algorithm": "none"})
    await alice.room_redact(room, changed.event_id)
    for client in (bot, await bridge(account)):
        await step(client)
        sent = await client.room_send(room, "m.room.message", TEXT)
        assert (await on_server(alice, room, sent.event_id))["type"] == "m.room.encrypted"


async def test_room_whose_encryption_the_server_does_not_tell_gets_nothing(
    bridge: NewClient, person: NewClient, new_proxy: NewProxy
) -> None:
    proxy = await new_proxy()
    bot, alice = await bridge(url=proxy.url), await person()
    room = await room_of(alice, bot, encrypted=False)
    for status, errcode in ((500, "M_UNKNOWN"), (404, "M_UNRECOGNIZED"), (404, ""), (403, "M_FORBIDDEN"), (200, "")):
        rule = proxy.rule(answer(status, {"errcode": errcode} if errcode else b""), path="/state/m.room.encryption")
        if status == 200:
            sent = await bot.room_send(room, "m.room.message", TEXT)
            assert (await on_server(alice, room, sent.event_id))["type"] == "m.room.encrypted"
        else:
            with pytest.raises(ErrorAnswer):
                await bot.room_send(room, "m.room.message", TEXT)
        proxy.remove(rule)
    assert proxy.seen("PUT", "/send/m.room.message") == []


async def test_room_that_was_joined_but_not_synced_gets_nothing(bridge: NewClient, person: NewClient) -> None:
    bot, alice = await bridge(), await person()
    created = await alice.room_create(invite=[bot.user_id])
    await bot.join(created.room_id)
    with pytest.raises(nio.LocalProtocolError):
        await bot.room_send(created.room_id, "m.room.message", TEXT)


# Who is given the room's key


async def test_new_device_of_a_person_reads_what_is_sent_after_it_came(bridge: NewClient, person: NewClient) -> None:
    bot, alice = await bridge(), await person()
    room = await room_of(alice, bot)
    await bot.room_send(room, "m.room.message", TEXT)
    phone = await person(alice.user_id)
    await step(bot)
    await bot.room_send(room, "m.room.message", {**TEXT, "body": "for the phone too"})
    for device in (alice, phone):
        assert texts(await nio_step(device), room)[-1] == "for the phone too"


async def test_key_that_did_not_arrive_is_sent_again_before_the_next_message(
    bridge: NewClient, person: NewClient, new_proxy: NewProxy
) -> None:
    proxy = await new_proxy()
    bot, alice = await bridge(url=proxy.url), await person()
    room = await room_of(alice, bot)
    for path in ("/joined_members$", "/keys/claim$", "/sendToDevice/m.room.encrypted/"):
        proxy.rule(limit(50), path=path, times=1)
        with pytest.raises(ErrorAnswer):
            await bot.room_send(room, "m.room.message", TEXT)
    await bot.room_send(room, "m.room.message", TEXT)
    assert texts(await nio_step(alice), room) == ["hello"]


async def test_nio_takes_a_key_that_did_not_arrive_for_one_that_did(
    bridge: NewClient, person: NewClient, new_proxy: NewProxy
) -> None:
    """The fault that `Sharing.share` is there for; where this fails, nio has mended it."""
    proxy = await new_proxy()
    bot, alice = await bridge(), await person()
    room = await room_of(alice, bot)
    alice.homeserver = proxy.url
    proxy.rule(refuse, path="/sendToDevice/m.room.encrypted/", times=2)  # aiohttp sends a PUT again by itself
    for _ in range(2):
        await alice.room_send(room, "m.room.message", TEXT, ignore_unverified_devices=True)
    assert texts(await step(bot), room) == ["", ""]


async def until_asked(proxy: Proxy, path: str) -> None:
    await wait_until(lambda: bool(proxy.seen(path=path)))


async def test_send_whose_caller_gave_up_stands_in_no_other_ones_way(
    bridge: NewClient, person: NewClient, new_proxy: NewProxy
) -> None:
    proxy = await new_proxy()
    bot, alice = await bridge(url=proxy.url), await person()
    room = await room_of(alice, bot)
    released = asyncio.Event()
    for path in ("/keys/claim$", "/sendToDevice/m.room.encrypted/"):
        rule = proxy.rule(hang(released), path=path)
        sending = asyncio.create_task(bot.room_send(room, "m.room.message", TEXT))
        await until_asked(proxy, path)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        proxy.remove(rule)
    await bot.room_send(room, "m.room.message", TEXT)
    assert texts(await nio_step(alice), room) == ["hello"]
    released.set()


# Keys of this device


async def claim_all(alice: AsyncClient, bot: EncryptedClient) -> None:
    while (await alice.keys_claim({bot.user_id: [bot.device_id]})).one_time_keys:
        pass


async def one_time_keys(client: AsyncClient) -> int:
    response = await client.sync(timeout=0)
    return response.device_key_count.signed_curve25519 or 0


async def test_drained_one_time_keys_are_replaced(bridge: NewClient, person: NewClient) -> None:
    bot, alice = await bridge(), await person()
    await room_of(alice, bot)
    await nio_step(alice)
    assert await one_time_keys(bot) == 50
    await claim_all(alice, bot)
    assert await one_time_keys(bot) == 0
    await step(bot)
    assert await one_time_keys(bot) == 50


async def test_nio_never_replaces_drained_one_time_keys(person: NewClient) -> None:
    """The fault that `EncryptedClient._handle_sync` is there for; where this fails, nio has mended it."""
    bot, alice = await person(), await person()
    await alice.room_create(invite=[bot.user_id])
    await claim_all(alice, bot)
    await nio_step(bot)
    await nio_step(bot)
    assert await one_time_keys(bot) == 0


async def test_upload_whose_answer_is_lost_leaves_no_key_that_nobody_has(
    bridge: NewClient, person: NewClient, new_proxy: NewProxy, homeserver: Homeserver
) -> None:
    proxy, alice = await new_proxy(), await person()
    account = await homeserver.register(f"assistant-{secrets.token_hex(4)}", "a password")
    rule = proxy.rule(lose, path="/keys/upload$")
    with pytest.raises(aiohttp.ClientError):
        await bridge(account, url=proxy.url)
    proxy.remove(rule)
    bot = await bridge(account)
    room = await room_of(alice, bot)
    await alice.room_send(room, "m.room.message", TEXT, ignore_unverified_devices=True)
    assert texts(await step(bot), room) == ["hello"]


async def test_device_whose_keys_were_removed_is_lost(
    bridge: NewClient, homeserver: Homeserver, tmp_path: Path
) -> None:
    account = await homeserver.register(f"assistant-{secrets.token_hex(4)}", "a password")
    await (await bridge(account)).close()
    for file in (tmp_path / "keys").iterdir():
        file.unlink()
    with pytest.raises(KeysLost):
        await bridge(account)


async def test_device_whose_keys_are_lost_is_left_for_a_new_one(
    bridge: NewClient, person: NewClient, homeserver: Homeserver, tmp_path: Path
) -> None:
    account = await homeserver.register(f"assistant-{secrets.token_hex(4)}", "a password")
    await (await bridge(account)).close()
    client = EncryptedClient(homeserver.url, account.user_id, KeyFolder(tmp_path / "elsewhere"), CONFIG)
    client.restore_login(account.user_id, account.device_id, account.access_token)
    with pytest.raises(KeysLost):
        await client.keep_keys()
    client.device_id = None
    await client.login("a password")
    assert client.device_id != account.device_id
    await step(client)
    alice = await person()
    room = await room_of(alice, client)
    await alice.room_send(room, "m.room.message", TEXT, ignore_unverified_devices=True)
    assert texts(await step(client), room) == ["hello"]
    await client.close()


async def test_device_that_was_logged_out_gives_its_keys_again(
    bridge: NewClient, person: NewClient, homeserver: Homeserver
) -> None:
    account = await homeserver.register(f"assistant-{secrets.token_hex(4)}", "a password")
    bot, alice = await bridge(account), await person()
    room = await room_of(alice, bot)
    fingerprint = machine_of(bot).account.identity_keys
    await bot.logout()
    await bot.login("a password")
    await bot.check_device()
    await step(bot)
    assert bot.device_id == account.device_id
    assert machine_of(bot).account.identity_keys == fingerprint
    await nio_step(alice)
    await alice.room_send(room, "m.room.message", TEXT, ignore_unverified_devices=True)
    assert texts(await step(bot), room) == ["hello"]


async def test_nio_waits_for_ever_to_share_a_key_once_that_failed(
    bridge: NewClient, person: NewClient, new_proxy: NewProxy
) -> None:
    """The other fault that `Sharing.share` is there for; where this fails, nio has mended it."""
    proxy = await new_proxy()
    bot, alice = await bridge(), await person()
    room = await room_of(alice, bot)
    alice.homeserver = proxy.url
    proxy.rule(refuse, path="/keys/claim$", times=1)
    with pytest.raises(aiohttp.ClientError):
        await alice.room_send(room, "m.room.message", TEXT, ignore_unverified_devices=True)
    assert set(alice.sharing_session) == {room}  # what each later send waits for


# Messages that can't be read


def device_of(client: AsyncClient, other: AsyncClient) -> Any:
    return client.device_store[other.user_id][other.device_id]


async def send_bad_pre_key_message(alice: AsyncClient, bot: AsyncClient) -> None:
    """A message to the bot's device that names a one-time key which the bot never had."""
    machine = machine_of(alice)
    account = vodozemac.Account()
    account.generate_one_time_keys(1)
    [never_there] = account.one_time_keys.values()
    device = device_of(alice, bot)
    session = machine.create_session(never_there.to_base64(), device.curve25519)
    content = machine._olm_encrypt(session, device, "m.dummy", {})  # noqa: SLF001
    await alice.to_device(ToDeviceMessage("m.room.encrypted", device.user_id, device.id, content))


async def test_pre_key_message_with_an_unknown_key_stops_nothing_and_a_new_session_is_made(
    bridge: NewClient, person: NewClient, caplog: pytest.LogCaptureFixture
) -> None:
    bot, alice = await bridge(), await person()
    room = await room_of(alice, bot)
    await send_bad_pre_key_message(alice, bot)
    # The room's key goes out over the session that nobody else has, so that the bot can't read it.
    await alice.room_send(room, "m.room.message", TEXT, ignore_unverified_devices=True)
    with caplog.at_level(logging.WARNING):
        response = await step(bot)
    assert "device_message_passed_over" in caplog.text
    assert texts(response, room) == [""]
    await nio_step(alice)
    alice.invalidate_outbound_session(room)
    await alice.room_send(room, "m.room.message", {**TEXT, "body": "again"}, ignore_unverified_devices=True)
    assert texts(await step(bot), room) == ["again"]


async def test_nio_stops_at_a_pre_key_message_with_an_unknown_key(person: NewClient) -> None:
    """The fault that `Machine.handle_to_device_event` is there for; where this fails, nio has mended it."""
    bot, alice = await person(), await person()
    created = await alice.room_create(
        invite=[bot.user_id], initial_state=[{"type": "m.room.encryption", "state_key": "", "content": MEGOLM}]
    )
    await bot.join(created.room_id)
    await nio_step(alice)
    await send_bad_pre_key_message(alice, bot)
    with pytest.raises(vodozemac.SessionCreationException):
        await bot.sync(timeout=0)


async def test_message_is_read_once_its_sender_sends_the_key_that_it_was_asked_for(
    bridge: NewClient, person: NewClient
) -> None:
    bot, alice = await bridge(), await person()
    room = await room_of(alice, bot)
    machine = machine_of(alice)
    machine.create_outbound_group_session(room)
    machine.outbound_group_sessions[room].shared = True
    root = await bot.room_send(room, "m.room.message", TEXT)
    relation = {"rel_type": "m.thread", "event_id": root.event_id}
    sent = await alice.room_send(room, "m.room.message", {**TEXT, "m.relates_to": relation})
    response = await step(bot)
    unread = events(response, room)[-1]
    assert unread["type"] == "m.room.encrypted"
    assert bot.read_encrypted(RoomId(room), unread) is None

    [request] = [event for event in (await nio_step(alice)).to_device_events if isinstance(event, nio.RoomKeyRequest)]
    assert (request.sender, request.requesting_device_id) == (bot.user_id, bot.device_id)
    session_id = request.session_id
    device = device_of(alice, bot)
    await alice.keys_claim({bot.user_id: [bot.device_id]})
    message = machine._encrypt_forwarding_key(  # noqa: SLF001
        room,
        machine.inbound_group_store.get(room, machine.account.identity_keys["curve25519"], session_id),
        machine.session_store.get(device.curve25519),
        device,
    )
    await alice.to_device(message)
    assert bot.new_keys(await step(bot)) == {(room, session_id)}
    assert bot.read_encrypted(RoomId(room), unread) == {
        "event_id": sent.event_id,
        "sender": alice.user_id,
        "origin_server_ts": unread["origin_server_ts"],
        "unsigned": unread["unsigned"],
        "type": "m.room.message",
        "content": {**TEXT, "m.relates_to": relation},
    }


async def test_room_key_that_came_with_a_response_is_there_when_the_response_comes_again(
    bridge: NewClient, person: NewClient, homeserver: Homeserver
) -> None:
    account = await homeserver.register(f"assistant-{secrets.token_hex(4)}", "a password")
    bot, alice = await bridge(account), await person()
    room = await room_of(alice, bot)
    since = bot.next_batch
    await alice.room_send(room, "m.room.message", TEXT, ignore_unverified_devices=True)
    first = await bot.sync(timeout=0, since=since)
    again = EncryptedClient(homeserver.url, account.user_id, KeyFolder(Path(bot.store.store_path).parent), CONFIG)
    again.restore_login(account.user_id, account.device_id, account.access_token)
    second = await again.sync(timeout=0, since=since, full_state=True)
    assert texts(first, room) == texts(second, room) == ["hello"]
    assert bot.new_keys(first)
    assert not bot.new_keys(second)  # nothing tells of a key for the second time
    await again.close()


def test_one_account_and_one_device_have_a_store_of_their_own(tmp_path: Path) -> None:
    keys = KeyFolder(tmp_path)
    stores = [keys.open(UserId(user), device) for user in ("@a:x", "@b:x") for device in ("A", "B")]
    fingerprints = {Machine(s.user_id, s.device_id, s).account.identity_keys["ed25519"] for s in stores}
    for store in stores:
        store.close()
    assert len(fingerprints) == 4
