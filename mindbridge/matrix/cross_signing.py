"""Gives an account an identity on its homeserver, and has that sign the account's own device.

Clients warn of a device that its owner did not sign, and some hide what it sends (client-server API, "Cross-signing").
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, TypeVar

from nio.client.async_client import AsyncClient
from pydantic import BaseModel, SecretStr, ValidationError

from mindbridge.ids import UserId
from mindbridge.matrix.client import read_error
from mindbridge.matrix.errors import Refused
from mindbridge.matrix.identity import Held, Outcome, Signing, judge, missing
from mindbridge.matrix.signing_keys import SignedKeys, SigningKeyFolder, SigningKeys

log = logging.getLogger(__name__)

Ask = Callable[[str, Awaitable[Any]], Awaitable[Any]]
Answer = TypeVar("Answer", bound=BaseModel)

_PATH = "/_matrix/client/v3/keys/"
_LONGEST_WORDS = 200
_UNFINISHED = frozenset({Outcome.NO_IDENTITY, Outcome.INCOMPLETE})
_OF_OTHERS = frozenset({Outcome.OTHER_IDENTITY, Outcome.SIGNED_BY_OTHER})
_BY_PASSWORD = "m.login.password"  # noqa: S105 - the name of a stage of authentication


class _KeysAnswer(BaseModel):
    device_keys: dict[str, dict[str, SignedKeys]] = {}
    master_keys: dict[str, SignedKeys] = {}
    self_signing_keys: dict[str, SignedKeys] = {}
    user_signing_keys: dict[str, SignedKeys] = {}


class _Flow(BaseModel):
    stages: list[str]


class _Challenge(BaseModel):
    """What the server wants first (client-server API, "User-Interactive Authentication API")."""

    flows: list[_Flow]
    session: str | None = None
    params: dict[str, Any] = {}
    error: str = ""

    def is_met_by_password(self) -> bool:
        return any(flow.stages == [_BY_PASSWORD] for flow in self.flows)

    def with_password(self, user_id: UserId, password: SecretStr) -> dict[str, Any]:
        """What goes into the same request as its `auth`."""
        auth: dict[str, Any] = {
            "type": _BY_PASSWORD,
            "identifier": {"type": "m.id.user", "user": user_id},
            "password": password.get_secret_value(),
        }
        return auth if self.session is None else {**auth, "session": self.session}

    def wanted(self) -> str:
        """Where an approval can be given, as the server says, else the names of what it wants."""
        urls = [each["url"] for each in self.params.values() if isinstance(each, dict) and "url" in each]
        return repr(urls[0] if urls else [flow.stages for flow in self.flows])[:_LONGEST_WORDS]


class _Failure(BaseModel):
    errcode: str = "M_UNKNOWN"
    error: str = ""


class _SignaturesAnswer(BaseModel):
    failures: dict[str, dict[str, _Failure]] = {}


class CrossSigning:
    """The identity of one account; for a client that is logged in with its encryption keys loaded.

    All methods raise `MatrixError` and its kinds, `SigningKeysDamaged` among them.
    """

    def __init__(self, client: AsyncClient, user_id: UserId, folder: SigningKeyFolder, ask: Ask) -> None:
        self._client = client
        self._user_id = user_id
        self._folder = folder
        self._ask = ask

    async def check(self) -> Signing:
        """How the account stands; changes nothing. A client without encryption takes the server's word for its keys."""
        held = await self._held()
        if self._client.olm is None and held.device is not None:
            return Signing(judge(held, self._folder.load(self._user_id), held.device.keys))
        return self._judged(held)

    async def ensure(self, password: SecretStr | None, *, reset: bool = False) -> Signing:
        """Makes the identity where the account has none, and signs the device; to be called after its keys' upload.

        What was broken off at any point is gone on with by the next call. Where all is done, it only looks.

        Args:
            password: the account's, for a server that asks for it.
            reset: replaces an identity whose keys are not here; whoever verified the account has to do so again.
        """
        held = await self._held()
        signing = self._judged(held)
        if signing.outcome in _UNFINISHED or (reset and signing.outcome in _OF_OTHERS):
            hindrance = await self._upload_identity(held, signing.outcome, password)
            if hindrance is not None:
                return hindrance
            held = await self._held()
            signing = self._judged(held)
        if signing.outcome is Outcome.NOT_SIGNED:
            await self._sign(held)
            signing = self._judged(await self._held())
        return signing

    def _judged(self, held: Held) -> Signing:
        return Signing(judge(held, self._folder.load(self._user_id), self._device_keys()))

    def _device_keys(self) -> dict[str, str]:
        machine = self._client.olm
        if machine is None:
            return {}
        return {f"{name}:{machine.device_id}": str(key) for name, key in machine.account.identity_keys.items()}

    async def _held(self) -> Held:
        user, device_id = self._user_id, self._client.device_id or ""
        answer = await self._ask("keys query", self._post(_KeysAnswer, "query", {"device_keys": {user: [device_id]}}))
        return Held(
            answer.device_keys.get(user, {}).get(device_id),
            answer.master_keys.get(user),
            answer.self_signing_keys.get(user),
            answer.user_signing_keys.get(user),
        )

    async def _upload_identity(self, held: Held, outcome: Outcome, password: SecretStr | None) -> Signing | None:
        """None once the server has the identity, else what hinders it."""
        # Synapse takes no key that it had before, whether it still has it or not: HTTP status 500.
        keys = None if outcome in _OF_OTHERS else self._folder.load(self._user_id)
        if keys is None:
            keys = SigningKeys.make(self._user_id)
            self._folder.save(keys)  # first: nothing could sign for an identity whose keys got lost on the way
        body: dict[str, Any] = {
            f"{role}_key": keys.public(role).model_dump(exclude_unset=True) for role in missing(held, keys)
        }
        challenge = await self._ask("identity upload", self._offer(body))
        if challenge is not None:
            if not challenge.is_met_by_password():
                return Signing(Outcome.APPROVAL_NEEDED, challenge.wanted())
            if password is None:
                return Signing(Outcome.PASSWORD_NEEDED)
            # With the password the server takes the identity in the place of any that came in between.
            before, now = held.master, (await self._held()).master
            if now is not None and (before is None or now.keys != before.keys):
                return Signing(Outcome.OTHER_IDENTITY)
            body["auth"] = challenge.with_password(self._user_id, password)
            challenge = await self._ask("identity upload", self._offer(body))
            if challenge is not None:
                return Signing(Outcome.PASSWORD_REFUSED, repr(challenge.error)[:_LONGEST_WORDS])
        log.info("identity_uploaded user_id=%s", self._user_id)
        return None

    async def _offer(self, body: Mapping[str, Any]) -> _Challenge | None:
        """None where the server takes the identity, else what it wants before it does."""
        status, headers, content = await self._send("device_signing/upload", body)
        if status == HTTPStatus.UNAUTHORIZED:
            with suppress(ValidationError):  # else it is an error like any other: the token, say
                return _Challenge.model_validate_json(content)
        if status >= HTTPStatus.BAD_REQUEST:
            raise read_error(status, headers, content)
        return None

    async def _sign(self, held: Held) -> None:
        """Has the identity sign the device, and the device the identity."""
        keys, machine = self._folder.load(self._user_id), self._client.olm
        if keys is None or machine is None or held.device is None:
            return  # there is nothing to sign, or nothing to do it with: `judge` gives another outcome then
        master = keys.public("master").content()
        [master_name] = master["keys"].values()
        by_device = {f"ed25519:{machine.device_id}": machine.sign_json(master)}
        body: dict[str, Any] = {
            self._user_id: {
                machine.device_id: keys.signed("self_signing", held.device),
                master_name: {**master, "signatures": {self._user_id: by_device}},
            }
        }
        answer = await self._ask("signatures upload", self._post(_SignaturesAnswer, "signatures/upload", body))
        for failures in answer.failures.values():
            for name, failure in failures.items():
                words = f"{name!r:.100}: {failure.errcode!r:.100} {failure.error!r:.200}"
                raise Refused(f"{self._user_id}: the server refuses the signature of {words}", failure.errcode)
        log.info("device_signed user_id=%s device_id=%s", self._user_id, machine.device_id)

    async def _post(self, kind: type[Answer], path: str, body: Mapping[str, Any]) -> Answer:
        status, headers, content = await self._send(path, body)
        if status >= HTTPStatus.BAD_REQUEST:
            raise read_error(status, headers, content)
        return kind.model_validate_json(content)

    async def _send(self, path: str, body: Mapping[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
        # nio's own requests lose what comes with a 401: what else the server wants.
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._client.access_token}"}
        response = await self._client.send("POST", _PATH + path, json.dumps(body), headers)
        return response.status, response.headers, await response.read()
