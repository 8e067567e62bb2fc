"""A program together with everything that it starts: fed, listened to, and ended as a whole.

The pipes are the module's own, so that nothing ever waits for a process that outlived the program and holds them open.
"""

import asyncio
import contextlib
import io
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

_CHUNK = 65_536
_LAST_CHUNKS = 32  # more than a pipe holds; a process that got away may go on writing

Listener = Callable[[bytes], None]


def _pipe(opened: contextlib.ExitStack) -> tuple[io.FileIO, io.FileIO]:
    reading, writing = os.pipe()
    return opened.enter_context(io.FileIO(reading, "rb")), opened.enter_context(io.FileIO(writing, "wb"))


class _Input:
    """A program's standard input: gets `content` as fast as it is read, then is closed."""

    def __init__(self, content: bytes, opened: contextlib.ExitStack) -> None:
        self.theirs, self._pipe = _pipe(opened)
        os.set_blocking(self._pipe.fileno(), False)
        self._rest = memoryview(content)
        asyncio.get_running_loop().add_writer(self._pipe, self._give)
        opened.callback(self._close)

    def _give(self) -> None:
        try:
            self._rest = self._rest[self._pipe.write(self._rest[:_CHUNK]) or 0 :]
        except BrokenPipeError:  # a program need not read its input
            self._close()
            return
        if not self._rest:
            self._close()

    def _close(self) -> None:
        if not self._pipe.closed:
            asyncio.get_running_loop().remove_writer(self._pipe)
            self._pipe.close()


class _Output:
    """A program's standard output or error: whatever comes is read at once, so that the program never waits."""

    def __init__(self, listener: Listener, opened: contextlib.ExitStack) -> None:
        self._pipe, self.theirs = _pipe(opened)
        os.set_blocking(self._pipe.fileno(), False)
        self._listener = listener
        self.ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._pipe, self._take)
        opened.callback(self._close)

    def _take(self) -> bool:
        chunk = self._pipe.read(_CHUNK)
        if chunk:
            self._listener(chunk)
        elif chunk is not None:
            self._close()
        return bool(chunk)

    def take_rest(self) -> None:
        """Takes what lies in the pipe now, without waiting for more."""
        for _ in range(_LAST_CHUNKS):
            if self._pipe.closed or not self._take():
                return

    def _close(self) -> None:
        if not self._pipe.closed:
            asyncio.get_running_loop().remove_reader(self._pipe)
            self._pipe.close()
            self.ended.set()


def _signal_group(process: Process, number: signal.Signals) -> bool:
    """Tells whether there was a process in the program's group that could be signalled."""
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


async def _end(process: Process, outputs: Sequence[_Output], grace_seconds: float) -> None:
    try:
        if _signal_group(process, signal.SIGTERM):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace_seconds):
                    await process.wait()
                    for output in outputs:
                        await output.ended.wait()
    finally:
        _signal_group(process, signal.SIGKILL)
        # A program of another user, or one that hangs in the kernel, does not go even then.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                await process.wait()
        for output in outputs:
            output.take_rest()


@contextlib.asynccontextmanager
async def running(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    stdin: bytes,
    stdout: Listener,
    stderr: Listener,
    grace_seconds: float,
) -> AsyncIterator[Process]:
    """Runs `command` in `folder`, in a session of its own, for as long as the context is open.

    However the context is left, the program and all processes of its group get SIGTERM, and SIGKILL as soon as the
    program has ended and its outputs are closed, at most `grace_seconds` later; a second cancellation kills at once.
    All that was written until then has gone to the listeners. A process that left the session lives on, unheard.

    Raises:
        OSError: The program could not be started.
        ValueError: An argument or a variable can't be given to a program (it holds a NUL character).
    """
    with contextlib.ExitStack() as opened:
        given = _Input(stdin, opened)
        outputs = _Output(stdout, opened), _Output(stderr, opened)
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env=environment,
            stdin=given.theirs,
            stdout=outputs[0].theirs,
            stderr=outputs[1].theirs,
            start_new_session=True,
        )
        try:
            for end in (given, *outputs):
                end.theirs.close()
            yield process
        finally:
            await _end(process, outputs, grace_seconds)
