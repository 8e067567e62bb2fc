"""A question's life: one table of states and events."""

from enum import StrEnum


class State(StrEnum):
    """Where a question is in its life; the last three are final."""

    POSTING = "posting"
    OPEN = "open"
    ANSWERED = "answered"
    SUPERSEDED = "superseded"
    FAILED = "failed"


class Happening(StrEnum):
    """What can happen to a question."""

    SEEN = "seen"
    ANSWERED = "answered"
    ASKED_ANEW = "asked_anew"
    REFUSED = "refused"


_NEXT: dict[tuple[State, Happening], State] = {
    (State.POSTING, Happening.SEEN): State.OPEN,
    (State.POSTING, Happening.ASKED_ANEW): State.SUPERSEDED,
    (State.POSTING, Happening.REFUSED): State.FAILED,
    (State.OPEN, Happening.ANSWERED): State.ANSWERED,
    (State.OPEN, Happening.ASKED_ANEW): State.SUPERSEDED,
}


def after(state: State, happening: Happening) -> State:
    """The state that follows; the same state where the happening changes nothing.

    A question can be answered only once it was seen in the room, and nothing changes a final state.
    """
    return _NEXT.get((state, happening), state)
