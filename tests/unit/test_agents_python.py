"""The `python` backend with real modules in real folders."""

import asyncio
import logging
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from mindbridge.agents.failure import AgentFailed, BackendUnusable
from mindbridge.agents.python import PythonAgent, load_function
from mindbridge.agents.turn import Turn
from tests.unit.sample_turn import turn

LONG = 60.0  # never reached where a test passes


def agent(function: Callable[[Turn], object], *, timeout_seconds: float = LONG, threads: int = 32) -> PythonAgent:
    return PythonAgent(function, timeout_seconds=timeout_seconds, threads=threads)


@pytest.fixture(autouse=True)
def modules_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


# Importing


async def test_function_of_a_file_beside_the_configuration_is_called(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text("def reply(turn):\n    return f'{turn.text}, {turn.sender.display_name}'\n")

    function = load_function("my_agent:reply", tmp_path)

    assert await agent(function).reply(turn()) == "hello, Alice"


async def test_function_of_a_package_can_import_its_neighbours_late(tmp_path: Path) -> None:
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "agent.py").write_text(
        "class Bot:\n    @staticmethod\n    def reply(turn):\n"
        "        from my_package.words import WORD\n        return WORD\n"
    )
    (tmp_path / "my_package" / "words.py").write_text("WORD = 'late'\n")

    function = load_function("my_package.agent:Bot.reply", tmp_path)

    assert await agent(function).reply(turn()) == "late"


