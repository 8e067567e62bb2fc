"""An account's own identity: its keys in the data home, what counts as signed, and what servers may want first."""

import json
from base64 import b64decode, b64encode
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from nio.client.async_client import AsyncClientConfig
from pydantic import SecretStr

from mindbridge.ids import UserId
from mindbridge.matrix.cross_signing import CrossSigning
from mindbridge.matrix.encryption import EncryptedClient
from mindbridge.matrix.errors import Refused, Unreachable
from mindbridge.matrix.identity import Held, Outcome, Signing, judge
from mindbridge.matrix.key_store import KeyFolder
from mindbridge.matrix.signing_keys import (
    SignedKeys,
    SigningKeyFolder,
    SigningKeys,
    SigningKeysDamaged,
    sign,
    signed_bytes,
)
from tests.live.proxy import Proxy, answer

BOT = UserId("@assistant:example.org")
CONFIG = AsyncClientConfig(max_limit_exceeded=0, max_timeouts=0, store_sync_tokens=False)
SEED = b64decode("YJDBA9Xnr2sVqXD9Vj7XVUnmFZcZrlw8Md7kMW+3XA1=")
WITH_PASSWORD = {"flows": [{"stages": ["m.login.password"]}], "params": {}}
PASSWORD = SecretStr("a password")


# Canonical JSON and signatures, as the appendices of the specification have them


@pytest.mark.parametrize(
    ("content", "canonical"),
    [
        ({}, "{}"),
        ({"one": 1, "two": "Two"}, '{"one":1,"two":"Two"}'),
        ({"b": "2", "a": "1"}, '{"a":"1","b":"2"}'),
        (
            {
                "auth": {
                    "success": True,
                    "mxid": "@john.doe:example.com",
                    "profile": {
                        "display_name": "John Doe",
                        "three_pids": [
                            {"medium": "email", "address": "john.doe@example.org"},
                            {"medium": "msisdn", "address": "123456789"},
                        ],
                    },
                }
            },
            (
                '{"auth":{"mxid":"@john.doe:example.com","profile":{"display_name":"John Doe","three_pids":'
                '[{"address":"john.doe@example.org","medium":"email"},{"address":"123456789","medium":"msisdn"}]},'
                '"success":true}}'
            ),
        ),
        ({"a": "日本語"}, '{"a":"日本語"}'),
        ({"本": 2, "日": 1}, '{"日":1,"本":2}'),
        ({"a": "\u65e5"}, '{"a":"日"}'),
        ({"a": None}, '{"a":null}'),
    ],
)
def test_json_that_is_signed_is_canonical(content: dict[str, Any], canonical: str) -> None:
    assert signed_bytes(content).decode() == canonical


@pytest.mark.parametrize(
    ("content", "signature"),
    [
        ({}, "K8280/U9SSy9IVtjBuVeLr+HpOB4BQFWbg+UZaADMtTdGYI7Geitb76LTrr5QV/7Xg4ahLwYGYZzuHGZKM5ZAQ"),
        (
            {"one": 1, "two": "Two"},
            "KqmLSbO39/Bzb0QIYE82zqLwsA+PDzYIpIRA2sRQ4sL53+sN6/fpNSoqE7BP7vBZhG6kYdD13EIMJpvhJI+6Bw",
        ),
    ],
)
def test_signatures_are_those_of_the_specification(content: dict[str, Any], signature: str) -> None:
    assert sign(SEED, content) == signature


# The keys in the data home


def test_kept_keys_are_the_same_again_and_readable_by_their_owner_only(tmp_path: Path) -> None:
    keys = SigningKeys.make(BOT)
    SigningKeyFolder(tmp_path).save(keys)
    path = SigningKeyFolder(tmp_path).path(BOT)
    assert SigningKeyFolder(tmp_path).load(BOT) == keys
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert list(path.parent.iterdir()) == [path]


def test_account_without_a_file_has_no_keys_and_each_has_its_own(tmp_path: Path) -> None:
    folder = SigningKeyFolder(tmp_path)
    folder.save(SigningKeys.make(BOT))
    others = [UserId("@helper:example.org"), UserId("@ASSISTANT:example.org"), UserId(f"@{'a' * 240}:example.org")]
    for other in others:
        assert folder.load(other) is None
        folder.save(SigningKeys.make(other))
    kept = [folder.load(user) for user in (BOT, *others)]
    assert [None if keys is None else keys.user_id for keys in kept] == [BOT, *others]


