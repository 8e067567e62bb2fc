"""How an account's device and its identity stand on the homeserver (client-server API, "Cross-signing")."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mindbridge.matrix.signing_keys import ROLES, Role, SignedKeys, SigningKeys


class Outcome(StrEnum):
    """How the account's device and identity stand on the server."""

    SIGNED = "signed"
    SIGNED_BY_OTHER = "signed_by_other"
    NOT_SIGNED = "not_signed"
    INCOMPLETE = "incomplete"
    NO_IDENTITY = "no_identity"
    OTHER_IDENTITY = "other_identity"
    DEVICE_UNKNOWN = "device_unknown"
    PASSWORD_NEEDED = "password_needed"  # noqa: S105 - no password
    PASSWORD_REFUSED = "password_refused"  # noqa: S105 - likewise
    APPROVAL_NEEDED = "approval_needed"


_WHAT_TO_DO = {
    Outcome.SIGNED: "",
    Outcome.SIGNED_BY_OTHER: "",
    Outcome.NOT_SIGNED: "the device is not signed yet; the next start signs it",
    Outcome.INCOMPLETE: "the account's identity is not whole on the server; the next start uploads the rest",
    Outcome.NO_IDENTITY: "the account has no identity yet; the next start makes one and signs the device",
    Outcome.OTHER_IDENTITY: "the account has an identity whose keys are not here; sign this device in a client that has"
    " them, restore the keys from a backup of the data home, or `mindbridge run --reset-identity AGENT`",
    Outcome.DEVICE_UNKNOWN: "the server does not have this device's keys, or has others; the next start uploads them",
    Outcome.PASSWORD_NEEDED: "the server wants the account's password before it takes an identity;"
    " configure the password, or sign this device in a client that is logged in to the account",
    Outcome.PASSWORD_REFUSED: "the server does not accept the account's password; configure the right one",
    Outcome.APPROVAL_NEEDED: "the server wants the account's owner to approve an identity in a browser,"
    " and then another start",
}


@dataclass(frozen=True, slots=True)
class Signing:
    """How it stands, and what the server said of it."""

    outcome: Outcome
    detail: str = ""

    @property
    def is_signed(self) -> bool:
        """Whether other clients take the device for one that its owner signed."""
        return self.outcome in {Outcome.SIGNED, Outcome.SIGNED_BY_OTHER}

    @property
    def what_to_do(self) -> str:
        """A sentence for the person who runs the bridge; empty where nothing is to be done."""
        return ": ".join(part for part in (_WHAT_TO_DO[self.outcome], self.detail) if part)


@dataclass(frozen=True, slots=True)
class Held:
    """What the server holds of the account: the keys of this device, and of the identity."""

    device: SignedKeys | None
    master: SignedKeys | None
    self_signing: SignedKeys | None
    user_signing: SignedKeys | None


def missing(held: Held, kept: SigningKeys) -> tuple[Role, ...]:
    """Those of an identity's keys that the server does not hold, or in whose place it holds others."""
    there = {"master": held.master, "self_signing": held.self_signing, "user_signing": held.user_signing}
    return tuple(role for role in ROLES if (key := there[role]) is None or key.keys != kept.public(role).keys)


def judge(held: Held, kept: SigningKeys | None, device_keys: Mapping[str, str]) -> Outcome:
    """How an account stands.

    Args:
        held: what the server holds.
        kept: the keys of the account's identity that are here.
        device_keys: the public keys of this device, by their names, as the device itself knows them.
    """
    device, master, self_signing = held.device, held.master, held.self_signing
    if device is None or device.keys != device_keys or not device.is_signed_by(device):
        return Outcome.DEVICE_UNKNOWN
    if master is None:
        return Outcome.NO_IDENTITY
    is_signed = self_signing is not None and self_signing.is_signed_by(master) and device.is_signed_by(self_signing)
    if kept is None or master.keys != kept.public("master").keys:
        return Outcome.SIGNED_BY_OTHER if is_signed else Outcome.OTHER_IDENTITY
    if missing(held, kept):
        return Outcome.INCOMPLETE
    return Outcome.SIGNED if is_signed and master.is_signed_by(device) else Outcome.NOT_SIGNED
