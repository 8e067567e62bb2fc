"""The `command` backend with real programs."""

import asyncio
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import pytest

from mindbridge.agents.command import CommandAgent
from mindbridge.agents.failure import AgentFailed
from tests.unit.sample_turn import turn

T = TypeVar("T")

LONG = 60.0  # never reached where a test passes


def agent(
    folder: Path,
    *command: str,
    timeout_seconds: float = LONG,
    environ: Mapping[str, str] | None = None,
    grace_seconds: float = LONG,
) -> CommandAgent:
    return CommandAgent(
        command,
        folder,
        timeout_seconds=timeout_seconds,
        environ=os.environ if environ is None else environ,
        grace_seconds=grace_seconds,
    )


def python(folder: Path, program: str) -> CommandAgent:
    return agent(folder, sys.executable, "-c", program)


def shell(folder: Path, script: str, *, timeout_seconds: float = LONG, grace_seconds: float = LONG) -> CommandAgent:
    (folder / "agent.sh").write_text(f"#!/bin/sh\n{script}")
    return agent(folder, "sh", "agent.sh", timeout_seconds=timeout_seconds, grace_seconds=grace_seconds)


def has_ended(process_id: int) -> bool:
    """A zombie that nobody reaps has ended too."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_beside_the_event_loop_for_the_end_of(process_id: int) -> None:
    """Blocks the event loop meanwhile, so that it hears of output and end at once."""
    for _ in range(2_000):
        if has_ended(process_id):
            return
        time.sleep(0.01)
    pytest.fail("the program did not end")


async def until(condition: Callable[[], T]) -> T:
    for _ in range(2_000):
        if value := condition():
            return value
        await asyncio.sleep(0.01)
    pytest.fail("it did not come to that")


async def all_end(ids: str) -> None:
    await until(lambda: all(has_ended(int(word)) for word in ids.split()))


def finished_text(path: Path) -> str:
    text = path.read_text() if path.exists() else ""
    return text if text.endswith("\n") else ""


async def written(path: Path) -> str:
    """Waits for a file that ends with a newline and gives its text."""
    return await until(lambda: finished_text(path))


async def test_program_gets_the_turn_as_one_line_and_its_output_is_the_reply(tmp_path: Path) -> None:
    message = turn(text="grüße 🚀\nund mehr")

    reply = await agent(tmp_path, "tee", "turn.json").reply(message)

    assert reply == message.model_dump_json()
    assert (tmp_path / "turn.json").read_bytes() == message.model_dump_json().encode() + b"\n"
    assert json.loads(reply)["text"] == "grüße 🚀\nund mehr"


async def test_only_one_newline_is_cut_off_the_reply(tmp_path: Path) -> None:
    assert await shell(tmp_path, "printf ' a\\n\\n'").reply(turn()) == " a\n"


async def test_program_that_says_nothing_gives_an_empty_reply(tmp_path: Path) -> None:
    assert await agent(tmp_path, "true").reply(turn()) == ""


async def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    assert await shell(tmp_path, "printf 'a\\377b'").reply(turn()) == "a�b"


async def test_program_that_does_not_read_a_long_turn_is_no_failure(tmp_path: Path) -> None:
    long = turn(text="x" * 2_000_000)

    assert await agent(tmp_path, "echo", "hello").reply(long) == "hello"


async def test_program_that_closes_its_input_and_goes_on_is_no_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    long = turn(text="x" * 2_000_000)

    assert await shell(tmp_path, "exec 0<&-; echo hello").reply(long) == "hello"
    assert not caplog.records


async def test_program_that_answers_before_it_reads_does_not_block(tmp_path: Path) -> None:
    program = "import sys; sys.stdout.write('y' * 500_000); sys.stdout.flush(); assert len(sys.stdin.read()) > 500_000"

    assert await python(tmp_path, program).reply(turn(text="x" * 500_000)) == "y" * 500_000


async def test_what_a_program_wrote_last_is_read_after_its_end(tmp_path: Path) -> None:
    program = (
        "import fcntl, os, pathlib, time\n"
        "fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1_048_576)\n"
        "pathlib.Path('ids').write_text(f'{os.getpid()}\\n')\n"
        "while not pathlib.Path('go').exists(): time.sleep(0.01)\n"
        "os.write(1, b'y' * 900_000)\n"
    )
    call = asyncio.create_task(python(tmp_path, program).reply(turn()))
    process_id = int(await written(tmp_path / "ids"))

    (tmp_path / "go").touch()
    wait_beside_the_event_loop_for_the_end_of(process_id)

    assert await call == "y" * 900_000


async def test_output_over_the_limit_is_dropped_while_the_program_goes_on(tmp_path: Path) -> None:
    program = "import sys; sys.stdout.write('y' * 5_000_000); sys.stdout.flush(); open('done', 'w').write('yes\\n')"

    reply = await python(tmp_path, program).reply(turn())

    assert reply == "y" * 1_048_576
    assert (tmp_path / "done").read_text() == "yes\n"


async def test_program_finds_its_environment_role_and_instructions(tmp_path: Path) -> None:
    program = (
        "import json, os; "
        "print(json.dumps({k: v for k, v in os.environ.items() if k.startswith(('MINDBRIDGE_', 'OPENAI_'))}))"
    )
    environ = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": "k", "MINDBRIDGE_ROLE": "from outside"}
    message = turn(role="A pirate", instructions=("Be brief.", "Say\narrr."))

    reply = await agent(tmp_path, sys.executable, "-c", program, environ=environ).reply(message)

    assert json.loads(reply) == {
        "OPENAI_API_KEY": "k",
        "MINDBRIDGE_AGENT": "assistant",
        "MINDBRIDGE_TURN_ID": "turn_1",
        "MINDBRIDGE_ROLE": "A pirate",
        "MINDBRIDGE_INSTRUCTIONS": "Be brief.\nSay arrr.",
    }


async def test_role_of_the_surrounding_environment_does_not_show_through(tmp_path: Path) -> None:
    environ = {**os.environ, "MINDBRIDGE_ROLE": "from outside"}

    assert await agent(tmp_path, "printenv", "MINDBRIDGE_ROLE", environ=environ).reply(turn()) == ""


async def test_program_runs_in_the_configurations_folder_in_a_session_of_its_own(tmp_path: Path) -> None:
    program = "import os; print(os.getcwd(), os.getsid(0) == os.getpgrp() == os.getpid())"

    assert await python(tmp_path, program).reply(turn()) == f"{tmp_path} True"


async def test_relative_program_is_looked_up_in_the_configurations_folder(tmp_path: Path) -> None:
    script = tmp_path / "agent"
    script.write_text("#!/bin/sh\necho found\n")
    script.chmod(0o755)

    assert await agent(tmp_path, "./agent").reply(turn()) == "found"


async def test_failing_program_tells_its_exit_status_and_last_line_of_standard_error(tmp_path: Path) -> None:
    with pytest.raises(AgentFailed) as failed:
        await shell(tmp_path, "echo half a reply; echo first >&2; printf 'no \\033[31mkey\\n\\n' >&2; exit 3").reply(
            turn()
        )

    assert str(failed.value) == "sh ended with exit status 3: no �[31mkey"


async def test_unfinished_last_line_of_standard_error_is_told(tmp_path: Path) -> None:
    with pytest.raises(AgentFailed) as failed:
        await shell(tmp_path, "echo first >&2; printf second >&2; exit 1").reply(turn())

    assert str(failed.value) == "sh ended with exit status 1: second"


async def test_program_that_was_killed_tells_the_signal(tmp_path: Path) -> None:
    with pytest.raises(AgentFailed) as failed:
        await shell(tmp_path, "kill -KILL $$").reply(turn())

    assert str(failed.value) == "sh ended with signal 9 (Killed)"


async def test_standard_error_goes_to_the_log_line_by_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mindbridge.agent")

    await shell(tmp_path, "printf 'one\\n\\ntwo \\033[0m\\nthree' >&2").reply(turn())

    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        ("mindbridge.agent", "INFO", f"agent_stderr agent=assistant turn_id=turn_1 {line}")
        for line in ("one", "two �[0m", "three")
    ]


async def test_long_standard_error_is_bounded_in_the_log_and_its_last_line_still_known(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mindbridge.agent")
    program = "import sys; sys.exit('x' * 1_000_000 + '\\n' + 'line\\n' * 10_000 + 'the last')"

    with pytest.raises(AgentFailed, match=r"exit status 1: the last$"):
        await python(tmp_path, program).reply(turn())

    assert len(caplog.records) == 201
    assert caplog.records[-1].getMessage() == "agent_stderr_cut agent=assistant turn_id=turn_1 lines=200"
    assert all(len(record.getMessage()) < 600 for record in caplog.records)


async def test_after_the_timeout_the_program_and_its_child_are_gone(tmp_path: Path) -> None:
    script = "sleep 1000 &\necho $! $$ > ids\necho waiting >&2\nwait"

    with pytest.raises(AgentFailed) as failed:
        await shell(tmp_path, script, timeout_seconds=1.0).reply(turn())

    assert str(failed.value) == "sh gave no reply within 1 s: waiting"
    await all_end(await written(tmp_path / "ids"))


async def test_program_and_child_that_ignore_sigterm_are_killed(tmp_path: Path) -> None:
    script = (
        "trap '' TERM\nsh -c 'trap \"\" TERM; while :; do sleep 1000; done' &\necho $! $$ > ids\nwhile :; do wait; done"
    )

    with pytest.raises(AgentFailed, match="no reply within"):
        await shell(tmp_path, script, timeout_seconds=1.0, grace_seconds=0.2).reply(turn())

    await all_end(await written(tmp_path / "ids"))


async def test_sigterm_comes_first_so_that_a_program_can_tidy_up(tmp_path: Path) -> None:
    script = "trap 'echo tidy > tidied; exit 0' TERM\necho ready > ready\nwhile :; do sleep 0.01; done"
    call = asyncio.create_task(shell(tmp_path, script).reply(turn()))
    await written(tmp_path / "ready")

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert (tmp_path / "tidied").read_text() == "tidy\n"


async def test_cancelled_turn_ends_the_program_and_its_child(tmp_path: Path) -> None:
    call = asyncio.create_task(shell(tmp_path, "sleep 1000 &\necho $! $$ > ids\nwait").reply(turn()))
    ids = await written(tmp_path / "ids")

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    await all_end(ids)


async def test_second_cancellation_kills_at_once(tmp_path: Path) -> None:
    script = "trap 'echo asked > asked' TERM\necho $$ > ids\nwhile :; do sleep 0.01; done"
    call = asyncio.create_task(shell(tmp_path, script).reply(turn()))
    ids = await written(tmp_path / "ids")

    call.cancel()
    await written(tmp_path / "asked")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    await all_end(ids)


async def test_child_that_holds_the_output_open_is_ended_with_the_program(tmp_path: Path) -> None:
    reply = await shell(tmp_path, "sleep 1000 &\necho $! > ids\necho hello").reply(turn())

    assert reply == "hello"
    await all_end((tmp_path / "ids").read_text())


async def test_child_in_a_session_of_its_own_holds_nothing_up(tmp_path: Path) -> None:
    program = (
        "import os, subprocess; "
        "child = subprocess.Popen(['sleep', '1000'], start_new_session=True); print('hello', child.pid)"
    )

    hello, process_id = (await python(tmp_path, program).reply(turn(text="x" * 500_000))).split()

    assert hello == "hello"
    os.kill(int(process_id), signal.SIGKILL)


async def test_program_that_is_nowhere_in_path_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(AgentFailed) as failed:
        await agent(tmp_path, "no-such-program", environ={"PATH": f"{tmp_path}/bin:/bin"}).reply(turn())

    assert str(failed.value) == f"no-such-program was not found in any folder of PATH ({tmp_path}/bin:/bin)"


async def test_missing_program_in_the_folder_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(AgentFailed) as failed:
        await agent(tmp_path, "./agent").reply(turn())

    assert str(failed.value) == f"./agent was not found: there is no {tmp_path}/agent"


async def test_missing_interpreter_is_named_as_the_cause(tmp_path: Path) -> None:
    (tmp_path / "agent").write_text("#!/no/such/interpreter\n")
    (tmp_path / "agent").chmod(0o755)

    with pytest.raises(AgentFailed, match="interpreter in its first line"):
        await agent(tmp_path, "./agent").reply(turn())


async def test_program_without_execute_permission_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "agent").write_text("#!/bin/sh\n")

    with pytest.raises(AgentFailed, match="chmod"):
        await agent(tmp_path, "./agent").reply(turn())


async def test_missing_working_folder_is_named_as_the_cause(tmp_path: Path) -> None:
    with pytest.raises(AgentFailed, match=r"working folder .*/away does not exist"):
        await agent(tmp_path / "away", "true").reply(turn())


async def test_argument_that_no_program_can_get_is_a_failure_of_the_turn(tmp_path: Path) -> None:
    with pytest.raises(AgentFailed, match="could not be started"):
        await agent(tmp_path, "echo", "a\0b").reply(turn())


def open_files() -> list[str]:
    return sorted(file.name for file in Path("/proc/self/fd").iterdir())


async def test_no_file_descriptor_is_left_open(tmp_path: Path) -> None:
    before = open_files()

    for command in (["echo"], ["false"], ["no-such-program"]):
        call = agent(tmp_path, *command).reply(turn())
        await asyncio.gather(call, return_exceptions=True)

    assert open_files() == before


async def test_turns_at_once_keep_their_replies_apart(tmp_path: Path) -> None:
    echo = agent(tmp_path, "cat")
    messages = [turn(turn_id=f"turn_{number}") for number in range(10)]

    replies = await asyncio.gather(*(echo.reply(message) for message in messages))

    assert replies == [message.model_dump_json() for message in messages]
