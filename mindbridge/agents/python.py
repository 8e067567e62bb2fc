"""The `python` backend: a function of the user that takes a `Turn` and gives the reply (contract, section 5)."""

import asyncio
import concurrent.futures
import contextlib
import importlib
import inspect
import logging
import operator
import sys
import threading
import traceback
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator
from pathlib import Path

from mindbridge.agents.failure import AgentFailed, BackendUnusable, one_line
from mindbridge.agents.turn import Turn
from mindbridge.questions.json_text import without_surrogates

_log = logging.getLogger("mindbridge.agent")

_REPLY_CHARACTERS = 1_048_576  # far over what a reply may have; no more is taken from an iterator
_GRACE_SECONDS = 2.0

AgentFunction = Callable[[Turn], object]


def load_function(reference: str, folder: Path) -> AgentFunction:
    """Imports `package.module:function`, with `folder` first on `sys.path` from now on.

    Raises:
        BackendUnusable: There is no such module or function, importing it failed, or it can't be called with one turn.
    """
    place = str(folder.resolve())
    if sys.path[:1] != [place]:
        sys.path.insert(0, place)
    module_name, _, name = reference.partition(":")
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(module_name)
    # The module is the user's: importing it runs code that can raise anything, SystemExit included.
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            advice = f"there is no module {error.name} in {place} or among the installed packages"
            raise BackendUnusable(one_line(f"{reference}: {advice}")) from error
        _log.exception("agent_import_failed python=%s", reference)
        advice = f"importing it failed; the log has the traceback. {_in_words(error)}"
        if isinstance(error, ModuleNotFoundError):
            advice += f": install it into {sys.prefix}"
        raise BackendUnusable(one_line(f"{reference}: {advice}")) from error
    source = getattr(module, "__file__", None) or module_name
    try:
        function: object = operator.attrgetter(name)(module)
    except AttributeError as error:
        raise BackendUnusable(one_line(f"{reference}: {source} has no {name}; name a function of it")) from error
    if not callable(function):
        raise BackendUnusable(one_line(f"{reference}: {name} in {source} is no function"))
    _check_signature(reference, function)
    return function


def _check_signature(reference: str, function: AgentFunction) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # functions written in C have none
        return
    try:
        signature.bind(None)
    except TypeError as error:
        advice = f"it must take one argument, the turn; it is declared with {signature}"
        raise BackendUnusable(one_line(f"{reference}: {advice}")) from error


class PythonAgent:
    """Calls `function` for every turn: on the event loop where it is asynchronous, else in a thread of its own.

    A thread can't be ended: one that takes longer than `timeout_seconds` goes on, and its result is dropped. While
    `threads` of them are at work, turns fail at once.
    """

    def __init__(self, function: AgentFunction, *, timeout_seconds: float, threads: int = 32) -> None:
        self._function = function
        self._timeout_seconds = timeout_seconds
        self._most_threads = threads
        self._threads: set[threading.Thread] = set()
        self._stubborn: set[asyncio.Task[str]] = set()

    async def reply(self, turn: Turn) -> str:
        """Gives the function's string, or the strings of its iterator joined; None is an empty reply.

        Raises:
            AgentFailed: The function raised something, took too long, or gave something else than text.
        """
        # A task of its own: so a function that was cancelled from within is not taken for a turn that is cancelled, and
        # one that swallows its cancellation can be let go.
        call = asyncio.create_task(self._call(turn))
        try:
            await asyncio.wait({call}, timeout=self._timeout_seconds)
            in_time = call.done()
        finally:
            if not call.done():
                await self._let_go(call, turn)
        if not in_time:
            raise AgentFailed(f"the function gave no reply within {self._timeout_seconds:g} s")
        if call.cancelled():
            raise AgentFailed("the function was cancelled from within (asyncio.CancelledError)")
        return call.result()

    async def _let_go(self, call: asyncio.Task[str], turn: Turn) -> None:
        call.cancel()
        self._stubborn.add(call)
        call.add_done_callback(self._stubborn.discard)
        call.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({call}, timeout=_GRACE_SECONDS)
        if not call.done():
            _log.warning("agent_still_running agent=%s turn_id=%s: it ignores cancellation", turn.agent, turn.turn_id)

    async def _call(self, turn: Turn) -> str:
        try:
            if inspect.iscoroutinefunction(self._function) or inspect.isasyncgenfunction(self._function):
                result: object = self._function(turn)
            else:
                result = await self._call_in_thread(turn)
            if inspect.isawaitable(result):
                result = await result
            if isinstance(result, AsyncIterable):
                result = await _join_async(result)
        # The function is the user's and can raise anything. SystemExit would end the bridge with all its agents.
        except (Exception, SystemExit) as error:
            raise _failure(turn, error) from error
        if result is None:
            return ""
        if not isinstance(result, str):
            raise AgentFailed(
                f"the function returned {type(result).__name__}, not a string, an iterator of strings or None"
            )
        return without_surrogates(result)

    async def _call_in_thread(self, turn: Turn) -> object:
        self._threads = {thread for thread in self._threads if thread.is_alive()}
        if len(self._threads) >= self._most_threads:
            raise AgentFailed(f"the function is still at work for {len(self._threads)} earlier turns")
        outcome: concurrent.futures.Future[object] = concurrent.futures.Future()
        outcome.set_running_or_notify_cancel()
        unwanted = threading.Event()

        def work() -> None:
            try:
                result = self._function(turn)
                if isinstance(result, Iterator):
                    result = _join(result, unwanted)
            # Whatever ends the user's code ends this thread, and must be told to the turn that waits for it.
            except BaseException as error:  # noqa: BLE001
                outcome.set_exception(_failure(turn, error))
            else:
                outcome.set_result(result)

        # A daemon, since a function that hangs must not keep the bridge from stopping.
        thread = threading.Thread(target=work, name=f"agent-{turn.agent}", daemon=True)
        self._threads.add(thread)
        thread.start()
        try:
            return await asyncio.wrap_future(outcome)
        except asyncio.CancelledError:
            unwanted.set()
            _log.warning("agent_still_running agent=%s turn_id=%s: a thread can't be ended", turn.agent, turn.turn_id)
            raise


def _in_words(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip()


def _failure(turn: Turn, error: BaseException) -> AgentFailed:
    if isinstance(error, AgentFailed):
        return error
    _log.error("agent_raised agent=%s turn_id=%s", turn.agent, turn.turn_id, exc_info=error)
    return AgentFailed(one_line(_in_words(error)))


def _piece(value: object) -> str:
    if not isinstance(value, str):
        raise AgentFailed(f"the function's iterator gave {type(value).__name__}, not a string")
    return value


def _join(pieces: Iterator[object], unwanted: threading.Event) -> str:
    text = ""
    for value in pieces:
        text += _piece(value)
        if len(text) > _REPLY_CHARACTERS or unwanted.is_set():
            break
    return text


async def _join_async(pieces: AsyncIterable[object]) -> str:
    text = ""
    async with contextlib.AsyncExitStack() as opened:
        if isinstance(pieces, AsyncGenerator):
            await opened.enter_async_context(contextlib.aclosing(pieces))
        async for value in pieces:
            text += _piece(value)
            if len(text) > _REPLY_CHARACTERS:
                break
    return text
