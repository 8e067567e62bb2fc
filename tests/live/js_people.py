"""Makes people with real encrypted clients, where set-up could install what these need."""

import secrets
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from mindbridge.demo.homeserver import Homeserver
from tests.live.js_person import Isolation, JsPerson

_FOLDER = Path(__file__).parent / "js_person"


@dataclass
class JsPeople:
    """Makes persons and ends them: `alice = await new_js_person("Alice")`."""

    program: Path
    homeserver: Homeserver
    _stack: AsyncExitStack

    async def __call__(self, display_name: str, *, signed: bool = True, isolation: Isolation = "all") -> JsPerson:
        """A person with a fresh account, whose device syncs already."""
        localpart, password = f"{display_name.lower()}-{secrets.token_hex(4)}", secrets.token_hex(8)
        account = await self.homeserver.register(localpart, password, display_name=display_name)
        person = JsPerson(self.program, account.user_id, password, self.homeserver.url)
        await self._stack.enter_async_context(person)
        await person.start(isolation)
        if signed:
            await person.sign_device()
        return person

    async def another_device(self, of: JsPerson, *, isolation: Isolation = "all") -> JsPerson:
        """The same person on a new device, which is not signed yet."""
        device = JsPerson(self.program, of.user_id, of.password, of.homeserver_url)
        await self._stack.enter_async_context(device)
        await device.start(isolation)
        return device


def find_js_person_program() -> Path:
    """The program that a `JsPerson` runs.

    Raises:
        pytest.skip.Exception: its packages are not installed. Set-up fails where it has Node and can't install them.
    """
    if not (_FOLDER / "node_modules" / ".ready").exists():
        pytest.skip("matrix-js-sdk is not installed: `make setup` does that where it finds Node 20 or newer, with npm")
    return _FOLDER / "person.mjs"
