"""`mindbridge check`: reads the configuration and tells what is wrong with it (contract, section 6)."""

import os
import sys
from pathlib import Path

from mindbridge.config.faults import ConfigError, printable
from mindbridge.config.load import load
from mindbridge.config.programs import blame_what_is_absent
from mindbridge.config.schema import Config


def run(path: Path) -> int:
    """Prints one line about a good configuration, or every error to standard error; gives the exit status, 0 or 2."""
    try:
        loaded = load(path, os.environ)
        blame_what_is_absent(loaded.tree, loaded.config, os.environ)
        loaded.tree.refuse_if_faulty()
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{printable(path)}: good: {_summary(loaded.config)}\n")
    return 0


def _summary(config: Config) -> str:
    count = len(config.agents)
    return f"{count} agent{'s' * (count > 1)} ({', '.join(config.agents)}), journal in {printable(config.journal)}"
