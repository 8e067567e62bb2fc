"""A question's life: one table of states and events."""

from enum import StrEnum


class State(StrEnum):
    """Where a question is in its life; the last four are final."""

    POSTING = "posting"
    OPEN = "open"
    ANSWERED = "answered"
    SUPERSEDED = "superseded"
    FAILED = "failed"
    CLOSED = "closed"


class Happening(StrEnum):
    """What can happen to a question. `closed`: it was redacted, or its room or agent is no longer there."""

    SEEN = "seen"
    ANSWERED = "answered"
    ASKED_ANEW = "asked_anew"
    REFUSED = "refused"
    CLOSED = "closed"


_NEXT: dict[tuple[State, Happening], State] = {
    (State.POSTING, Happening.SEEN): State.OPEN,
    (State.POSTING, Happening.ASKED_ANEW): State.SUPERSEDED,
    (State.POSTING, Happening.REFUSED): State.FAILED,
    (State.POSTING, Happening.CLOSED): State.CLOSED,
    (State.OPEN, Happening.ANSWERED): State.ANSWERED,
    (State.OPEN, Happening.ASKED_ANEW): State.SUPERSEDED,
    (State.OPEN, Happening.CLOSED): State.CLOSED,
}


def after(state: State, happening: Happening) -> State:
    """The state that follows; the same state where the happening changes nothing.

    A question can be answered only once it was seen in the room, and nothing changes a final state.
    """
    return _NEXT.get((state, happening), state)
