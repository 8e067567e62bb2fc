"""A question's life, cell by cell."""

import pytest

from mindbridge.questions.lifecycle import Happening, State, after

TABLE = {
    State.POSTING: {
        Happening.SEEN: State.OPEN,
        Happening.ANSWERED: State.POSTING,
        Happening.ASKED_ANEW: State.SUPERSEDED,
        Happening.REFUSED: State.FAILED,
        Happening.CLOSED: State.CLOSED,
    },
    State.OPEN: {
        Happening.SEEN: State.OPEN,
        Happening.ANSWERED: State.ANSWERED,
        Happening.ASKED_ANEW: State.SUPERSEDED,
        Happening.REFUSED: State.OPEN,
        Happening.CLOSED: State.CLOSED,
    },
    State.ANSWERED: {
        Happening.SEEN: State.ANSWERED,
        Happening.ANSWERED: State.ANSWERED,
        Happening.ASKED_ANEW: State.ANSWERED,
        Happening.REFUSED: State.ANSWERED,
        Happening.CLOSED: State.ANSWERED,
    },
    State.SUPERSEDED: {
        Happening.SEEN: State.SUPERSEDED,
        Happening.ANSWERED: State.SUPERSEDED,
        Happening.ASKED_ANEW: State.SUPERSEDED,
        Happening.REFUSED: State.SUPERSEDED,
        Happening.CLOSED: State.SUPERSEDED,
    },
    State.FAILED: {
        Happening.SEEN: State.FAILED,
        Happening.ANSWERED: State.FAILED,
        Happening.ASKED_ANEW: State.FAILED,
        Happening.REFUSED: State.FAILED,
        Happening.CLOSED: State.FAILED,
    },
    State.CLOSED: {
        Happening.SEEN: State.CLOSED,
        Happening.ANSWERED: State.CLOSED,
        Happening.ASKED_ANEW: State.CLOSED,
        Happening.REFUSED: State.CLOSED,
        Happening.CLOSED: State.CLOSED,
    },
}
CELLS = [(state, happening) for state in State for happening in Happening]


def test_the_table_has_a_cell_for_every_state_and_happening() -> None:
    assert {(state, happening) for state, row in TABLE.items() for happening in row} == set(CELLS)


@pytest.mark.parametrize(("state", "happening"), CELLS, ids=str)
def test_what_happens_to_a_question_leads_to_the_state_in_the_table(state: State, happening: Happening) -> None:
    assert after(state, happening) is TABLE[state][happening]


def test_only_an_open_question_can_become_answered() -> None:
    assert {state for state, happening in CELLS if after(state, happening) is State.ANSWERED != state} == {State.OPEN}
