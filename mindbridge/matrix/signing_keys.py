"""An account's own keys for cross-signing, in the data home, and what they sign.

Client-server API, "Cross-signing"; appendices, "Signing JSON".
"""

import hashlib
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from Crypto.PublicKey import ECC
from Crypto.Signature import eddsa
from nio.api import Api
from pydantic import AfterValidator, Base64Bytes, BaseModel, ConfigDict, Field, ValidationError

from mindbridge.ids import UserId
from mindbridge.matrix.devices import write_private
from mindbridge.matrix.errors import MatrixError

Role = Literal["master", "self_signing", "user_signing"]
ROLES: tuple[Role, ...] = get_args(Role)

_SEED_BYTES = 32
_LONGEST_NAME = 60


class SigningKeysDamaged(MatrixError):
    """The file of an account's own keys can't be read; nothing helps but someone who does what the message says."""


class SignedKeys(BaseModel):
    """Public keys with signatures, of a device or of an identity, as servers have them; what else it says stays in."""

    model_config = ConfigDict(frozen=True, extra="allow")

    user_id: str
    keys: dict[str, str]
    signatures: dict[str, dict[str, str]] = {}

    def content(self) -> dict[str, Any]:
        """What signatures are about: all but signatures and what the server added."""
        return self.model_dump(exclude={"signatures", "unsigned"})

    def is_signed_by(self, signer: "SignedKeys") -> bool:
        """Whether there is a good signature by an Ed25519 key of the signer."""
        signatures = self.signatures.get(signer.user_id, {})
        return any(
            name.startswith("ed25519:") and name in signatures and self._verify(key, signatures[name])
            for name, key in signer.keys.items()
        )

    def _verify(self, public_key: str, signature: str) -> bool:
        try:
            key = eddsa.import_public_key(_decoded(public_key))
            eddsa.new(key, "rfc8032").verify(signed_bytes(self.content()), _decoded(signature))
        except ValueError:  # also where either is no base64, or has another length
            return False
        return True


def _of_seed_size(seed: bytes) -> bytes:
    if len(seed) != _SEED_BYTES:
        raise ValueError(f"{len(seed)} bytes instead of {_SEED_BYTES}")
    return seed


Seed = Annotated[Base64Bytes, AfterValidator(_of_seed_size), Field(repr=False)]


class SigningKeys(BaseModel):
    """The private keys of an account's identity, as Ed25519 seeds; they are in no `repr` or `str`."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    user_id: UserId
    master: Seed
    self_signing: Seed
    user_signing: Seed

    @classmethod
    def make(cls, user_id: UserId) -> Self:
        """A new identity."""
        master, self_signing, user_signing = (b64encode(secrets.token_bytes(_SEED_BYTES)) for _ in range(3))
        return cls(user_id=user_id, master=master, self_signing=self_signing, user_signing=user_signing)

    def public(self, role: Role) -> SignedKeys:
        """The public key of a role, signed by the master key unless it is that."""
        key = _public_key(self._seed(role))
        unsigned = SignedKeys.model_validate(
            {"user_id": self.user_id, "usage": [role], "keys": {f"ed25519:{key}": key}}
        )
        return unsigned if role == "master" else SignedKeys.model_validate(self.signed("master", unsigned))

    def signed(self, role: Role, keys: SignedKeys) -> dict[str, Any]:
        """The keys with no other signature than that of a role, to be uploaded."""
        content, seed = keys.content(), self._seed(role)
        name = f"ed25519:{_public_key(seed)}"
        return {**content, "signatures": {self.user_id: {name: sign(seed, content)}}}

    def _seed(self, role: Role) -> bytes:
        return {"master": self.master, "self_signing": self.self_signing, "user_signing": self.user_signing}[role]


class SigningKeyFolder:
    """The folder `identities` of a data home: one file an account, readable by its owner only.

    A file that is lost can't be made again: its identity stays on the server, and nothing here can sign for it.
    """

    def __init__(self, home: Path) -> None:
        self._folder = home / "identities"

    def load(self, user_id: UserId) -> SigningKeys | None:
        """The account's keys, None where there are none yet.

        Raises:
            SigningKeysDamaged: the file is damaged, belongs to another account or can't be read.
        """
        path = self.path(user_id)
        try:
            keys = SigningKeys.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise SigningKeysDamaged(f"{path}: is damaged; restore it from a backup, or remove it") from error
        except OSError as error:
            raise SigningKeysDamaged(
                f"{path}: can't be read: {error.strerror}; is it a file that this user may read?"
            ) from error
        if keys.user_id != user_id:
            raise SigningKeysDamaged(f"{path}: belongs to {keys.user_id}; move it away")
        return keys

    def save(self, keys: SigningKeys) -> None:
        """Keeps the account's keys; the file is there whole or not at all.

        Raises:
            Unreachable: the file can't be written now; to be tried again.
        """
        write_private(self.path(keys.user_id), keys.model_dump_json())

    def path(self, user_id: UserId) -> Path:
        """Where an account's keys are, whether there are any yet or not."""
        digest = hashlib.sha256(user_id.encode()).hexdigest()
        return self._folder / f"{re.sub(r'[^a-z0-9._-]', '_', user_id[1:])[:_LONGEST_NAME]}-{digest[:16]}.json"


def sign(seed: bytes, content: Mapping[str, Any]) -> str:
    """The signature of a JSON object, in base64 without padding."""
    return _encoded(eddsa.new(ECC.construct(curve="Ed25519", seed=seed), "rfc8032").sign(signed_bytes(content)))


def signed_bytes(content: Mapping[str, Any]) -> bytes:
    """The canonical JSON of an object without fractions (appendices, "Canonical JSON")."""
    return Api.to_canonical_json(dict(content)).encode()


def _public_key(seed: bytes) -> str:
    key: bytes = ECC.construct(curve="Ed25519", seed=seed).public_key().export_key(format="raw")
    return _encoded(key)


def _encoded(content: bytes) -> str:
    return b64encode(content).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return b64decode(text + "==")
