"""One real Synapse for all live tests; people and rooms are new for each."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from mindbridge.demo.homeserver import Homeserver
from mindbridge.demo.synapse import Synapse, find_synapse_python
from tests.live.bridge import Bridges
from tests.live.js_people import JsPeople, find_js_person_program
from tests.live.person import Person
from tests.live.proxy import Proxy

ROOT = Path(__file__).parents[2]

NewPerson = Callable[[str], Awaitable[Person]]
NewBridge = Bridges
NewProxy = Callable[[], Awaitable[Proxy]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("live")


@pytest.fixture(scope="session")
def synapse_python() -> Path:
    """The Python of Synapse's environment; a test without it fails, it is never skipped."""
    return find_synapse_python(os.environ, ROOT)


@pytest.fixture(scope="session")
def homeserver(synapse_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homeserver]:
    """A Synapse without rate limits, the same for the whole session."""
    # A fixture of the plain kind: its process then depends on no test's event loop, and on the main thread alone.
    synapse = Synapse(synapse_python, tmp_path_factory.mktemp("synapse"))
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(synapse.start())
        yield synapse.homeserver
        runner.run(synapse.stop())


@pytest.fixture
async def new_person(homeserver: Homeserver) -> AsyncIterator[NewPerson]:
    """Makes a person with a fresh account: `alice = await new_person("Alice")`, a display name."""
    async with AsyncExitStack() as people:

        async def make(display_name: str) -> Person:
            localpart = f"{display_name.lower().strip('@')}-{secrets.token_hex(4)}"
            account = await homeserver.register(localpart, secrets.token_hex(8), display_name=display_name)
            person = Person.with_token(homeserver.url, account.user_id, account.access_token)
            return await people.enter_async_context(person)

        yield make


@pytest.fixture(scope="session")
def js_person_program() -> Path:
    """The encrypted client's program; a test is skipped where set-up found no Node for it."""
    return find_js_person_program()


@pytest.fixture
async def new_js_person(js_person_program: Path, homeserver: Homeserver) -> AsyncIterator[JsPeople]:
    """Makes people with a real encrypted client: `alice = await new_js_person("Alice")`, a display name."""
    async with AsyncExitStack() as people:
        yield JsPeople(js_person_program, homeserver, people)


@pytest.fixture
async def new_bridge(homeserver: Homeserver, tmp_path: Path) -> AsyncIterator[Bridges]:
    """Makes bridges: `bridge = await new_bridge("assistant", "helper")`, then `await bridge.start()`."""
    bridges = Bridges(homeserver, tmp_path)
    yield bridges
    await bridges.end()


@pytest.fixture
async def new_proxy(homeserver: Homeserver) -> AsyncIterator[NewProxy]:
    """Makes proxies before the Synapse: `proxy = await new_proxy()`, then `await new_bridge(homeserver=proxy.url)`."""
    async with AsyncExitStack() as proxies:

        async def make() -> Proxy:
            return await proxies.enter_async_context(Proxy(homeserver.url))

        yield make