def test_private_keys_are_in_no_text_of_them(tmp_path: Path) -> None:
    keys = SigningKeys.make(BOT)
    secret = b64encode(keys.master).decode()
    assert secret in keys.model_dump_json()
    assert secret not in f"{keys} {keys!r} {keys.public('master')!r}"
    folder = SigningKeyFolder(tmp_path)
    folder.save(keys)
    folder.path(BOT).write_text(json.dumps({"user_id": BOT, "master": secret}))
    with pytest.raises(SigningKeysDamaged) as caught:
        folder.load(BOT)
    assert secret not in f"{caught.value} {caught.value.__cause__}"


@pytest.mark.parametrize("short", [b"", b64encode(b"x" * 31), b64encode(b"x" * 33), b"no base64"])
def test_damaged_file_is_told_and_left_as_it_is(tmp_path: Path, short: bytes) -> None:
    folder = SigningKeyFolder(tmp_path)
    folder.save(SigningKeys.make(BOT))
    damaged = json.dumps({**json.loads(folder.path(BOT).read_text()), "user_signing": short.decode()})
    for content in (damaged, "", "[]", damaged[:20]):
        folder.path(BOT).write_text(content)
        with pytest.raises(SigningKeysDamaged, match="is damaged"):
            folder.load(BOT)
        assert folder.path(BOT).read_text() == content


def test_file_of_another_account_is_not_used(tmp_path: Path) -> None:
    folder, other = SigningKeyFolder(tmp_path), UserId("@helper:example.org")
    folder.save(SigningKeys.make(other))
    folder.path(other).rename(folder.path(BOT))
    with pytest.raises(SigningKeysDamaged, match="belongs to @helper"):
        folder.load(BOT)


def test_what_stands_in_the_way_of_the_file_is_told(tmp_path: Path) -> None:
    folder = SigningKeyFolder(tmp_path)
    folder.path(BOT).mkdir(parents=True)
    with pytest.raises(SigningKeysDamaged, match="can't be read"):
        folder.load(BOT)
    with pytest.raises(Unreachable, match="can't be written"):
        folder.save(SigningKeys.make(BOT))


# What counts as signed


class Account:
    """An account whose device and identity are whole on the server; the tests take something away."""

    def __init__(self) -> None:
        self.keys = SigningKeys.make(BOT)
        device = SigningKeys.make(BOT)  # its master key stands for the device's
        [key] = device.public("master").keys.values()
        name = "ed25519:DEVICE"
        self.device_keys = {name: key, "curve25519:DEVICE": "key"}
        content = {"user_id": BOT, "device_id": "DEVICE", "keys": self.device_keys}
        unsigned = SignedKeys.model_validate(content)
        signatures = {
            name: sign(device.master, content),
            **self.keys.signed("self_signing", unsigned)["signatures"][BOT],
        }
        self.device = SignedKeys.model_validate({**content, "signatures": {BOT: signatures}, "unsigned": {"a": 1}})
        master = self.keys.public("master")
        by_device = {BOT: {name: sign(device.master, master.content())}}
        self.master = SignedKeys.model_validate({**master.content(), "signatures": by_device})

    def held(self, **other: SignedKeys | None) -> Held:
        whole = {
            "device": self.device,
            "master": self.master,
            "self_signing": self.keys.public("self_signing"),
            "user_signing": self.keys.public("user_signing"),
        }
        return Held(**{**whole, **other})

    def without_signature(self, keys: SignedKeys, signer: SignedKeys) -> SignedKeys:
        left = {name: each for name, each in keys.signatures[BOT].items() if name not in signer.keys}
        return keys.model_copy(update={"signatures": {BOT: left}})


@pytest.fixture
def account() -> Account:
    return Account()


def test_device_is_signed_where_every_signature_is_there(account: Account) -> None:
    assert judge(account.held(), account.keys, account.device_keys) is Outcome.SIGNED


