"""Where a crash can fall: every commit to the journal, every call of an agent, every event sent, by name.

Each member is used at one place in the code. `reached` does nothing but tell a watcher, which tests set to end the
process there.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Literal

Side = Literal["before", "after"]


class Step(StrEnum):
    """A commit (until `RETRY_TURN`), then a call of an agent, then each kind of event that is sent."""

    RECORD_ACCOUNT = "record_account"
    CLOSE_REMOVED = "close_removed"
    ADMIT = "admit"
    RECORD_MEMBERSHIP = "record_membership"
    REQUEUE_PARKED = "requeue_parked"
    START_TURN = "start_turn"
    END_TURN = "end_turn"
    DELAY_TURN = "delay_turn"
    PARK_TURN = "park_turn"
    CLAIM = "claim"
    FIND = "find"
    ACKNOWLEDGE = "acknowledge"
    REFUSE = "refuse"
    HOLD = "hold"
    LEARN = "learn"
    MARK_GAP = "mark_gap"
    PREPARE = "prepare"
    CLOSE_OTHERWISE = "close_otherwise"
    FORGET = "forget"
    RETRY_TURN = "retry_turn"
    CALL_AGENT = "call_agent"
    SEND_MESSAGE = "send_message"
    SEND_NOTICE = "send_notice"
    SEND_BUTTON = "send_button"
    SEND_EDIT = "send_edit"
    SEND_REDACTION = "send_redaction"


def _nobody(_step: Step, _side: Side) -> None:
    """Takes no notice."""


watcher: Callable[[Step, Side], None] = _nobody


def reached(step: Step, side: Side) -> None:
    """Tells the watcher that the process is right before or right after a step."""
    watcher(step, side)
