"""nio's encryption of one device, where a bad message, key or device of somebody else stops nothing but itself."""

import logging
from typing import Any

from nio.crypto.olm_machine import Olm
from nio.crypto.sessions import OlmAccount
from nio.event_builders import RoomKeyRequestMessage
from nio.events import Event, ForwardedRoomKeyEvent, MegolmEvent, OlmEvent, RoomKeyEvent, ToDeviceEvent, UnknownEvent
from nio.exceptions import EncryptionError
from nio.responses import KeysClaimResponse, KeysQueryResponse

from mindbridge.matrix.ciphertext import ALGORITHM, compact_json, in_the_clear
from mindbridge.matrix.key_store import KeyStore, sqlite_error

log = logging.getLogger(__name__)

_MOST_QUEUED = 100
"""So many messages wait to be sent to devices: anyone can make us ask for keys that there aren't."""


class Account(OlmAccount):
    """The device's own keys. Of one-time keys that no upload took, there are never more than are wanted."""

    def __init__(self, account: OlmAccount) -> None:
        super().__init__(account._account)  # noqa: SLF001 - nio makes the account, and reads it from its store
        self.shared = account.shared

    def generate_one_time_keys(self, count: int) -> None:
        """Makes those of `count` new keys that aren't there, made for an upload before."""
        missing = count - len(self.one_time_keys["curve25519"])
        if missing > 0:
            super().generate_one_time_keys(missing)


class Machine(Olm):
    """One device's encryption. All that it learns of one event is written at once, or nothing of it."""

    store: KeyStore

    def __init__(self, user_id: str, device_id: str, store: KeyStore) -> None:
        super().__init__(user_id, device_id, store)
        self.account = Account(self.account)
        self._unknown: set[tuple[str, str]] = set()

    # Of this device

    def share_keys(self) -> dict[str, Any]:
        """What is to be uploaded. It is written first: the server must hold no key whose other half can get lost."""
        keys: dict[str, Any] = super().share_keys()
        self.save_account()
        return keys

    def handle_response(self, response: object) -> None:
        """Takes in what the server answered; nio's, written at once."""
        with self.store.database.atomic():
            super().handle_response(response)  # type: ignore[no-untyped-call]
        if isinstance(response, KeysQueryResponse):
            unknown, self._unknown = self._unknown, set()
            for sender, key in unknown:
                if self.device_store.device_from_sender_key(sender, key) is not None:
                    self._mark_device_for_unwedging(sender, key)

    def group_encrypt(self, room_id: str, plaintext_dict: dict[str, Any]) -> dict[str, Any]:
        """Encrypts with the room's session; nio's, but it would write text as ASCII, up to three times as large.

        Raises:
            EncryptionError: the session is not shared, or worn out.
        """
        session = self.outbound_group_sessions[room_id]
        text = compact_json({**plaintext_dict, "room_id": room_id}).decode()
        return {
            "algorithm": ALGORITHM,
            "sender_key": self.account.identity_keys["curve25519"],
            "ciphertext": session.encrypt(text),  # type: ignore[no-untyped-call]
            "session_id": session.id,
            "device_id": self.device_id,
        }

    # From other devices

    def handle_to_device_event(self, event: ToDeviceEvent) -> Any:
        """nio's, but what can't be read is passed over: out of there, it would stop the account for ever."""
        with self.store.database.atomic():
            try:
                decrypted = super().handle_to_device_event(event)  # type: ignore[no-untyped-call]
            except Exception as error:
                if sqlite_error(error) is not None:
                    raise
                # Anyone can send anything, and nio checks little of it: this can be an error of any kind.
                log.warning(
                    "device_message_passed_over user_id=%s sender=%.255r error=%.200r",
                    *(self.user_id, event.sender, error),
                )
                if isinstance(event, OlmEvent):
                    self._mark_device_for_unwedging(event.sender, event.sender_key)
                return None
            if isinstance(decrypted, RoomKeyEvent):
                self._forget_request(decrypted.session_id)
            return decrypted

    def _mark_device_for_unwedging(self, sender: str, sender_key: str) -> None:
        """Has a new session made with a device whose messages can't be read; nio's, but it looks for it first."""
        if self.device_store.device_from_sender_key(sender, sender_key) is None:
            self._unknown.add((sender, sender_key))
            self.users_for_key_query.add(sender)
            return
        super()._mark_device_for_unwedging(sender, sender_key)  # type: ignore[no-untyped-call]

    def _should_accept_forward(self, sender: str, sender_key: str, event: ForwardedRoomKeyEvent) -> bool:
        """Nio takes keys from other devices of this account; those who made a key may send it once more, too."""
        request = self.outgoing_key_requests.get(event.session_id)
        is_from_maker = event.source["content"].get("sender_key") == sender_key
        if request is not None and is_from_maker:
            wanted = (request.algorithm, request.room_id)
            return (event.algorithm, event.room_id) == wanted
        return super()._should_accept_forward(sender, sender_key, event)

    def verify_json(self, json: Any, user_key: Any, user_id: str, device_id: str) -> bool:
        """Whether the key has signed the JSON; nio's, but a key that is none has not."""
        try:
            return bool(super().verify_json(json, user_key, user_id, device_id))  # type: ignore[no-untyped-call]
        except (ValueError, TypeError, AttributeError):
            return False

    def _handle_key_claiming(self, response: KeysClaimResponse) -> None:
        for user_id, devices in response.one_time_keys.items():
            for device_id, key in devices.items():
                try:
                    super()._handle_key_claiming(KeysClaimResponse({user_id: {device_id: key}}, {}))  # type: ignore[no-untyped-call]
                except (ValueError, TypeError, KeyError, StopIteration, AttributeError) as error:
                    names = (self.user_id, user_id, device_id, error)
                    log.warning(
                        "one_time_key_passed_over user_id=%s owner=%.255r device_id=%.255r error=%.200r", *names
                    )

    # Events of rooms

    def _decrypt_megolm_no_error(self, event: MegolmEvent, room_id: str | None = None) -> Event | None:
        """The event in the clear; None while it can't be read, for which its key has then been asked for.

        It is of no kind that nio knows: what is encrypted is no state of the room, whatever it says.
        """
        try:
            inside = self.decrypt_megolm_event(event, room_id).source
        except EncryptionError:
            return None
        except Exception as error:
            if sqlite_error(error) is not None:
                raise
            # Anyone can encrypt anything, and nio checks little of it: this can be an error of any kind.
            log.warning("event_unreadable user_id=%s event_id=%.255r error=%.200r", self.user_id, event.event_id, error)
            inside = None
        source = in_the_clear(event.source, inside)
        return UnknownEvent(source, source["type"])

    def check_if_wedged(self, event: MegolmEvent) -> None:
        """Called where an event's key isn't there: asks the device that sent the event for it, once."""
        if event.session_id in self.outgoing_key_requests or self._is_queued(event.session_id):
            return
        super().check_if_wedged(event)
        if not self._is_queued(event.session_id) and len(self.outgoing_to_device_messages) < _MOST_QUEUED:
            request = event.as_key_request(event.sender, self.device_id, event.session_id, event.device_id)
            self.outgoing_to_device_messages.append(request)

    def _is_queued(self, session_id: str | None) -> bool:
        requests = (each for each in self.outgoing_to_device_messages if isinstance(each, RoomKeyRequestMessage))
        return any(each.session_id == session_id for each in requests)

    def _forget_request(self, session_id: str) -> None:
        request = self.outgoing_key_requests.pop(session_id, None)
        if request is not None:
            self.store.remove_outgoing_key_request(request)
