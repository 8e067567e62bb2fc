"""The fields of a block's JSON object and their defaults (contract, section 3)."""

import json
import re
from collections.abc import Sequence
from typing import TypeAlias

from mindbridge.questions.emoji_keys import MAX_OPTIONS, buttons_for, emoji_of_field
from mindbridge.questions.json_object import JsonObject
from mindbridge.questions.json_text import without_surrogates
from mindbridge.questions.model import (
    DEFAULT_EMOJI,
    DEFAULT_LABEL,
    DEFAULT_QUESTION,
    UNREADABLE,
    JsonValue,
    Option,
    PlainQuestion,
    Problem,
    ProblemCode,
    Question,
)

MAX_METADATA_BYTES = 8_000

_LINE_ENDS = re.compile(r"\r\n|[\r\v\f\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]+")
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
# Marks that turn the direction of text, or show nothing: with them one text could pass for another.
_INVISIBLE = re.compile("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]+")

# The places of options in the list as it was written, from 1, and their fields.
_Places: TypeAlias = list[tuple[int, JsonObject]]


def question_of(data: JsonObject, name: str, max_options: int) -> tuple[Question | PlainQuestion, tuple[Problem, ...]]:
    """Read the object of a block as a question; `name` is what the block is called in problems.

    Gives a `PlainQuestion` where it can't be live: without an option, or too large to be sent with its metadata.
    """
    text = many_lines(_scalar(data.get("question")))
    places, skipped = _usable_options(data.get("options"))
    if not places:
        message = f"{name}: `options` must be a list with at least one option; it was shown without buttons"
        return PlainQuestion(text or UNREADABLE), (Problem(ProblemCode.BLOCK_UNREADABLE, message),)
    problems: list[Problem] = []
    if skipped or len(places) > max_options:
        problems.append(_options_left_out(name, places, skipped, max_options))
    places = places[:max_options]
    emojis = [emoji_of_field(fields.get("emoji"), number) for number, (_, fields) in enumerate(places, 1)]
    if replaced := [place for (place, _), field in zip(places, emojis, strict=True) if field.replaced]:
        message = (
            f"{name}: the `emoji` of {_named(replaced)} was replaced by {DEFAULT_EMOJI}; "
            "it must be exactly one emoji, and a keycap only of the option's own number"
        )
        problems.append(Problem(ProblemCode.EMOJI_REPLACED, message))
    shown = [field.emoji for field in emojis]
    options = tuple(
        _option(number, fields, emoji, button)
        for number, ((_, fields), emoji, button) in enumerate(zip(places, shown, buttons_for(shown), strict=True), 1)
    )
    question = Question(text or DEFAULT_QUESTION, options)
    size = _metadata_bytes(question)
    if size > MAX_METADATA_BYTES:
        message = (
            f"{name}: its question, labels and values have {size} bytes as JSON; "
            f"with more than {MAX_METADATA_BYTES} it was shown without buttons"
        )
        problems.append(Problem(ProblemCode.METADATA_TOO_LARGE, message))
        return plain_question(question), tuple(problems)
    return question, tuple(problems)


def plain_question(question: Question) -> PlainQuestion:
    """The question as text that asks nothing: without numbers and instruction."""
    return PlainQuestion(
        question.text,
        tuple(
            f"{option.emoji} {option.label}" + (f" – {option.description}" if option.description else "")
            for option in question.options
        ),
    )


def one_line(text: str) -> str:
    """The text on one line, so that no label looks like two options; without what can't be seen."""
    return _BLANKS.sub(" ", _INVISIBLE.sub("", without_surrogates(text))).strip()


def many_lines(text: str) -> str:
    """The text with line feeds as its only line ends, and without control characters or what can't be seen."""
    lines = _LINE_ENDS.sub("\n", _INVISIBLE.sub("", without_surrogates(text))).replace("\t", " ")
    return _CONTROLS.sub("", lines).strip()


def _option(number: int, fields: JsonObject, emoji: str, button: str) -> Option:
    label = one_line(_scalar(fields.get("label"))) or DEFAULT_LABEL
    value = fields.get("value")
    return Option(
        number=number,
        emoji=emoji,
        label=label,
        value=label.lower() if value is None else _clean_value(value),
        button=button,
        description=one_line(_scalar(fields.get("description"))) or None,
    )


def _usable_options(field: JsonValue) -> tuple[_Places, list[int]]:
    """The options that are objects or labels, and the places of what is neither."""
    places: _Places = []
    skipped: list[int] = []
    for place, option in enumerate(field if isinstance(field, list) else [], 1):
        if isinstance(option, dict):
            places.append((place, option))
        elif isinstance(option, list) or option is None:
            skipped.append(place)
        else:
            places.append((place, {"label": option}))
    return places, skipped


def _options_left_out(name: str, places: _Places, skipped: Sequence[int], max_options: int) -> Problem:
    reasons = []
    if skipped:
        reasons.append(f"{_named(skipped)} left out: an option is an object or a label")
    if surplus := [place for place, _ in places[max_options:]]:
        reasons.append(f"{_named(surplus)} left out: at most {max_options} options count")
    return Problem(ProblemCode.OPTIONS_TRUNCATED, f"{name}: {'; '.join(reasons)}")


def _named(places: Sequence[int]) -> str:
    if len(places) == 1:
        return f"option {places[0]}"
    if places[-1] - places[0] == len(places) - 1:
        return f"options {places[0]} to {places[-1]}"
    shown = ", ".join(map(str, places[:MAX_OPTIONS]))
    return f"options {shown}" + (" and more" if len(places) > MAX_OPTIONS else "")


def _scalar(value: JsonValue) -> str:
    """The value as text; empty for null, lists and objects."""
    if isinstance(value, str):
        return value
    return "" if value is None or isinstance(value, list | dict) else json.dumps(value)


def _clean_value(value: JsonValue) -> JsonValue:
    """The value without lone surrogates, which no message can carry."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list):
        return [_clean_value(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(key): _clean_value(item) for key, item in value.items()}
    return value


def _metadata_bytes(question: Question) -> int:
    options = [
        {"number": option.number, "emoji": option.emoji, "label": option.label, "value": option.value}
        for option in question.options
    ]
    metadata = {"question_text": question.text, "options": options}
    return len(json.dumps(metadata, ensure_ascii=True, separators=(",", ":")))
