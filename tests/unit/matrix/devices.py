"""Two devices that know each other, without a server between them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nio.crypto.olm_machine import Olm
from nio.events import Event, MegolmEvent, ToDeviceEvent
from nio.responses import KeysClaimResponse, KeysQueryResponse, KeysUploadResponse

from mindbridge.ids import UserId
from mindbridge.matrix.key_store import KeyFolder
from mindbridge.matrix.machine import Machine

BOT, ALICE, ROOM = "@assistant:example.org", "@alice:example.org", "!room:example.org"
TEXT: dict[str, Any] = {"msgtype": "m.text", "body": "hello"}


class Devices:
    """The bot's device, and one of Alice's, which is plain nio. `close` them."""

    def __init__(self, home: Path, bot_class: type[Olm] = Machine) -> None:
        self.bot: Any = bot_class(BOT, "BOT", KeyFolder(home).open(UserId(BOT), "BOT"))
        self.alice: Any = Olm(ALICE, "ALICE", KeyFolder(home).open(UserId(ALICE), "ALICE"))
        self.bot_keys = upload(self.bot)
        self.alice_keys = upload(self.alice)
        learn(self.bot, ALICE, "ALICE", self.alice_keys["device_keys"])
        learn(self.alice, BOT, "BOT", self.bot_keys["device_keys"])

    def close(self) -> None:
        for machine in (self.bot, self.alice):
            machine.store.close()

    def claim_from_bot(self) -> None:
        """Alice's device takes a one-time key of the bot's, and makes a session with it."""
        name, key = self.bot_keys["one_time_keys"].popitem()
        self.alice.handle_response(KeysClaimResponse({BOT: {"BOT": {name: key}}}, {}))

    def to_bot(self, event_type: str, content: Mapping[str, Any]) -> ToDeviceEvent:
        """A message of Alice's device to the bot's."""
        device = self.alice.device_store[BOT]["BOT"]
        session = self.alice.session_store.get(device.curve25519)
        return encrypted(self.alice._olm_encrypt(session, device, event_type, content))  # noqa: SLF001

    def room_key(self) -> ToDeviceEvent:
        """The key of Alice's next messages, for the bot; she has claimed a one-time key before."""
        [(_, messages)] = self.alice.share_group_session_parallel(ROOM, [BOT], ignore_unverified_devices=True)
        self.alice.outbound_group_sessions[ROOM].shared = True
        return encrypted(messages["messages"][BOT]["BOT"])

    def in_room(self, payload: object, event_id: str = "$event", **more: Any) -> MegolmEvent:
        """An event of Alice's in the room that encrypts this JSON, or these bytes."""
        session = self.alice.outbound_group_sessions[ROOM]
        plain = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        content = {
            "algorithm": "m.megolm.v1.aes-sha2",
            "sender_key": self.alice.account.identity_keys["curve25519"],
            "ciphertext": session._session.encrypt(plain).to_base64(),  # noqa: SLF001
            "session_id": session.id,
            "device_id": "ALICE",
        }
        source = {
            "type": "m.room.encrypted",
            "event_id": event_id,
            "sender": ALICE,
            "origin_server_ts": 1_700_000_000_000,
            "content": content,
        }
        event = Event.parse_event(source | more)
        assert isinstance(event, MegolmEvent)
        event.room_id = ROOM
        return event


def message(**more: Any) -> dict[str, Any]:
    return {"type": "m.room.message", "content": TEXT, "room_id": ROOM} | more


def upload(machine: Any) -> dict[str, Any]:
    """What a device uploads; the server takes all of it."""
    keys: dict[str, Any] = machine.share_keys()
    machine.handle_response(KeysUploadResponse(0, 50))
    return keys


def learn(machine: Any, user_id: str, device_id: str, device_keys: Mapping[str, Any]) -> None:
    machine.handle_response(KeysQueryResponse({user_id: {device_id: dict(device_keys)}}, {}))


def encrypted(content: Mapping[str, Any], sender: str = ALICE) -> ToDeviceEvent:
    event = ToDeviceEvent.parse_event({"type": "m.room.encrypted", "sender": sender, "content": dict(content)})
    assert isinstance(event, ToDeviceEvent)
    return event
