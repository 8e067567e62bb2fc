"""`mindbridge doctor`: whether all that the bridge needs is there, and what to do where it is not."""

import asyncio
import json
import logging
import os
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from mindbridge.agents.failure import one_line
from mindbridge.config.faults import ConfigError
from mindbridge.config.load import load
from mindbridge.config.programs import blame_what_is_absent
from mindbridge.config.schema import Config
from mindbridge.doctor.examination import examination
from mindbridge.doctor.findings import Finding, Status

_WORDS = {Status.FAIL: "failed", Status.WARN: "to look at", Status.OK: "good"}


def run(path: Path, *, as_json: bool) -> int:
    """Prints what was found.

    Args:
        path: the configuration.
        as_json: whether to print JSON.

    Returns:
        0 when nothing failed, 1 when something did, 2 when the configuration is wrong.
    """
    try:
        loaded = load(path, os.environ)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    blame_what_is_absent(loaded.tree, loaded.config, os.environ)
    logging.getLogger().addHandler(logging.NullHandler())  # what is logged on the way is told by the findings
    options = "" if path == Path("config.yaml") else f" -c {shlex.quote(str(path))}"
    findings = asyncio.run(examination(loaded.config, loaded.tree.faults, options))
    try:
        if as_json:
            print(json.dumps({"checks": [asdict(each) for each in findings]}, ensure_ascii=False))
        else:
            print(*lines(loaded.config, findings), sep="\n")
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has had enough; what is left in the buffer must go somewhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(any(each.status is Status.FAIL for each in findings))


def lines(config: Config, findings: Sequence[Finding]) -> list[str]:
    """The findings for people: those of all agents, those of each under its name, and a line that sums them up."""
    width = max(len(_name(each)) for each in findings)
    shown: list[str] = []
    agent = None
    for each in findings:
        if each.agent is not None and each.agent != agent:
            agent = each.agent
            shown += ["", f"{agent} ({config.agents[agent].account.user_id})"]
        shown.append(f"{each.status:<4}  {_name(each):<{width}}  {one_line(each.found)}")
        if each.advice is not None:
            shown.append(f"{'':<{width + 6}}  -> {one_line(each.advice)}")
    numbers = Counter(each.status for each in findings)
    summary = ", ".join(f"{numbers[status]} {words}" for status, words in _WORDS.items() if numbers[status])
    return [*shown, "", summary]


def _name(finding: Finding) -> str:
    return finding.name.replace("_", " ")
