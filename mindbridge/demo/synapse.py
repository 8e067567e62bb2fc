"""A throwaway Synapse: a process of its own, from an environment of its own, on loopback, all of it in one folder."""

import asyncio
import os
import secrets
import socket
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import aiohttp

from mindbridge.demo import tethered
from mindbridge.demo.homeserver import Homeserver, HomeserverError
from mindbridge.demo.synapse_config import SERVER_NAME, write_synapse_config

_START_SECONDS = 60
_STOP_SECONDS = 10
_POLL_SECONDS = 0.02
_LOG_LINES_SHOWN = 30


def find_synapse_python(environ: Mapping[str, str], start: Path) -> Path:
    """Give the Python that has Synapse: that of the environment `MINDBRIDGE_SYNAPSE`, else of `.synapse` in `start`.

    Raises:
        HomeserverError: There is no such environment.
    """
    named = environ.get("MINDBRIDGE_SYNAPSE")
    environment = start / (named or ".synapse")
    python = environment / "bin" / "python"
    if not python.is_file():
        raise HomeserverError(
            f"{environment} holds no Synapse. In a clone of mindbridge, run: make setup. Elsewhere, install "
            "matrix-synapse into an environment of its own, not mindbridge's, and set MINDBRIDGE_SYNAPSE to its folder."
        )
    return python


class Synapse:
    """A Synapse that can be started and stopped any number of times, with the same folder and port.

    It runs in a session of its own, so that Ctrl-C in a terminal does not reach it. On Linux it ends when the thread
    that started it ends, in whatever way: start it from one that lives as long as it is needed.

    Args:
        python: the Python of an environment with Synapse (`find_synapse_python`).
        folder: where everything of it goes, database, media, keys and log; made where it is missing.
        rate_limits: whether Synapse's default limits hold; else there are none.
    """

    def __init__(self, python: Path, folder: Path, *, rate_limits: bool = False) -> None:
        folder = folder.absolute()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        port = _free_port()
        secret = secrets.token_hex(32)
        self.homeserver = Homeserver(f"http://127.0.0.1:{port}", SERVER_NAME, secret)
        self.log = folder / "homeserver.log"
        self._config = write_synapse_config(folder, port, secret, rate_limits=rate_limits)
        self._python = python.absolute()
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start it and wait until it answers.

        Raises:
            HomeserverError: It ended or did not answer in time; the message shows the end of its log.
        """
        if self._process:
            return
        async with AsyncExitStack() as unless_ready:
            process = self._process = self._launch()
            unless_ready.push_async_callback(self.stop)
            await self._until_ready(process)
            unless_ready.pop_all()

    async def stop(self) -> None:
        """End it: asked first, killed where it does not heed within seconds or where this task is cancelled."""
        if not self._process:
            return
        process, self._process = self._process, None
        process.terminate()
        try:
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(process.wait, _STOP_SECONDS)
        finally:
            process.kill()
            process.wait()

    def _launch(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 -- no shell; both programs are named by whoever runs the demo
                [
                    *(self._python, "-I", tethered.__file__, str(os.getpid())),
                    *("synapse.app.homeserver", "--config-path", self._config),
                ],
                cwd=self._config.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    async def _until_ready(self, process: subprocess.Popen[bytes]) -> None:
        try:
            async with (
                aiohttp.ClientSession(self.homeserver.url) as session,
                asyncio.timeout(_START_SECONDS),
            ):
                while not await _answers(session):
                    if process.poll() is not None:
                        raise self._failure(f"ended with status {process.returncode} before it was ready")
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            raise self._failure(f"did not answer at {self.homeserver.url} within {_START_SECONDS} s") from None

    def _failure(self, what: str) -> HomeserverError:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES_SHOWN:]
        return HomeserverError("\n".join((f"Synapse {what}. The end of {self.log}:", *lines)))


@asynccontextmanager
async def throwaway_synapse(python: Path, folder: Path, *, rate_limits: bool = False) -> AsyncIterator[Homeserver]:
    """Run a `Synapse` for as long as the context lasts, and give the way to it; `folder` is the caller's to remove.

    Raises:
        HomeserverError: It did not start.
    """
    synapse = Synapse(python, folder, rate_limits=rate_limits)
    await synapse.start()
    try:
        yield synapse.homeserver
    finally:
        await synapse.stop()


async def _answers(session: aiohttp.ClientSession) -> bool:
    try:
        async with session.get("/_matrix/client/versions") as response:
            return response.ok
    except aiohttp.ClientError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