def test_configurations_folder_is_first_on_the_path_once(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text("def reply(turn): ...\ndef other(turn): ...\n")

    load_function("my_agent:reply", tmp_path)
    load_function("my_agent:other", tmp_path)

    assert sys.path[0] == str(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1


def unusable(reference: str, folder: Path) -> str:
    with pytest.raises(BackendUnusable) as raised:
        load_function(reference, folder)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_missing_module_says_where_it_was_looked_for(tmp_path: Path) -> None:
    assert unusable("my_agent:reply", tmp_path) == (
        f"my_agent:reply: there is no module my_agent in {tmp_path} or among the installed packages"
    )


def test_missing_package_of_a_module_is_named(tmp_path: Path) -> None:
    assert "there is no module my_package in" in unusable("my_package.agent:reply", tmp_path)


def test_module_that_needs_a_missing_package_says_where_to_install_it(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text("import no_such_package\n")

    assert unusable("my_agent:reply", tmp_path).endswith(
        f"ModuleNotFoundError: No module named 'no_such_package': install it into {sys.prefix}"
    )


def test_syntax_error_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text("def reply(turn):\n    return (\n")

    assert f'File "{tmp_path}/my_agent.py", line 2' in unusable("my_agent:reply", tmp_path)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("raise ValueError('no key')", "ValueError: no key"),
        ("import sys; sys.exit('usage: …')", "SystemExit: usage: …"),
        ("reply = 3", "reply in {folder}/my_agent.py is no function"),
        ("def answer(turn): ...", "{folder}/my_agent.py has no reply; name a function of it"),
        ("def reply(): ...", "it must take one argument, the turn; it is declared with ()"),
        ("def reply(turn, room): ...", "it must take one argument, the turn; it is declared with (turn, room)"),
    ],
)
def test_module_that_can_not_be_used_says_why(source: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text(source)

    assert unusable("my_agent:reply", tmp_path).endswith(words.format(folder=tmp_path))


def test_module_hidden_by_another_of_the_same_name_names_the_other(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("def reply(turn): ...\n")

    assert "json/__init__.py has no reply" in unusable("json:reply", tmp_path)


# Kinds of functions


def gives_text(turn: Turn) -> str:
    return turn.text


async def gives_text_async(turn: Turn) -> str:
    await asyncio.sleep(0)
    return turn.text


def gives_pieces(turn: Turn) -> Iterator[str]:
    yield from turn.text


async def gives_pieces_async(turn: Turn) -> AsyncIterator[str]:
    for piece in turn.text:
        await asyncio.sleep(0)
        yield piece


def gives_awaitable(turn: Turn) -> Awaitable[str]:
    return gives_text_async(turn)


async def gives_iterator_async(turn: Turn) -> AsyncIterator[str]:
    return gives_pieces_async(turn)


class Bot:
    async def __call__(self, turn: Turn) -> str:
        return await gives_text_async(turn)


@pytest.mark.parametrize(
    "function",
    [gives_text, gives_text_async, gives_pieces, gives_pieces_async, gives_awaitable, gives_iterator_async, Bot()],
)
async def test_function_of_every_kind_gives_its_text(function: Callable[[Turn], object]) -> None:
    assert await agent(function).reply(turn(text="hello")) == "hello"


async def test_sync_function_runs_beside_the_event_loop() -> None:
    arrived, go_on = threading.Event(), threading.Event()

    def waits(_: Turn) -> str:
        arrived.set()
        return "done" if go_on.wait(LONG) else "nobody came"

    call = asyncio.create_task(agent(waits).reply(turn()))
    assert await asyncio.to_thread(arrived.wait, LONG)
    go_on.set()

    assert await call == "done"


async def test_none_is_an_empty_reply() -> None:
    assert await agent(lambda _: None).reply(turn()) == ""


async def test_endless_iterators_are_cut_and_closed() -> None:
    closed = []

    def endless(_: Turn) -> Iterator[str]:
        try:
            while True:
                yield "x" * 100_000
        finally:
            closed.append("sync")

    async def endless_async(_: Turn) -> AsyncIterator[str]:
        try:
            while True:
                yield "x" * 100_000
        finally:
            closed.append("async")

    assert await agent(endless).reply(turn()) == "x" * 1_100_000
    assert await agent(endless_async).reply(turn()) == "x" * 1_100_000
    assert closed == ["sync", "async"]


async def test_surrogates_are_joined_or_replaced() -> None:
    """X9"""
    assert await agent(lambda _: "\ud83d\ude80 \ud800 ü").reply(turn()) == "🚀 � ü"


# Failures


async def failure(function: Callable[[Turn], object], *, timeout_seconds: float = LONG) -> str:
    with pytest.raises(AgentFailed) as raised:
        await agent(function, timeout_seconds=timeout_seconds).reply(turn())
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("value", [3, b"hello", ["hello"], object], ids=repr)
async def test_anything_but_text_is_a_failure(value: object) -> None:
    assert await failure(lambda _: value) == (
        f"the function returned {type(value).__name__}, not a string, an iterator of strings or None"
    )


async def test_iterator_of_something_else_than_strings_is_a_failure() -> None:
    def numbers(_: Turn) -> Iterator[int]:
        yield 1

    async def numbers_async(_: Turn) -> AsyncIterator[int]:
        yield 1

    assert await failure(numbers) == "the function's iterator gave int, not a string"
    assert await failure(numbers_async) == "the function's iterator gave int, not a string"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("no\nkey"), "ValueError: no key"),
        (SystemExit(2), "SystemExit: 2"),
        (StopIteration(), "StopIteration"),
        (KeyError("x" * 1_000), "KeyError: '" + "x" * 488 + "…"),
        (AgentFailed("the model is overloaded"), "the model is overloaded"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_exception_of_a_sync_function_is_a_failure(error: BaseException, words: str) -> None:
    def fails(_: Turn) -> str:
        raise error

    assert await failure(fails) == words


@pytest.mark.parametrize("error", [ValueError("no\nkey"), SystemExit(2)], ids=repr)
async def test_exception_of_an_async_function_is_a_failure(error: BaseException) -> None:
    async def fails(_: Turn) -> str:
        raise error

    async def fails_late(_: Turn) -> AsyncIterator[str]:
        yield "half"
        raise error

    words = {ValueError: "ValueError: no key", SystemExit: "SystemExit: 2"}[type(error)]
    assert (await failure(fails), await failure(fails_late)) == (words, words)


async def test_traceback_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_: Turn) -> str:
        raise ValueError("no key")

    await failure(fails)

    assert "agent_raised agent=assistant turn_id=turn_1" in caplog.text
    assert "in fails" in caplog.text


async def test_function_that_was_cancelled_from_within_is_a_failure() -> None:
    async def cancels_itself(_: Turn) -> str:
        raise asyncio.CancelledError

    def cancels_itself_in_its_thread(_: Turn) -> str:
        raise asyncio.CancelledError

    assert await failure(cancels_itself) == "the function was cancelled from within (asyncio.CancelledError)"
    assert "CancelledError" in await failure(cancels_itself_in_its_thread)


async def test_async_function_is_cancelled_at_the_timeout() -> None:
    seen = []

    async def hangs(_: Turn) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("cancelled")
        return "never"

    assert await failure(hangs, timeout_seconds=0.01) == "the function gave no reply within 0.01 s"
    assert seen == ["cancelled"]


async def test_reply_that_comes_as_the_function_is_cancelled_is_too_late() -> None:
    async def late(_: Turn) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "late"
        return "never"

    assert await failure(late, timeout_seconds=0.01) == "the function gave no reply within 0.01 s"


async def test_function_that_swallows_its_cancellation_is_let_go(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mindbridge.agents.python._GRACE_SECONDS", 0.01)
    at_last = asyncio.Event()

    async def swallows(_: Turn) -> str:
        while not at_last.is_set():
            try:
                await at_last.wait()
            except asyncio.CancelledError:
                continue
        return "never"

    assert await failure(swallows, timeout_seconds=0.01) == "the function gave no reply within 0.01 s"
    assert "agent_still_running agent=assistant turn_id=turn_1" in caplog.text
    at_last.set()


async def test_cancelled_turn_cancels_the_function() -> None:
    started, seen = asyncio.Event(), []

    async def hangs(_: Turn) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("cancelled")
        return "never"

    call = asyncio.create_task(agent(hangs).reply(turn()))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert seen == ["cancelled"]


async def test_thread_that_hangs_fails_its_turn_is_told_to_the_log_and_counts_until_it_returns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    go_on = threading.Event()

    def hangs(_: Turn) -> str:
        go_on.wait(LONG)
        return "late"

    hanging = agent(hangs, timeout_seconds=0.01, threads=1)
    with pytest.raises(AgentFailed, match=r"no reply within 0\.01 s"):
        await hanging.reply(turn())
    with pytest.raises(AgentFailed, match="still at work for 1 earlier turns"):
        await hanging.reply(turn(turn_id="turn_2"))

    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, "agent_still_running agent=assistant turn_id=turn_1: a thread can't be ended")
    ]
    go_on.set()


async def test_thread_that_hangs_does_not_keep_the_bridge_from_ending() -> None:
    program = (
        "import asyncio, threading\n"
        "from mindbridge.agents.python import PythonAgent\n"
        "from tests.unit.sample_turn import turn\n"
        "agent = PythonAgent(lambda _: threading.Event().wait(), timeout_seconds=0.01)\n"
        "asyncio.run(agent.reply(turn()))\n"
    )
    bridge = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stderr=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(LONG):
            _, errors = await bridge.communicate()
    finally:
        if bridge.returncode is None:
            bridge.kill()

    assert errors.decode().splitlines()[-1] == (
        "mindbridge.agents.failure.AgentFailed: the function gave no reply within 0.01 s"
    )


async def test_iterator_of_a_turn_that_timed_out_is_not_asked_for_more() -> None:
    asked, closed = threading.Event(), threading.Event()

    def endless(_: Turn) -> Iterator[str]:
        try:
            while True:
                asked.wait(LONG)
                yield "."
        finally:
            closed.set()

    await failure(endless, timeout_seconds=0.01)
    asked.set()

    assert await asyncio.to_thread(closed.wait, LONG)
