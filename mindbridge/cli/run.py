"""`mindbridge run`: the bridge itself."""

import asyncio
import os
import sys
from pathlib import Path

from mindbridge.agents.backend import BackendUnusable
from mindbridge.app import run_bridge
from mindbridge.cli.logs import set_up_logging
from mindbridge.config.faults import ConfigError
from mindbridge.config.load import load_config
from mindbridge.journal.database import JournalError


def run(path: Path, *, reset_identity: str | None = None) -> int:
    """Runs the bridge until it is told to stop.

    Args:
        path: the configuration.
        reset_identity: the agent whose account gets a new cross-signing identity.

    Returns:
        0 after a clean stop, 1 when it failed, 2 when the configuration is wrong.
    """
    try:
        config = load_config(path, os.environ)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    if reset_identity is not None and reset_identity not in config.agents:
        print(f"--reset-identity {reset_identity}: {path} has no agent of this name", file=sys.stderr)
        return 2
    set_up_logging(sys.stderr)
    try:
        return asyncio.run(run_bridge(config, reset_identity=reset_identity))
    except (BackendUnusable, JournalError) as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, BackendUnusable) else 1
