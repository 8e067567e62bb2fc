"""An account's identity on a real homeserver: what other people's clients see of it, and what a crash leaves."""

import json
import secrets
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import nio
import pytest
import vodozemac
from nio.client.async_client import AsyncClientConfig
from pydantic import SecretStr

from mindbridge.demo.homeserver import Homeserver, Registered
from mindbridge.ids import UserId
from mindbridge.matrix.client import ErrorAnswer
from mindbridge.matrix.cross_signing import CrossSigning
from mindbridge.matrix.encryption import EncryptedClient
from mindbridge.matrix.identity import Outcome
from mindbridge.matrix.key_store import KeyFolder
from mindbridge.matrix.signing_keys import SigningKeyFolder, SigningKeys
from tests.live.conftest import NewPerson, NewProxy
from tests.live.js_people import JsPeople
from tests.live.js_person import Shield
from tests.live.person import Person
from tests.live.proxy import lose

CONFIG = AsyncClientConfig(max_limit_exceeded=0, max_timeouts=0, store_sync_tokens=False, request_timeout=30)
PASSWORD = SecretStr("a password")
STEPS = ["keys query", "identity upload", "keys query", "signatures upload", "keys query"]


class Killed(Exception):
    pass


@dataclass
class Bot:
    """One device of an account, in one process; `asked` names its requests."""

    client: EncryptedClient
    folder: SigningKeyFolder
    asked: list[str] = field(default_factory=list)
    killed_after: int | None = None  # so many requests

    @property
    def signing(self) -> CrossSigning:
        return CrossSigning(self.client, UserId(self.client.user_id), self.folder, self._ask)

    async def ensure(self, password: SecretStr | None = PASSWORD, *, reset: bool = False) -> Outcome:
        return (await self.signing.ensure(password, reset=reset)).outcome

    async def check(self) -> Outcome:
        return (await self.signing.check()).outcome

    async def _ask(self, what: str, request: Awaitable[Any]) -> Any:
        answer = await request
        self.asked.append(what)
        if len(self.asked) == self.killed_after:
            raise Killed
        return answer


class NewBot(Protocol):
    async def __call__(
        self, account: Registered | None = None, *, home: str = "home", device: str | None = None, url: str = ""
    ) -> Bot: ...


@pytest.fixture
async def new_bot(homeserver: Homeserver, tmp_path: Path) -> AsyncIterator[NewBot]:
    """Makes a device of a fresh account, or of `account`: its first one, or a new one that is named."""
    async with AsyncExitStack() as clients:

        async def make(
            account: Registered | None = None, *, home: str = "home", device: str | None = None, url: str = ""
        ) -> Bot:
            account = account or await register(homeserver)
            client = EncryptedClient(url or homeserver.url, account.user_id, KeyFolder(tmp_path / home), CONFIG)
            clients.push_async_callback(client.close)
            if device is None:
                client.restore_login(account.user_id, account.device_id, account.access_token)
            else:
                client.device_id = device
                await client.login(PASSWORD.get_secret_value())
            await client.keep_keys()
            return Bot(client, SigningKeyFolder(tmp_path / home))

        yield make


@pytest.fixture
async def carol(new_person: NewPerson) -> Person:
    """Another person, who shares no room with anyone."""
    return await new_person("Carol")


async def register(homeserver: Homeserver) -> Registered:
    return await homeserver.register(f"assistant-{secrets.token_hex(4)}", PASSWORD.get_secret_value())


async def keys_of(bot: Bot, person: Person) -> dict[str, Any]:
    """What the server tells a person of a bot's device and identity."""
    user = bot.client.user_id
    told = await person.call("POST", "keys", "query", json={"device_keys": {user: []}})
    return {
        "device": told["device_keys"][user][bot.client.device_id],
        "master": told.get("master_keys", {}).get(user),
        "self_signing": told.get("self_signing_keys", {}).get(user),
    }


