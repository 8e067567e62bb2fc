"""Configuration files for tests, and what is wrong with them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from mindbridge.config.faults import ConfigError, Fault
from mindbridge.config.load import load_config
from mindbridge.config.schema import AgentConfig, Config

SMALL = """\
homeserver: https://matrix.example.org
access:
  users: ["@alice:example.org"]
agents:
  one:
    account:
      user_id: "@one:example.org"
      password: secret-one
    backend:
      type: demo
"""


def with_agent_key(line: str) -> str:
    """The small file with a line more in its agent: line 11, keys in column 5."""
    return f"{SMALL}    {line}\n"


def with_account(*lines: str) -> str:
    """The small file with other lines from its account's password on: line 8, keys in column 7."""
    return SMALL.replace("      password: secret-one\n", "".join(f"      {line}\n" for line in lines))


def with_backend(*lines: str) -> str:
    """The small file with another backend: from line 10 on, keys in column 7."""
    return SMALL.replace("      type: demo\n", "".join(f"      {line}\n" for line in lines))


def write(folder: Path, text: str | bytes) -> Path:
    file = folder / "config.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def load_text(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> Config:
    return load_config(write(folder, text), environ or {})


def load_agent(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> AgentConfig:
    return load_text(folder, text, environ).agents["one"]


def refusal(folder: Path, text: str | bytes, environ: Mapping[str, str] | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_config(write(folder, text), environ or {})
    return caught.value


def places(error: ConfigError) -> list[tuple[int, int, str]]:
    return [(fault.line, fault.column, fault.path) for fault in error.faults]


def only_fault(folder: Path, text: str | bytes, environ: Mapping[str, str] | None = None) -> Fault:
    error = refusal(folder, text, environ)
    assert len(error.faults) == 1, str(error)
    return error.faults[0]
