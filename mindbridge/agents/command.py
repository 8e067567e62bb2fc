"""The `command` backend: one process a turn; it reads the turn's JSON and writes the reply (contract, section 5)."""

import asyncio
import logging
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from mindbridge.agents.failure import AgentFailed, one_line
from mindbridge.agents.process import running
from mindbridge.agents.turn import Turn

_log = logging.getLogger("mindbridge.agent")

_REPLY_BYTES = 1_048_576  # far over what a reply may have; the rest is read and dropped
_ERROR_LINES = 200
_ERROR_LINE_BYTES = 4_096


class _Reply:
    """A program's standard output, up to a limit."""

    def __init__(self) -> None:
        self._content = bytearray()

    def take(self, chunk: bytes) -> None:
        self._content += chunk[: _REPLY_BYTES - len(self._content)]

    def text(self) -> str:
        return self._content.decode("utf-8", "replace").removesuffix("\n")


class _Errors:
    """A program's standard error: its first 200 lines go to the log, the last one is remembered."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._count = 0
        self._unfinished = b""
        self._last = b""

    def take(self, chunk: bytes) -> None:
        *lines, rest = (self._unfinished + chunk).split(b"\n")
        for line in lines:
            self._tell(line)
        self._unfinished = rest[:_ERROR_LINE_BYTES]

    def finish(self) -> None:
        self._tell(self._unfinished)
        self._unfinished = b""

    def reason(self) -> str:
        line = self._unfinished if self._unfinished.strip() else self._last
        return f": {line.decode('utf-8', 'replace')}" if line else ""

    def _tell(self, line: bytes) -> None:
        if not line.strip():
            return
        self._last = line[:_ERROR_LINE_BYTES]
        self._count += 1
        ids = self._turn.agent, self._turn.turn_id
        if self._count <= _ERROR_LINES:
            _log.info("agent_stderr agent=%s turn_id=%s %s", *ids, one_line(self._last.decode("utf-8", "replace")))
        elif self._count == _ERROR_LINES + 1:
            _log.info("agent_stderr_cut agent=%s turn_id=%s lines=%d", *ids, _ERROR_LINES)


class CommandAgent:
    """Runs `command` in the configuration's `folder` for every turn.

    The program inherits all of `environ`, so that it finds its own keys there, and the variables `MINDBRIDGE_AGENT`,
    `MINDBRIDGE_TURN_ID`, `MINDBRIDGE_ROLE` and `MINDBRIDGE_INSTRUCTIONS` (one instruction a line). Its standard error
    goes to the log. No process that it started in its session outlives the turn; at the end each gets `grace_seconds`
    between SIGTERM and SIGKILL.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        *,
        timeout_seconds: float,
        environ: Mapping[str, str],
        grace_seconds: float = 2.0,
    ) -> None:
        self._command = tuple(command)
        self._folder = folder
        self._timeout_seconds = timeout_seconds
        self._environ = environ
        self._grace_seconds = grace_seconds

    async def reply(self, turn: Turn) -> str:
        """Gives what the program wrote to its standard output, without one trailing newline.

        Raises:
            AgentFailed: The program could not be started, ended with another status than 0, or took too long.
        """
        output, errors = _Reply(), _Errors(turn)
        try:
            async with running(
                self._command,
                folder=self._folder,
                environment=self._environment(turn),
                stdin=turn.model_dump_json().encode() + b"\n",
                stdout=output.take,
                stderr=errors.take,
                grace_seconds=self._grace_seconds,
            ) as process:
                try:
                    async with asyncio.timeout(self._timeout_seconds):
                        status = await process.wait()
                except TimeoutError:
                    raise AgentFailed(
                        one_line(
                            f"{self._command[0]} gave no reply within {self._timeout_seconds:g} s{errors.reason()}"
                        )
                    ) from None
        except (OSError, ValueError) as error:
            raise AgentFailed(one_line(self._not_started(error))) from error
        finally:
            errors.finish()
        if status:
            raise AgentFailed(one_line(f"{self._command[0]} ended with {_status(status)}{errors.reason()}"))
        return output.text()

    def _environment(self, turn: Turn) -> dict[str, str]:
        return {
            **self._environ,
            "MINDBRIDGE_AGENT": turn.agent,
            "MINDBRIDGE_TURN_ID": turn.turn_id,
            "MINDBRIDGE_ROLE": turn.role or "",
            "MINDBRIDGE_INSTRUCTIONS": "\n".join(" ".join(line.splitlines()) for line in turn.instructions),
        }

    def _not_started(self, error: OSError | ValueError) -> str:
        program = self._command[0]
        place = self._folder / program
        match error:
            case FileNotFoundError() if not self._folder.is_dir():
                return f"{program} could not be started: its working folder {self._folder} does not exist"
            case FileNotFoundError() if os.sep not in program:
                return f"{program} was not found in any folder of PATH ({self._environ.get('PATH', os.defpath)})"
            case FileNotFoundError() if not place.exists():
                return f"{program} was not found: there is no {place}"
            case FileNotFoundError():
                return (
                    f"{program} could not be started: {place} names an interpreter in its first line that is not there"
                )
            case PermissionError():
                return f"{program} could not be started: permission denied; make it executable (chmod +x)"
            case OSError():
                return f"{program} could not be started: {error.strerror}"
            case _:
                return f"{program} could not be started: {error}"


def _status(status: int) -> str:
    return f"exit status {status}" if status > 0 else f"signal {-status} ({signal.strsignal(-status)})"
