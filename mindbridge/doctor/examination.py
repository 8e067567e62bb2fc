"""All checks of a configuration, in the order in which they are told."""

import asyncio
import time
from collections.abc import Sequence

from mindbridge.config.faults import Fault
from mindbridge.config.schema import Config
from mindbridge.doctor.account import Account
from mindbridge.doctor.backend import backend_check
from mindbridge.doctor.findings import Finding, Status, told
from mindbridge.doctor.homeserver import homeserver_checks
from mindbridge.doctor.records import FAILED_FOR_MS, deliveries_check, no_record, rate_limit_check, turns_check
from mindbridge.doctor.storage import disk_check, home_fault, journal_check
from mindbridge.ids import AgentName, UserId
from mindbridge.journal.condition import NEWEST_VERSION, AgentRecord, Condition, examine, running_bridge
from mindbridge.journal.database import JournalError


async def examination(config: Config, faults: Sequence[Fault], options: str) -> list[Finding]:
    """Looks at all that a bridge with this configuration needs, also beside one that runs.

    Args:
        config: the configuration.
        faults: what it names and is not there.
        options: those of the command line that name the configuration, for the commands in advice.

    Returns:
        What was found: of all agents first, then of each. An account is left out where its homeserver does not answer.
    """
    fault = home_fault(config.journal)
    (server, *clock), (journal, records) = await asyncio.gather(
        homeserver_checks(config.homeserver), asyncio.to_thread(_journal, config, fault)
    )
    findings = [server, *clock, journal, disk_check(config.journal)]
    agents = [AgentName(name) for name in config.agents]
    accounts: Sequence[tuple[Finding, ...]] = [()] * len(agents)
    if server.status is not Status.FAIL:
        of_agents = (Account(config.homeserver, each, config.agents[each], config.journal) for each in agents)
        accounts = await asyncio.gather(*(each.checks(may_log_in=fault is None) for each in of_agents))
    for agent, of_account in zip(agents, accounts, strict=True):
        findings += of_account
        if records is not None:
            findings += _record_checks(config, agent, records, options)
        findings.append(backend_check(agent, config.agents[agent].backend, faults))
    return findings


def _journal(config: Config, fault: Finding | None) -> tuple[Finding, Sequence[AgentRecord] | None]:
    """What to say of the journal, and what it knows of agents; None where that can't be read."""
    condition: Condition | None = None
    try:
        condition = examine(config.journal, _now_ms() - FAILED_FOR_MS)
    except JournalError as error:
        return fault or told("journal", None, error), None
    finding = fault or journal_check(config.journal, condition, running_bridge(config.journal))
    if condition is not None and condition.version != NEWEST_VERSION:
        return finding, None
    return finding, () if condition is None else condition.agents


def _record_checks(config: Config, agent: AgentName, records: Sequence[AgentRecord], options: str) -> list[Finding]:
    user_id = UserId(config.agents[agent].account.user_id)
    of_agent = (each for each in records if (each.agent, each.user_id) == (agent, user_id))
    record = next(of_agent, no_record(agent, user_id))
    return [
        rate_limit_check(record, _now_ms()),
        turns_check(record, options),
        deliveries_check(record, options),
    ]


def _now_ms() -> int:
    return round(time.time() * 1_000)