def test_each_missing_part_has_an_outcome_of_its_own(account: Account) -> None:
    self_signing = account.keys.public("self_signing")
    other = SigningKeys.make(BOT)
    unsigned = account.without_signature(account.device, self_signing)
    cases: list[tuple[Outcome, dict[str, SignedKeys | None]]] = [
        (Outcome.DEVICE_UNKNOWN, {"device": None}),
        (Outcome.DEVICE_UNKNOWN, {"device": account.without_signature(account.device, account.device)}),
        (Outcome.NO_IDENTITY, {"master": None}),
        (Outcome.NO_IDENTITY, {"master": None, "self_signing": None, "user_signing": None}),
        (Outcome.OTHER_IDENTITY, {"master": other.public("master")}),
        (Outcome.INCOMPLETE, {"self_signing": None}),
        (Outcome.INCOMPLETE, {"user_signing": None}),
        (Outcome.INCOMPLETE, {"self_signing": other.public("self_signing")}),
        (Outcome.NOT_SIGNED, {"self_signing": self_signing.model_copy(update={"signatures": {}})}),
        (Outcome.NOT_SIGNED, {"device": unsigned}),
        (Outcome.NOT_SIGNED, {"master": account.keys.public("master")}),
    ]
    assert [judge(account.held(**held), account.keys, account.device_keys) for _, held in cases] == [
        expected for expected, _ in cases
    ]


def test_device_that_the_server_knows_by_other_keys_is_never_signed(account: Account) -> None:
    others = {**account.device_keys, "curve25519:DEVICE": "another"}
    assert judge(account.held(), account.keys, others) is Outcome.DEVICE_UNKNOWN
    assert judge(account.held(), account.keys, {}) is Outcome.DEVICE_UNKNOWN


@pytest.mark.parametrize("kept", [None, SigningKeys.make(BOT)])
def test_device_may_be_signed_by_an_identity_whose_keys_are_elsewhere(
    account: Account, kept: SigningKeys | None
) -> None:
    assert judge(account.held(), kept, account.device_keys) is Outcome.SIGNED_BY_OTHER
    unsigned = account.without_signature(account.device, account.keys.public("self_signing"))
    assert judge(account.held(device=unsigned), kept, account.device_keys) is Outcome.OTHER_IDENTITY


@pytest.mark.parametrize(
    "signature", ["", "no base64 !", "ü", b64encode(b"x" * 63).decode(), b64encode(b"x" * 64).decode()]
)
def test_signature_that_is_none_does_not_count(account: Account, signature: str) -> None:
    [name] = account.keys.public("self_signing").keys
    forged = account.device.model_copy(
        update={"signatures": {BOT: {**account.device.signatures[BOT], name: signature}}}
    )
    assert judge(account.held(device=forged), account.keys, account.device_keys) is Outcome.NOT_SIGNED


def test_signature_of_other_content_does_not_count(account: Account) -> None:
    changed = account.device.model_copy(update={"algorithms": ["another"]})
    assert not changed.is_signed_by(account.keys.public("self_signing"))
    assert account.device.model_copy(update={"unsigned": {}}).is_signed_by(account.keys.public("self_signing"))


def test_only_what_is_not_signed_tells_what_to_do() -> None:
    for outcome in Outcome:
        signing = Signing(outcome)
        assert signing.is_signed == (signing.what_to_do == "")


# What servers may want first


async def ask(_what: str, request: Awaitable[Any]) -> Any:
    return await request


class Server:
    """A server's answers about the bot's device, and a client that is logged in there. `close` the client."""

    def __init__(self, proxy: Proxy, home: Path) -> None:
        self.proxy = proxy
        self.client = EncryptedClient(proxy.url, BOT, KeyFolder(home), CONFIG)
        self.client.restore_login(BOT, "DEVICE", "token")
        self.folder = SigningKeyFolder(home)
        self.signing = CrossSigning(self.client, BOT, self.folder, ask)

    def holds(self, identity: SigningKeys | None = None, times: int | None = None) -> None:
        assert self.client.olm is not None
        held: dict[str, Any] = {"device_keys": {BOT: {"DEVICE": self.client.olm.share_keys()["device_keys"]}}}
        if identity is not None:
            held["master_keys"] = {BOT: identity.public("master").model_dump()}
            held["self_signing_keys"] = {BOT: identity.public("self_signing").model_dump()}
            held["user_signing_keys"] = {BOT: identity.public("user_signing").model_dump()}
        self.proxy.rule(answer(200, held), path="/keys/query$", times=times)

    def upload_gets(self, status: int, body: dict[str, Any], times: int | None = None) -> None:
        self.proxy.rule(answer(status, body), path="/device_signing/upload$", times=times)

    def uploads(self) -> list[Any]:
        return [request.body for request in self.proxy.seen("POST", "/device_signing/upload$")]


