"""Where a crash can fall: every commit to the journal, every call of an agent, every event sent, by name.

Each member is used at one place in the code, which `tests/unit/test_steps.py` checks. `reached` does nothing but tell a
watcher; `tests/live/killed_bridge.py` sets one that ends the process there.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Literal

Side = Literal["before", "after"]


class Step(StrEnum):
    """A commit, except for `CALL_AGENT` and the sends of each kind of event (`SEND_...`)."""

    # At a start.
    PREPARE = "prepare"
    CLOSE_REMOVED = "close_removed"
    RECORD_ACCOUNT = "record_account"
    REQUEUE_PARKED = "requeue_parked"
    FORGET = "forget"

    # What comes in.
    ADMIT = "admit"
    MARK_GAP = "mark_gap"
    CLOSE_COMPARED = "close_compared"
    RECORD_MEMBERSHIP = "record_membership"
    TELL_UNREAD = "tell_unread"
    SETTLE_UPGRADE = "settle_upgrade"

    # A turn.
    START_TURN = "start_turn"
    CALL_AGENT = "call_agent"
    END_TURN = "end_turn"
    DELAY_TURN = "delay_turn"
    PARK_TURN = "park_turn"
    RETRY_TURN = "retry_turn"

    # What goes out: the journal's side, then what is sent.
    CLAIM = "claim"
    ACKNOWLEDGE = "acknowledge"
    FIND = "find"
    REFUSE = "refuse"
    HOLD = "hold"
    LEARN = "learn"
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
