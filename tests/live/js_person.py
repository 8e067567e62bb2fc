"""A person with a real encrypted client: matrix-js-sdk in a Node process, one process a device."""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel

from tests.live.waiting import wait_until

Isolation = Literal["all", "only_signed"]

_ANSWER_SECONDS = 60
_ANSWER_BYTES = 64 * 1024 * 1024  # a whole timeline is one line


class JsPersonError(Exception):
    """The client refused a command or has ended; the message holds the last that it wrote to its standard error."""


class Shield(BaseModel, frozen=True):
    """What the client warns of at a message: colour NONE, GREY or RED, reason a name of `EventShieldReason`."""

    colour: str
    reason: str | None


class Shown(BaseModel, frozen=True):
    """An event as the client has it now."""

    event_id: str
    sender: str
    type: str  # of an event that is read: the type inside the encryption
    encrypted: bool
    content: dict[str, Any]  # as it was sent, before any edit
    shown: dict[str, Any]  # with the newest edit
    relation: dict[str, Any] | None
    thread: str | None  # the event id of the thread's root
    edited_by: str | None
    redacted: bool
    reactions: dict[str, list[str]]  # by key, who reacted; withdrawn ones left out
    failure: str | None  # a `DecryptionFailureCode` where it can't be read
    shield: Shield | None  # None: not encrypted, or not read

    @property
    def text(self) -> str | None:
        """What stands there for the person; None where there is no text or it can't be read."""
        return None if self.failure else self.shown.get("body")