@pytest.fixture
async def proxy() -> Any:
    async with Proxy("http://127.0.0.1:9") as proxy:
        yield proxy


@pytest.fixture
async def server(proxy: Proxy, tmp_path: Path) -> Any:
    server = Server(proxy, tmp_path)
    yield server
    await server.client.close()


async def test_server_that_wants_the_password_gets_the_same_keys_once_more_with_it(server: Server) -> None:
    server.holds()
    server.upload_gets(401, {**WITH_PASSWORD, "session": "a session"}, times=1)
    server.upload_gets(401, {**WITH_PASSWORD, "errcode": "M_FORBIDDEN", "error": "Invalid password"})
    signing = await server.signing.ensure(PASSWORD)
    assert signing == Signing(Outcome.PASSWORD_REFUSED, "'Invalid password'")
    [first, second] = server.uploads()
    auth = second.pop("auth")
    assert first == second
    assert auth == {
        "type": "m.login.password",
        "identifier": {"type": "m.id.user", "user": BOT},
        "password": "a password",
        "session": "a session",
    }


async def test_account_without_a_password_is_told_to_have_one_and_keeps_its_keys(server: Server) -> None:
    server.holds()
    server.upload_gets(401, WITH_PASSWORD)
    assert (await server.signing.ensure(None)).outcome is Outcome.PASSWORD_NEEDED
    kept = server.folder.load(BOT)
    assert kept is not None
    assert (await server.signing.ensure(None)).outcome is Outcome.PASSWORD_NEEDED
    assert server.folder.load(BOT) == kept
    [first, second] = server.uploads()
    assert (
        first
        == second
        == {
            "master_key": kept.public("master").model_dump(exclude_unset=True),
            "self_signing_key": kept.public("self_signing").model_dump(),
            "user_signing_key": kept.public("user_signing").model_dump(),
        }
    )


@pytest.mark.parametrize(
    ("flows", "params", "detail"),
    [
        (["m.oauth"], {"m.oauth": {"url": "https://example.org/approve"}}, "'https://example.org/approve'"),
        (["m.login.sso"], {}, "[['m.login.sso']]"),
        (["m.login.password", "m.login.terms"], {"m.login.terms": 1}, "[['m.login.password', 'm.login.terms']]"),
    ],
)
async def test_server_that_wants_more_than_a_password_gets_none(
    server: Server, flows: list[str], params: dict[str, Any], detail: str
) -> None:
    server.holds()
    server.upload_gets(401, {"session": "dummy", "flows": [{"stages": flows}], "params": params})
    assert await server.signing.ensure(PASSWORD) == Signing(Outcome.APPROVAL_NEEDED, detail)
    assert len(server.uploads()) == 1


async def test_identity_that_came_in_between_gets_no_password_against_it(server: Server) -> None:
    server.holds(times=1)
    server.holds(SigningKeys.make(BOT))
    server.upload_gets(401, WITH_PASSWORD)
    assert (await server.signing.ensure(PASSWORD)).outcome is Outcome.OTHER_IDENTITY
    assert len(server.uploads()) == 1


async def test_keys_that_can_not_be_written_are_not_uploaded(server: Server) -> None:
    server.holds()
    server.upload_gets(200, {})
    in_the_way = server.folder.path(BOT).with_suffix(".new")
    in_the_way.mkdir(parents=True)
    with pytest.raises(Unreachable):
        await server.signing.ensure(PASSWORD)
    assert server.uploads() == []


async def test_signature_that_the_server_does_not_take_is_an_error_with_its_code(server: Server) -> None:
    keys = SigningKeys.make(BOT)
    server.folder.save(keys)
    server.holds(keys)
    failure = {"errcode": "M_INVALID_SIGNATURE", "error": "Invalid signature"}
    server.proxy.rule(answer(200, {"failures": {BOT: {"DEVICE": failure}}}), path="/signatures/upload$")
    with pytest.raises(Refused) as caught:
        await server.signing.ensure(PASSWORD)
    assert caught.value.errcode == "M_INVALID_SIGNATURE"
