"""What the journal knows of an agent: its account's limits, turns and deliveries that failed."""

import json

from mindbridge.bridge.budget import LEARNED_FOR_MS, Budget
from mindbridge.doctor.findings import Finding, Status
from mindbridge.ids import AgentName, UserId
from mindbridge.journal.condition import AgentRecord

FAILED_FOR_MS = 7 * 24 * 60 * 60 * 1_000
"""A delivery that failed longer ago than this is no news."""


def no_record(agent: AgentName, user_id: UserId) -> AgentRecord:
    """The record of an agent that the journal does not know yet."""
    return AgentRecord(agent, user_id, wait_until=0, limited_at=0, budget=None, parked=0, refused=0, uncertain=0)


def rate_limit_check(record: AgentRecord, now_ms: int) -> Finding:
    """Whether the homeserver limited the account lately. A server tells its limits only by refusing."""
    ago_ms = abs(now_ms - record.limited_at)
    if not record.limited_at or ago_ms > LEARNED_FOR_MS:
        return Finding("rate_limit", record.agent, Status.OK, "the account was not limited within the last 24 hours")
    found = f"the homeserver limited the account {_in_words(ago_ms)} ago"
    if record.budget is not None:
        budget = Budget(**json.loads(record.budget))
        found += f"; it takes about {budget.burst:.0f} events at once, then one in {1 / budget.per_second:.1f} s"
    if record.wait_until > now_ms:
        found += f"; nothing is sent for another {_in_words(record.wait_until - now_ms)}"
    advice = (
        "an admin of a Synapse lifts it for this account with "
        f"`POST /_synapse/admin/v1/users/{record.user_id}/override_ratelimit` and "
        '`{"messages_per_second": 0, "burst_count": 0}`, or for all with `rc_message` in homeserver.yaml'
    )
    return Finding("rate_limit", record.agent, Status.WARN, found, advice)


def turns_check(record: AgentRecord, options: str) -> Finding:
    """Whether turns are parked; `options` are those of the command line that lists them."""
    if not record.parked:
        return Finding("turns", record.agent, Status.OK, "none is parked")
    found = f"{record.parked} {'is' if record.parked == 1 else 'are'} parked: the agent's program failed"
    advice = (
        f"`mindbridge journal status{options}` shows why; mend the program, then "
        f"`mindbridge journal retry{options} TURN`"
    )
    return Finding("turns", record.agent, Status.WARN, found, advice)


def deliveries_check(record: AgentRecord, options: str) -> Finding:
    """Whether deliveries failed lately; `options` are those of the command line that lists them."""
    if not record.refused and not record.uncertain:
        return Finding("deliveries", record.agent, Status.OK, "none was refused or uncertain within the last 7 days")
    found = f"{record.refused} refused and {record.uncertain} uncertain within the last 7 days"
    advice = f"`mindbridge journal status{options}` shows each with the homeserver's reason"
    return Finding("deliveries", record.agent, Status.WARN, found, advice)


def _in_words(milliseconds: int) -> str:
    seconds = round(milliseconds / 1_000)
    if seconds < 120:  # noqa: PLR2004 - two minutes
        return f"{seconds} s"
    minutes = round(seconds / 60)
    return f"{minutes} minutes" if minutes < 120 else f"{round(minutes / 60)} hours"  # noqa: PLR2004 - two hours
