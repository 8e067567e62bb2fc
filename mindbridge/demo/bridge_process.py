"""The real bridge, `mindbridge run`, in a process of its own."""

import asyncio
import os
import sys
from pathlib import Path

from mindbridge.demo import tethered

_READY = "ready agents="
_START_SECONDS = 30
_STOP_SECONDS = 12  # it drains for up to 8
_POLL_SECONDS = 0.02
_LOG_LINES_SHOWN = 30


class BridgeError(Exception):
    """The bridge did not start, or ended by itself; the message shows the end of its log."""


class BridgeProcess:
    """One run of the bridge.

    It is in a session of its own, so that Ctrl-C in a terminal does not reach it. On Linux it ends when the thread that
    started it ends, in whatever way.

    Args:
        config: its configuration.
        log: where its log goes.
    """

    def __init__(self, config: Path, log: Path) -> None:
        self.config = config
        self.log = log
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it and wait until its agents are there. Whatever comes of it, `stop` it afterwards.

        Raises:
            BridgeError: it ended, or its agents were not there in time.
        """
        with self.log.open("ab") as log:
            process = self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", tethered.__name__, str(os.getpid())),
                *("mindbridge", "run", "-c", str(self.config)),
                cwd=self.config.parent,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            async with asyncio.timeout(_START_SECONDS):
                while _READY not in self.log.read_text("utf-8", "replace"):
                    if process.returncode is not None:
                        raise self._failure(f"ended with status {process.returncode} before its agents were there")
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            raise self._failure(f"did not have its agents there within {_START_SECONDS} s") from None

    async def raise_when_it_ends(self) -> None:
        """Wait for as long as it runs.

        Raises:
            BridgeError: it ended.
        """
        if self._process is not None:
            status = await self._process.wait()
            raise self._failure(f"ended by itself with status {status}")

    async def finish(self) -> None:
        """Ask it to end, which it does when it has sent what is due.

        Raises:
            BridgeError: it did not heed, or ended with an error.
        """
        status = await self.stop()
        if status:
            raise self._failure(f"was asked to end and did so with status {status}")

    async def stop(self) -> int:
        """End it, if it runs: asked first, killed where it does not heed or where this task is cancelled.

        Returns:
            Its exit status.
        """
        process, self._process = self._process, None
        if process is None:
            return 0
        try:
            if process.returncode is None:
                process.terminate()
            async with asyncio.timeout(_STOP_SECONDS):
                return await process.wait()
        except (TimeoutError, asyncio.CancelledError) as error:
            if process.returncode is None:
                process.kill()
            await asyncio.shield(process.wait())
            if isinstance(error, asyncio.CancelledError):
                raise
            return await process.wait()

    def end_of_log(self) -> str:
        """The last lines of its log."""
        lines = self.log.read_text("utf-8", "replace").splitlines()[-_LOG_LINES_SHOWN:]
        return "\n".join((f"The end of {self.log}:", *lines))

    def _failure(self, what: str) -> BridgeError:
        return BridgeError(f"The bridge {what}. {self.end_of_log()}")