@dataclass(eq=False)
class JsPerson:
    """A Matrix user and one device, which lives no longer than its process. Use it as a context."""

    program: Path = field(repr=False)
    user_id: str
    password: str = field(repr=False)
    homeserver_url: str
    device_id: str = ""
    _process: asyncio.subprocess.Process | None = field(default=None, repr=False)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list, repr=False)
    _waiting: dict[int, asyncio.Future[Any]] = field(default_factory=dict, repr=False)
    _errors: deque[str] = field(default_factory=lambda: deque(maxlen=60), repr=False)
    _last_id: int = 0

    async def __aenter__(self) -> Self:
        """Starts the process and logs in as a new device."""
        self._process = await asyncio.create_subprocess_exec(
            *("node", str(self.program)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_ANSWER_BYTES,
        )
        self._tasks = [
            asyncio.create_task(self._read_answers(self._process)),
            asyncio.create_task(self._read_errors(self._process)),
        ]
        try:
            login = {"homeserver": self.homeserver_url, "user": self.user_id, "password": self.password}
            self.device_id = (await self.do("login", **login))["deviceId"]
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, isolation: Isolation = "all") -> None:
        """Makes the device's keys and syncs from now on.

        Args:
            isolation: "only_signed" gives keys to, and reads messages of, only devices that their owners signed.
        """
        await self.do("start", isolation=isolation)

    async def stop(self) -> None:
        """Ends the process, as often as one likes; no logout."""
        if self._process is None:
            return
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await asyncio.gather(*self._tasks)

    async def do(self, command: str, **request: object) -> Any:
        """Any command of person.mjs; gives its answer.

        Raises:
            JsPersonError: the client refused, has ended, or did not answer in time.
        """
        process = self._process
        assert process is not None
        assert process.stdin is not None
        if process.stdout is None or process.stdout.at_eof():
            raise self._error(f"{command}: the client has ended")
        self._last_id += 1
        self._waiting[self._last_id] = answer = asyncio.get_running_loop().create_future()
        process.stdin.write(json.dumps({"id": self._last_id, "do": command, **request}).encode() + b"\n")
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                told = await answer
        except TimeoutError:
            raise self._error(f"{command}: no answer within {_ANSWER_SECONDS} s") from None
        if told is None:
            raise self._error(f"{command}: the client has ended")
        if "error" in told:
            raise self._error(f"{command}: {told['error']}")
        return told["answer"]

    async def _read_answers(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            told = json.loads(line)
            self._settle(told["id"], told)
        for each in list(self._waiting):
            self._settle(each, None)

    def _settle(self, command_id: int, told: dict[str, Any] | None) -> None:
        waiting = self._waiting.pop(command_id)
        if not waiting.done():
            waiting.set_result(told)

    async def _read_errors(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            self._errors.append(line.decode(errors="replace").rstrip())

    def _error(self, what: str) -> JsPersonError:
        return JsPersonError("\n".join((f"{self.user_id} {what}; its standard error:", *self._errors)))

    # Identity

    async def sign_device(self, recovery_key: str | None = None) -> str:
        """Signs this device with a new identity, or with that which the recovery key opens; gives the recovery key."""
        return str(await self.do("crossSign", recoveryKey=recovery_key))

    async def wait_for_device(self, user_id: str, device_id: str, *, signed: bool = True) -> None:
        """Until this client knows a device as one that its owner signed, or as one that is not.

        What it shows of messages of a device that it doesn't know yet depends on chance.
        """

        async def knows() -> bool:
            return await self.do("isSigned", userId=user_id, deviceId=device_id) is signed

        await wait_until(knows)

    # Rooms

    async def create_room(self, *, invite: Iterable[str] = (), encrypted: bool = True, direct: bool = False) -> str:
        """A private room; gives its id."""
        return str(await self.do("createRoom", invite=list(invite), encrypted=encrypted, direct=direct))

    async def join(self, room: str) -> None:
        await self.do("join", roomId=room)

    async def enable_encryption(self, room: str) -> None:
        await self.do("enableEncryption", roomId=room)

    # Sending; each gives the new event's id. Encrypted where the room is, except reactions and redactions.

    async def send(self, room: str, event_type: str, content: dict[str, Any], *, thread: str | None = None) -> str:
        return str(await self.do("send", roomId=room, threadId=thread, type=event_type, content=content))

    async def send_text(
        self,
        room: str,
        body: str,
        *,
        thread: str | None = None,
        reply_to: str | None = None,
        mentions: Iterable[str] = (),
    ) -> str:
        """A message; with `thread` in the thread of that root, where the client adds the fallback reply."""
        users = list(mentions)
        content: dict[str, Any] = {
            "msgtype": "m.text",
            "body": body,
            "m.mentions": {"user_ids": users} if users else {},
        }
        if reply_to is not None:
            content["m.relates_to"] = {"m.in_reply_to": {"event_id": reply_to}}
        return await self.send(room, "m.room.message", content, thread=thread)

    async def react(self, room: str, event_id: str, key: str) -> str:
        relation = {"rel_type": "m.annotation", "event_id": event_id, "key": key}
        return await self.send(room, "m.reaction", {"m.relates_to": relation})

    async def edit(self, room: str, event_id: str, body: str) -> str:
        new: dict[str, Any] = {"msgtype": "m.text", "body": body, "m.mentions": {}}
        relation = {"rel_type": "m.replace", "event_id": event_id}
        content = {**new, "body": f"* {body}", "m.new_content": new, "m.relates_to": relation}
        return await self.send(room, "m.room.message", content)

    async def redact(self, room: str, event_id: str) -> str:
        return str(await self.do("redact", roomId=room, eventId=event_id))

    # Room keys

    async def hold_keys(self) -> None:
        """Keeps back all room keys from now on, while the messages go out."""
        await self.do("holdKeys")

    async def change_key(self, room: str) -> None:
        """The next message in the room has a new key, which everyone has to be given."""
        await self.do("changeKey", roomId=room)

    async def release_keys(self) -> int:
        """Sends the room keys that were kept back, and later ones at once; gives the number of requests."""
        return int(await self.do("releaseKeys"))

    # Seeing

    async def timeline(self, room: str) -> list[Shown]:
        """All that was seen in the room up to now, state included, in the server's order."""
        return [Shown.model_validate(event) for event in await self.do("timeline", roomId=room)]

    async def wait_for(self, room: str, wanted: Callable[[Shown], bool], *, seconds: float = 20) -> Shown:
        """The first event of the room's timeline that is wanted, or becomes so; an AssertionError where none does."""
        found: list[Shown] = []
        seen: list[Shown] = []

        async def look() -> bool:
            seen[:] = await self.timeline(room)
            found[:] = [event for event in seen if wanted(event)][:1]
            return bool(found)

        try:
            await wait_until(look, seconds)
        except TimeoutError:
            told = "\n".join(f"  {event!r}" for event in seen)
            raise AssertionError(str(self._error(f"has not seen it within {seconds} s; seen:\n{told}\n"))) from None
        return found[0]

    async def wait_for_event(self, room: str, event_id: str, *, readable: bool = True, seconds: float = 20) -> Shown:
        """The event, once it can be read; without `readable`, once it is there and can't be."""
        return await self.wait_for(
            room, lambda event: event.event_id == event_id and (event.failure is None) == readable, seconds=seconds
        )
