"""`mindbridge demo`: a whole bridge on a throwaway homeserver, to chat with in the terminal or to watch once."""

import asyncio
import io
import os
import signal
import sys
from collections.abc import Coroutine
from dataclasses import asdict
from pathlib import Path

from mindbridge.demo.bridge_process import BridgeError
from mindbridge.demo.chat import Chat
from mindbridge.demo.checks import Record, check
from mindbridge.demo.client import Client, NotSeenError
from mindbridge.demo.homeserver import HomeserverError
from mindbridge.demo.journal_view import read_journal
from mindbridge.demo.once import play
from mindbridge.demo.screen import Screen
from mindbridge.demo.stage import Stage, set_stage
from mindbridge.demo.synapse import find_synapse_python
from mindbridge.demo.typed_lines import typed_lines

_ONCE_SECONDS = 60
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(*, once: bool) -> int:
    """Runs the demo until it is over; nothing of it stays.

    Args:
        once: whether to play one conversation and look whether all of it went right; else a person chats.

    Returns:
        0 at the end of a chat, or when all of the one conversation was right; else 1.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may not know all emoji
    try:
        python = find_synapse_python(os.environ, Path.cwd())
        return asyncio.run(_until_signal(_once(python), 1) if once else _until_signal(_chat(python), 0))
    except (HomeserverError, BridgeError, NotSeenError) as error:
        print(error, file=sys.stderr)
    except BrokenPipeError:  # whoever read the output has gone; so is all that it was about
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


async def _until_signal(work: Coroutine[None, None, int], status: int) -> int:
    """Do `work`; a signal cancels it, so that it tidies up, and then `status` is the outcome."""
    loop = asyncio.get_running_loop()
    working = asyncio.create_task(work)
    for each in _ENDING:
        loop.add_signal_handler(each, working.cancel)
    try:
        return await working
    except asyncio.CancelledError:
        return status
    finally:
        for each in _ENDING:
            loop.remove_signal_handler(each)


async def _chat(python: Path) -> int:
    is_typed = sys.stdin is not None and sys.stdin.isatty()
    async with set_stage(python, _tell) as stage:
        screen = _screen(stage, is_typed=is_typed)
        client = Client(stage.person, stage.room_id, screen.show)
        chat = Chat(stage, client, screen, paced=not is_typed)
        await stage.perform(client, chat.run(typed_lines(sys.stdin)))
    return 0


async def _once(python: Path) -> int:
    deadline = asyncio.get_running_loop().time() + _ONCE_SECONDS
    async with set_stage(python, _tell) as stage:
        client = Client(stage.person, stage.room_id, _screen(stage, is_typed=False).show)
        try:
            async with asyncio.timeout_at(deadline):
                acts = await stage.perform(client, play(stage, client))
                journal = await read_journal(stage.bridge.config, acts.late_click)
        except (HomeserverError, NotSeenError) as error:
            return _failed(str(error), stage)
        except TimeoutError:
            return _failed(f"it was not through after {_ONCE_SECONDS} s", stage)
        you, assistant, helper = stage.person.user_id, stage.assistant, stage.helper
        checks = check(
            Record(
                you=you,
                assistant=assistant,
                helper=helper,
                conversation=client.conversation,
                journal=journal,
                **asdict(acts),
            )
        )
        print()
        for each in checks:
            print(f"{'WRONG' if each.wrong else 'ok   '}  {each.right}", *each.wrong, sep="\n         ")
        if any(each.wrong for each in checks):
            return _failed("not all of it went as it should", stage)
    return 0


def _failed(why: str, stage: Stage) -> int:
    print(f"\nThe demo failed: {why}.")
    _tell(stage.bridge.end_of_log())
    return 1


def _screen(stage: Stage, *, is_typed: bool) -> Screen:
    is_terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    return Screen(
        sys.stdout,
        stage.names,
        stage.person.user_id,
        coloured=is_terminal and not os.environ.get("NO_COLOR"),
        wraps=is_terminal,
        prompts=is_terminal and is_typed,
    )


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
