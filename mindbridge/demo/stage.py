"""The demo's stage: a throwaway homeserver, a person, a room with two agents, and the real bridge between them."""

import asyncio
import json
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from mindbridge.demo.bridge_process import BridgeProcess
from mindbridge.demo.client import Client
from mindbridge.demo.conversation import Conversation
from mindbridge.demo.person import Person
from mindbridge.demo.synapse import throwaway_synapse
from mindbridge.demo.timeline import Joined, Message
from mindbridge.ids import EventId, RoomId, UserId

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Stage:
    """Who and what is there while the demo lasts."""

    homeserver: str
    person: Person
    password: str = field(repr=False)
    assistant: UserId
    helper: UserId
    room_id: RoomId
    bridge: BridgeProcess

    @property
    def agents(self) -> frozenset[UserId]:
        """The agents' accounts."""
        return frozenset((self.assistant, self.helper))

    @property
    def names(self) -> Mapping[UserId, str]:
        """Everyone's display name."""
        return {self.person.user_id: "You", self.assistant: "Assistant", self.helper: "Helper"}

    def has_everyone(self, conversation: Conversation) -> bool:
        """Whether all agents have joined."""
        joined = {event.user for event in conversation.seen if isinstance(event, Joined)}
        return self.agents <= joined

    def is_answered(self, conversation: Conversation, event_id: EventId) -> bool:
        """Whether an agent has spoken since this event, and all its questions have their buttons."""
        since = conversation.after(event_id)
        return any(isinstance(event, Message) and event.sender in self.agents for event in since) and all(
            conversation.is_complete(message) for message in conversation.messages()
        )

    async def perform(self, client: Client, work: Coroutine[None, None, _Result]) -> _Result:
        """Do `work` while the client keeps up, then let the bridge finish, and show what that still brought.

        Raises:
            HomeserverError: the homeserver is gone.
            BridgeError: the bridge ended by itself, or did not end well when asked to.
        """
        working = asyncio.create_task(work)
        beside = [asyncio.create_task(client.keep_up()), asyncio.create_task(self.bridge.raise_when_it_ends())]
        try:
            done, _ = await asyncio.wait((working, *beside), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (working, *beside):
                task.cancel()
            await asyncio.gather(working, *beside, return_exceptions=True)
        for task in beside:
            if task in done:
                task.result()
        await self.bridge.finish()
        await client.catch_up()
        return working.result()


@asynccontextmanager
async def set_stage(synapse_python: Path, tell: Callable[[str], None]) -> AsyncIterator[Stage]:
    """Set everything up, and take it all away again at the end, also of a set-up that fails half-way.

    Args:
        synapse_python: the Python of an environment with Synapse.
        tell: gets a line for each step that takes a while.

    Raises:
        HomeserverError: Synapse did not start or refused something.
        BridgeError: the bridge did not start.
    """
    with tempfile.TemporaryDirectory(prefix="mindbridge-demo-") as name:
        folder = Path(name)
        tell("Starting a throwaway homeserver …")
        async with throwaway_synapse(synapse_python, folder / "synapse") as homeserver:
            passwords = {localpart: secrets.token_hex(6) for localpart in ("you", "assistant", "helper")}
            accounts = {
                localpart: await homeserver.register(localpart, password, display_name=localpart.title())
                for localpart, password in passwords.items()
            }
            assistant, helper = UserId(accounts["assistant"].user_id), UserId(accounts["helper"].user_id)
            async with Person(homeserver.url, accounts["you"]) as person:
                room_id = await person.create_room("mindbridge demo", (assistant, helper))
                bridge = BridgeProcess(folder / "config.yaml", folder / "bridge.log")
                config = {
                    "homeserver": homeserver.url,
                    "journal": "./journal",
                    "access": {"users": [person.user_id]},
                    "agents": {
                        "assistant": _agent(assistant, "Assistant", passwords["assistant"]),
                        "helper": _agent(helper, "Helper", passwords["helper"]) | {"respond": "mention"},
                    },
                }
                bridge.config.write_text(json.dumps(config, indent=2), "utf-8")
                tell("Starting the bridge …")
                try:
                    await bridge.start()
                    yield Stage(homeserver.url, person, passwords["you"], assistant, helper, room_id, bridge)
                finally:
                    await bridge.stop()


def _agent(user_id: UserId, display_name: str, password: str) -> dict[str, object]:
    return {
        "account": {"user_id": user_id, "password": password},
        "display_name": display_name,
        "backend": {"type": "demo"},
    }