def verify(signed: dict[str, Any], signer: dict[str, Any]) -> None:
    """Fails unless the only Ed25519 key of the signer has signed the other."""
    [(name, key)] = [each for each in signer["keys"].items() if each[0].startswith("ed25519:")]
    content = {name: value for name, value in signed.items() if name not in {"signatures", "unsigned"}}
    message = json.dumps(content, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
    signature = vodozemac.Ed25519Signature.from_base64(signed["signatures"][signer["user_id"]][name])
    vodozemac.Ed25519PublicKey.from_base64(key).verify_signature(message, signature)


async def verify_as_seen_by(person: Person, bot: Bot) -> None:
    keys = await keys_of(bot, person)
    assert (keys["master"]["usage"], keys["self_signing"]["usage"]) == (["master"], ["self_signing"])
    verify(keys["self_signing"], keys["master"])
    verify(keys["device"], keys["self_signing"])
    client = bot.client
    async with Person.with_token(client.homeserver, client.user_id, client.access_token) as owner:
        # Servers tell of it to nobody else.
        verify((await keys_of(bot, owner))["master"], keys["device"])


async def test_first_start_makes_an_identity_that_others_verify_and_the_second_only_looks(
    new_bot: NewBot, carol: Person
) -> None:
    bot = await new_bot()
    assert await bot.check() is Outcome.NO_IDENTITY
    assert bot.folder.load(UserId(bot.client.user_id)) is None
    bot.asked.clear()

    assert await bot.ensure() is Outcome.SIGNED
    assert bot.asked == STEPS
    await verify_as_seen_by(carol, bot)

    before = await keys_of(bot, carol)
    bot.asked.clear()
    assert await bot.ensure(None) is Outcome.SIGNED
    assert await bot.check() is Outcome.SIGNED
    assert bot.asked == ["keys query", "keys query"]
    assert await keys_of(bot, carol) == before


async def test_account_with_a_token_alone_gets_its_first_identity_too(new_bot: NewBot, carol: Person) -> None:
    bot = await new_bot()
    assert await bot.ensure(None) is Outcome.SIGNED
    await verify_as_seen_by(carol, bot)


@pytest.mark.parametrize("killed_after", range(1, len(STEPS) + 1))
async def test_start_after_a_kill_between_two_steps_goes_on_with_the_same_keys(
    new_bot: NewBot, homeserver: Homeserver, carol: Person, killed_after: int
) -> None:
    account = await register(homeserver)
    killed = await new_bot(account)
    killed.killed_after = killed_after
    with pytest.raises(Killed):
        await killed.ensure()
    assert killed.asked == STEPS[:killed_after]
    kept = killed.folder.load(UserId(account.user_id))
    await killed.client.close()

    again = await new_bot(account)
    assert await again.ensure(None) is Outcome.SIGNED
    assert kept in {None, again.folder.load(UserId(account.user_id))}
    await verify_as_seen_by(carol, again)


@pytest.mark.parametrize("path", ["/device_signing/upload$", "/signatures/upload$"])
async def test_start_after_a_lost_answer_goes_on_with_the_same_keys(
    new_bot: NewBot, new_proxy: NewProxy, carol: Person, path: str
) -> None:
    proxy = await new_proxy()
    bot = await new_bot(url=proxy.url)
    proxy.rule(lose, path=path, times=1)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await bot.ensure()
    assert await bot.ensure(None) is Outcome.SIGNED
    assert len(proxy.seen(path=path)) == 1
    await verify_as_seen_by(carol, bot)


async def test_second_device_of_the_account_is_signed_with_the_kept_keys(
    new_bot: NewBot, homeserver: Homeserver, carol: Person
) -> None:
    account = await register(homeserver)
    first = await new_bot(account)
    await first.ensure()
    second = await new_bot(account, device="SECOND")
    assert await second.check() is Outcome.NOT_SIGNED
    assert await second.ensure(None) is Outcome.SIGNED
    assert second.asked == ["keys query", "keys query", "signatures upload", "keys query"]
    for bot in (first, second):
        assert await bot.check() is Outcome.SIGNED
        await verify_as_seen_by(carol, bot)


async def test_identity_whose_keys_are_elsewhere_is_left_alone_until_it_is_told_to_be_replaced(
    new_bot: NewBot, homeserver: Homeserver, carol: Person
) -> None:
    account = await register(homeserver)
    elsewhere = await new_bot(account, home="elsewhere", device="ELSEWHERE")
    await elsewhere.ensure()
    bot = await new_bot(account)
    before = await keys_of(bot, carol)
    assert await bot.ensure() is Outcome.OTHER_IDENTITY
    assert bot.asked == ["keys query"]
    assert bot.folder.load(UserId(account.user_id)) is None
    assert await bot.ensure(None, reset=True) is Outcome.PASSWORD_NEEDED
    assert await bot.ensure(SecretStr("a wrong one"), reset=True) is Outcome.PASSWORD_REFUSED
    assert await bot.ensure() is Outcome.OTHER_IDENTITY
    assert await keys_of(bot, carol) == before

    assert await bot.ensure(reset=True) is Outcome.SIGNED
    assert (await keys_of(bot, carol))["master"]["keys"] != before["master"]["keys"]
    await verify_as_seen_by(carol, bot)
    bot.asked.clear()
    assert await bot.ensure(reset=True) is Outcome.SIGNED
    assert bot.asked == ["keys query"]


async def test_identity_that_was_replaced_can_be_followed_by_a_new_one(
    new_bot: NewBot, homeserver: Homeserver, carol: Person
) -> None:
    account = await register(homeserver)
    bot = await new_bot(account)
    await bot.ensure()
    elsewhere = await new_bot(account, home="elsewhere", device="ELSEWHERE")
    await elsewhere.ensure(reset=True)
    before = await keys_of(bot, carol)
    assert await bot.ensure() is Outcome.OTHER_IDENTITY
    assert await keys_of(bot, carol) == before
    assert await bot.ensure(reset=True) is Outcome.SIGNED
    await verify_as_seen_by(carol, bot)


async def test_lost_file_is_an_identity_whose_keys_are_elsewhere_and_still_signs_what_it_signed(
    new_bot: NewBot, homeserver: Homeserver
) -> None:
    account = await register(homeserver)
    bot = await new_bot(account)
    await bot.ensure()
    bot.folder.path(UserId(account.user_id)).unlink()
    assert await bot.ensure() is Outcome.SIGNED_BY_OTHER
    later = await new_bot(account, device="LATER")
    assert await later.ensure() is Outcome.OTHER_IDENTITY
    assert bot.folder.load(UserId(account.user_id)) is None


async def test_replacing_that_was_broken_off_is_told_again_until_it_is_through(
    new_bot: NewBot, homeserver: Homeserver, carol: Person
) -> None:
    account = await register(homeserver)
    await (await new_bot(account, home="elsewhere", device="ELSEWHERE")).ensure()
    steps = ["keys query", "identity upload", "keys query", "identity upload", *STEPS[2:]]
    bot = await new_bot(account)
    for killed_after in (1, 2, 3):
        bot.asked.clear()
        bot.killed_after = killed_after
        with pytest.raises(Killed):
            await bot.ensure(reset=True)
        assert bot.asked == steps[:killed_after]
        assert await bot.ensure() is Outcome.OTHER_IDENTITY
    bot.asked.clear()
    bot.killed_after = 4
    with pytest.raises(Killed):
        await bot.ensure(reset=True)
    assert await bot.ensure(None) is Outcome.SIGNED
    await verify_as_seen_by(carol, bot)


async def test_identity_that_the_server_took_by_half_is_made_whole(
    new_bot: NewBot, homeserver: Homeserver, carol: Person
) -> None:
    account = await register(homeserver)
    bot = await new_bot(account)
    keys = SigningKeys.make(UserId(account.user_id))
    bot.folder.save(keys)
    half = {"master_key": keys.public("master").model_dump(exclude_unset=True)}
    async with Person.with_token(homeserver.url, account.user_id, account.access_token) as owner:
        await owner.call("POST", "keys", "device_signing", "upload", json=half)
    assert await bot.check() is Outcome.INCOMPLETE
    assert await bot.ensure(None) is Outcome.PASSWORD_NEEDED
    assert await bot.ensure() is Outcome.SIGNED
    assert bot.folder.load(UserId(account.user_id)) == keys
    await verify_as_seen_by(carol, bot)


async def test_device_whose_keys_the_server_does_not_have_is_told(new_bot: NewBot, homeserver: Homeserver) -> None:
    account = await register(homeserver)
    bot = await new_bot(account)
    bot.client.device_id = "ANOTHER"
    assert await bot.ensure() is Outcome.DEVICE_UNKNOWN
    assert bot.asked == ["keys query"]


async def test_token_that_is_not_accepted_is_an_error_and_no_question_for_a_password(new_bot: NewBot) -> None:
    bot = await new_bot()
    bot.client.access_token = "unknown"
    with pytest.raises(ErrorAnswer) as caught:
        await bot.ensure()
    assert (caught.value.status, caught.value.errcode) == (401, "M_UNKNOWN_TOKEN")


async def test_client_that_trusts_only_signed_devices_reads_the_bot_and_is_read(
    new_bot: NewBot, new_js_person: JsPeople
) -> None:
    bot, alice = await new_bot(), await new_js_person("Alice", isolation="only_signed")
    await bot.ensure()
    room = await alice.create_room(invite=[bot.client.user_id])
    await bot.client.join(room)
    await bot.client.sync(timeout=0, full_state=True)
    await bot.client.keep_keys()

    sent = await bot.client.room_send(room, "m.room.message", {"msgtype": "m.text", "body": "hello"})
    assert isinstance(sent, nio.RoomSendResponse)

    read = await alice.wait_for_event(room, sent.event_id)
    assert (read.text, read.shield) == ("hello", Shield(colour="NONE", reason=None))
    await alice.send_text(room, "for signed devices")
    response = await bot.client.sync(timeout=0)
    assert isinstance(response, nio.SyncResponse)
    assert response.rooms.join[room].timeline.events[-1].source["content"]["body"] == "for signed devices"
