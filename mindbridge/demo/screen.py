"""The room in a terminal, as a client shows it: names, texts, questions with their buttons, edits."""

import shutil
import textwrap
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from typing import TextIO

from mindbridge.demo.conversation import Conversation
from mindbridge.demo.timeline import Edit, Joined, Message, Reaction, Seen
from mindbridge.ids import EventId, UserId

_NAME_WIDTH = 10
_MARGIN = " " * (_NAME_WIDTH + 2)
_MOST_COLUMNS = 100
_ERASE_LINE = "\r\x1b[K"
_BOLD, _DIM, _GREEN, _CYAN = "1", "2", "32", "36"


class Screen:
    """Writes each event of a conversation as it comes.

    Args:
        out: where to.
        names: the display names of those who may speak.
        own: whose terminal it is.
        coloured: whether colours are wanted.
        wraps: whether lines are to fit the terminal's width.
        prompts: whether the person types at this very terminal, so that their own messages stand there already.
    """

    def __init__(
        self, out: TextIO, names: Mapping[UserId, str], own: UserId, *, coloured: bool, wraps: bool, prompts: bool
    ) -> None:
        self._out = out
        self._names = names
        self._own = own
        self._coloured = coloured
        self._wraps = wraps
        self._prompts = prompts
        self._thread: EventId | None = None
        self._prompted = False

    def tell(self, text: str) -> None:
        """Show the demo's own words."""
        self._write(text)

    def prompt(self) -> None:
        """Ask for the next line."""
        if self._prompts:
            self._out.write(self._name(self._own, self._thread))
            self._out.flush()
            self._prompted = True

    def typed(self) -> None:
        """Take note that the person has ended the line behind the prompt."""
        self._prompted = False

    def leave(self) -> None:
        """Leave the terminal with a line of its own for whoever writes next."""
        if self._prompted:
            self._prompted = False
            with suppress(OSError):  # the terminal may be gone
                self._out.write("\n")
                self._out.flush()

    def show(self, event: Seen, conversation: Conversation) -> None:
        """Show an event that the conversation knows already."""
        self._thread = conversation.thread_for(self._own)
        match event:
            case Message():
                if not (self._prompts and event.from_here):
                    self._say(event, event.text, _DIM if event.is_notice else None)
            case Edit():
                self._show_edit(event, conversation)
            case Reaction():
                self._show_reaction(event, conversation)
            case Joined() if event.user != self._own:
                self._write(self._style(f"{self._name_of(event.user)} joined", _DIM))
            case _:
                pass

    def _show_edit(self, edit: Edit, conversation: Conversation) -> None:
        message = conversation.message(edit.original)
        if message is None or edit not in (edits := conversation.edits(message)):
            return
        place = edits.index(edit)
        before = (edits[place - 1].text if place else message.text).splitlines()
        changed = [line for line in edit.text.splitlines() if line not in before]
        self._say(message, "\n".join(changed), _GREEN if edit.question else _DIM)

    def _show_reaction(self, reaction: Reaction, conversation: Conversation) -> None:
        message = conversation.message(reaction.target)
        if message is None:
            return
        if reaction.sender != message.sender:
            asked = [each.event_id for each in conversation.messages() if each.question]
            where = " under an earlier question" if message.event_id in asked[:-1] else ""
            self._write(self._name(reaction.sender) + self._style(f"clicked {_plain(reaction.key)}{where}", _CYAN))
        elif conversation.is_open(message) and conversation.is_complete(message):
            buttons = " ".join(f"[{_plain(button.key)}]" for button in conversation.buttons(message))
            self._write(_MARGIN + self._style(buttons, _BOLD))

    def _say(self, message: Message, text: str, style: str | None) -> None:
        """Show a text under its sender's name, with a hook where it stands in a thread."""
        lines = [piece for line in _plain(text).splitlines() for piece in self._wrapped(line)] or [""]
        shown = [self._style(line, style) if style else line for line in lines]
        rest = (_MARGIN + line if line else "" for line in shown[1:])
        self._write("\n".join((self._name(message.sender, message.thread_id) + shown[0], *rest)))

    def _wrapped(self, line: str) -> list[str]:
        if not self._wraps:
            return [line]
        columns = min(shutil.get_terminal_size().columns, _MOST_COLUMNS) - len(_MARGIN)
        return textwrap.wrap(line, max(columns, 20), break_on_hyphens=False) or [""]

    def _write(self, text: str) -> None:
        self._out.write((_ERASE_LINE if self._prompted else "") + text + "\n")
        self._out.flush()
        if self._prompted:
            self._prompted = False
            self.prompt()

    def _name_of(self, user: UserId) -> str:
        return self._names.get(user, user)

    def _name(self, user: UserId, thread: EventId | None = None) -> str:
        name = f"{self._name_of(user):<{_NAME_WIDTH}}"
        return self._style(name, _BOLD) + ("↳ " if thread else "  ")

    def _style(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self._coloured and text else text


def _plain(text: str) -> str:
    """The text without characters that steer a terminal."""
    return "".join(char for char in text if char == "\n" or unicodedata.category(char) != "Cc")
