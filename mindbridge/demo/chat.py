"""The demo for a person at a terminal: what they type is sent, what comes is shown."""

import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import suppress

from mindbridge.demo.client import Client, NotSeenError
from mindbridge.demo.conversation import Conversation
from mindbridge.demo.person import NotAcceptedError
from mindbridge.demo.screen import Screen
from mindbridge.demo.stage import Stage
from mindbridge.demo.timeline import Message
from mindbridge.ids import EventId, UserId

_SECONDS = 20
_KEYCAP = "\ufe0f\N{COMBINING ENCLOSING KEYCAP}"

_HELP = """\
TEXT         say it; in the thread (↳), once an agent has answered in one
1            a number answers the open question of the thread
/react 🚀    click that button; /react 2 reacts with 2️⃣, which means option 2
/new TEXT    say it outside the thread, which begins a new conversation
@helper      in a text, calls the second agent
/quit        end the demo, as Ctrl-D and Ctrl-C do; nothing of it stays"""


def welcome(stage: Stage) -> str:
    """What a person should know who sees the demo for the first time."""
    mindbridge = "mindbridge" if shutil.which("mindbridge") else f"{sys.executable} -m mindbridge"
    return f"""\

This is mindbridge with a homeserver of its own. All of it is on this machine,
in a folder that goes away at the end.

Type a message and press Enter, for example: hello
An agent asks. Answer with a number, or click a button: /react 🚀
/new TEXT begins another conversation, /help tells more, /quit ends the demo.

Any Matrix client on this machine can join in; there, begin with a mention:
@Assistant hello
  homeserver  {stage.homeserver}
  user        {stage.person.user_id}
  password    {stage.password}

To be looked at from another terminal, the bridge's log and its journal:
  {stage.bridge.log}
  {mindbridge} journal questions -c {stage.bridge.config}
"""


class Chat:
    """One session at the terminal.

    Args:
        stage: where it takes place.
        client: what the person talks through.
        screen: where they see it.
        paced: whether a line waits for the answer to the one before, as lines from a file should.
    """

    def __init__(self, stage: Stage, client: Client, screen: Screen, *, paced: bool) -> None:
        self._stage = stage
        self._client = client
        self._person = client.person
        self._screen = screen
        self._paced = paced

    async def run(self, lines: AsyncIterator[str]) -> None:
        """Chat until `/quit` or the end of the lines.

        Raises:
            NotSeenError: the agents did not come.
            HomeserverError: the homeserver is gone.
        """
        await self._client.wait_until(self._stage.has_everyone, "the agents to join the room", seconds=_SECONDS)
        self._screen.tell(welcome(self._stage))
        self._screen.prompt()
        try:
            async for line in lines:
                self._screen.typed()
                if line.strip() == "/quit":
                    return
                await self._do(line.strip())
                self._screen.prompt()
        finally:
            self._screen.leave()

    async def _do(self, line: str) -> None:
        """Do what a line asks for, and see it done."""
        try:
            sent = await self._obey(line)
        except NotAcceptedError as error:
            self._screen.tell(str(error))
            return
        if sent is None:
            return
        with suppress(NotSeenError):
            await self._client.wait_until(
                lambda conversation: any(event.event_id == sent for event in conversation.seen),
                "what was sent",
                seconds=_SECONDS,
            )
            if self._paced:
                await self._client.wait_until(
                    lambda conversation: self._stage.is_answered(conversation, sent), "an answer", seconds=_SECONDS
                )

    async def _obey(self, line: str) -> EventId | None:
        """Obey one line; gives the event that was sent, if one was."""
        command, _, rest = line.partition(" ")
        match command:
            case "":
                return None
            case "/help":
                self._screen.tell(_HELP)
                return None
            case "/react":
                return await self._react(rest.strip())
            case "/new":
                return await self._say(rest.strip(), None)
            case _ if command.startswith("/"):
                self._screen.tell(f"There is no command {command}; /help lists them.")
                return None
            case _:
                return await self._say(line, self._client.conversation.thread_for(self._person.user_id))

    async def _say(self, text: str, thread: EventId | None) -> EventId | None:
        if not text:
            self._screen.tell("Say something behind /new, for example: /new hello")
            return None
        named = [agent for agent in self._stage.agents if f"@{self._stage.names[agent]}".lower() in text.lower()]
        called = named or [self._speaker_in(thread)]
        return await self._person.say(self._client.room_id, text, thread=thread, mentioned=called)

    def _speaker_in(self, thread: EventId | None) -> UserId:
        """The agent that a person talks to who names none: the one who spoke last in the thread."""
        messages = [message for message in self._client.conversation.messages() if message.thread_id == thread]
        speakers = [message.sender for message in messages if message.sender in self._stage.agents]
        return speakers[-1] if thread is not None and speakers else self._stage.assistant

    async def _react(self, wanted: str) -> EventId | None:
        if not wanted:
            self._screen.tell("Name the button, for example: /react 🚀")
            return None
        click = click_on(self._client.conversation, wanted)
        if click is None:
            self._screen.tell("No agent has asked anything yet; say hello first.")
            return None
        question, key = click
        return await self._person.react(self._client.room_id, question.event_id, key)


def click_on(conversation: Conversation, wanted: str) -> tuple[Message, str] | None:
    """Which question a click means, and the reaction that it sends; None where nothing was asked yet.

    It means the newest open question that has the button; else, as a click on something that is no button, the newest
    open question, or the newest at all. A digit means its keycap.
    """
    key = wanted + _KEYCAP if wanted in set("123456789") else wanted
    asked = [message for message in conversation.messages() if message.question is not None]
    opened = [message for message in asked if conversation.is_open(message)]
    for message in reversed(opened):
        for option in message.options:
            if _bare(option.button) == _bare(key):
                return message, option.button
    newest = opened or asked
    return (newest[-1], key) if newest else None


def _bare(key: str) -> str:
    """The key without the mark that tells colour from text, which keyboards leave out."""
    return key.replace("\ufe0f", "")
