"""Which backend a configuration asks for."""

import sys
from pathlib import Path

import pytest

from mindbridge.agents.backend import AgentFailed, Backend, BackendUnusable, make_backend
from mindbridge.agents.demo import demo_reply
from mindbridge.config.schema import AgentConfig
from tests.unit.sample_turn import turn


def backend(folder: Path, **settings: object) -> Backend:
    agent = {"account": {"user_id": "@assistant:example.org"}, "backend": settings}
    return make_backend(AgentConfig.model_validate(agent), folder)


async def test_command_runs_in_the_folder_with_the_bridges_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the key")
    made = backend(tmp_path, type="command", command=("sh", "-c", "pwd; echo $OPENAI_API_KEY"))

    assert await made.reply(turn()) == f"{tmp_path}\nthe key"


async def test_commands_timeout_is_the_configurations(tmp_path: Path) -> None:
    made = backend(tmp_path, type="command", command=("sleep", "1000"), timeout="10ms")

    with pytest.raises(AgentFailed, match=r"^sleep gave no reply within 0\.01 s$"):
        await made.reply(turn())


async def test_python_function_is_imported_once_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    module = tmp_path / "agent_imported_once.py"
    module.write_text("def reply(turn): return turn.text")

    made = backend(tmp_path, type="python", python="agent_imported_once:reply")
    module.unlink()

    assert await made.reply(turn()) == "hello"


async def test_python_functions_timeout_is_the_configurations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "agent_that_hangs.py").write_text("import asyncio\nasync def reply(turn): await asyncio.Event().wait()")
    made = backend(tmp_path, type="python", python="agent_that_hangs:reply", timeout="10ms")

    with pytest.raises(AgentFailed, match=r"no reply within 0\.01 s"):
        await made.reply(turn())


def test_python_function_that_is_not_there_is_told_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())

    with pytest.raises(BackendUnusable, match="no_such_agent"):
        backend(tmp_path, type="python", python="no_such_agent:reply")


async def test_demo_needs_nothing(tmp_path: Path) -> None:
    assert await backend(tmp_path, type="demo").reply(turn()) == demo_reply(turn())
