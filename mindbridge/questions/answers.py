"""Reading and judging an answer (contract, section 4)."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from mindbridge.questions.lifecycle import State
from mindbridge.questions.model import DEFAULT_LABEL, Option

_NUMBER = re.compile(r"(?:option\s+)?([0-9]+)[.)]?", re.ASCII)
_KEYCAP = re.compile(r"([0-9])\ufe0f?\u20e3")
_FALLBACK = re.compile(r"> (?:\* )?<[^>\n]+>")
_TEN = "\U0001f51f"
_MOST_DIGITS = 2
_LONGEST_ANSWER = 1024


class Verdict(StrEnum):
    """What became of an event that could have been an answer; stable once released."""

    SELECTED = "selected"
    SAME_OPTION = "same_option"
    ALREADY_ANSWERED = "already_answered"
    SUPERSEDED = "superseded"
    NOT_ALLOWED = "not_allowed"
    NOT_ANSWERER = "not_answerer"
    NOT_A_PERSON = "not_a_person"
    EDITED = "edited"
    WITHDRAWN = "withdrawn"
    UNKNOWN_QUESTION = "unknown_question"
    NOT_AN_OPTION = "not_an_option"
    QUESTION_CLOSED = "question_closed"


TOLD = frozenset({Verdict.ALREADY_ANSWERED, Verdict.NOT_ANSWERER, Verdict.SUPERSEDED})
"""The verdicts that the person who tried is told about."""


_CLOSED = {State.SUPERSEDED: Verdict.SUPERSEDED, State.CLOSED: Verdict.QUESTION_CLOSED}


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt to answer a known question with one of its options.

    `is_person` is false for agents, bots and notices; `allowed` and `may_answer` say whether the sender is in
    `access.users` and among the question's `answerers`; `withdrawn`: it was redacted before it was admitted.
    """

    number: int
    is_person: bool
    allowed: bool
    may_answer: bool
    withdrawn: bool


def judge(state: State, taken_number: int | None, attempt: Try) -> Verdict:
    """What becomes of `attempt` on a question in `state`; `taken_number` is the option of the answer already taken."""
    if not attempt.is_person:
        return Verdict.NOT_A_PERSON
    if not attempt.allowed:
        return Verdict.NOT_ALLOWED
    if attempt.withdrawn:
        return Verdict.WITHDRAWN
    if not attempt.may_answer:
        return Verdict.NOT_ANSWERER
    if state is State.OPEN:
        return Verdict.SELECTED
    if state is State.ANSWERED:
        return Verdict.SAME_OPTION if attempt.number == taken_number else Verdict.ALREADY_ANSWERED
    return _CLOSED.get(state, Verdict.UNKNOWN_QUESTION)


def may_answer(answerers: Literal["anyone", "requester"] | Sequence[str], requester: str, sender: str) -> bool:
    """Whether `sender` is among a question's `answerers`, as configured."""
    if answerers == "anyone":
        return True
    if answerers == "requester":
        return sender == requester
    return sender in answerers


def strip_reply_fallback(text: str) -> str:
    """`text` without the quote that some clients put before a reply (Matrix spec, rich replies).

    Such a quote names whom it quotes; other lines that begin with `>` are the writer's own.
    """
    if not _FALLBACK.match(text):
        return text
    lines = text.split("\n")
    quoted = next((index for index, line in enumerate(lines) if not line.startswith(">")), len(lines))
    rest = lines[quoted:]
    return "\n".join(rest[1:] if rest and not rest[0].strip() else rest)


def normalise(text: str) -> str:
    """Typed text as it is compared: NFKC, trimmed, casefolded."""
    return unicodedata.normalize("NFKC", text).strip().casefold()


def typed_number(text: str) -> int | None:
    """The number that a typed message is (`2`, `2.`, `2)`, `２`, `2️⃣`, `option 2`), or None."""
    if len(text) > _LONGEST_ANSWER:
        return None
    plain = normalise(text)
    if plain == _TEN:
        return 10
    if keycap := _KEYCAP.fullmatch(plain):
        return int(keycap[1])
    match = _NUMBER.fullmatch(plain)
    return int(match[1]) if match and len(match[1]) <= _MOST_DIGITS and not match[1].startswith("0") else None


def option_typed(options: Sequence[Option], text: str, *, labels: bool) -> Option | None:
    """The option that a typed message names: by its number, with `labels` also by exactly its label.

    A label counts only where one option has it and it is neither a number nor the default label.
    """
    number = typed_number(text)
    if number is not None:
        return next((option for option in options if option.number == number), None)
    if not labels or len(text) > _LONGEST_ANSWER * 8:
        return None
    plain = normalise(text)
    if not plain or plain == DEFAULT_LABEL.casefold() or _NUMBER.fullmatch(plain):
        return None
    named = [option for option in options if normalise(option.label) == plain]
    return named[0] if len(named) == 1 else None
