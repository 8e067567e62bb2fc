"""The object that a block's JSON says, if that is certain.

Strict JSON first. Repair is for short texts only, and is believed only if it neither lost nor invented anything.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import json_repair

from mindbridge.questions.json_text import (
    JSON_INSIDE,
    MAX_DEPTH,
    MAX_STRICT_BYTES,
    Extent,
    tokens,
    without_comments,
    without_surrogates,
)
from mindbridge.questions.model import JsonValue

MAX_REPAIR_BYTES = 4 * 1024
# json-repair takes some 50 µs a token, and is quadratic in the number of places that it has to guess about.
_MAX_REPAIR_TOKENS = 600
_MAX_FAULTS = 16
# Python converts at most 4,300 digits.
_MAX_DIGITS = 1_000
_SHOWN_DIGITS = 20

# What may be missing at the end of an object that is whole otherwise: its last brace, or the list's bracket too.
_MENDABLE_ENDS = ("}", "]}")
_PLAIN_WORD = re.compile(r"[\w.+-]+")
_NO_NUMBERS = frozenset({"NaN", "Infinity"})
_LITERALS = {"True": "true", "False": "false", "None": "null"}
_SYNTAX = re.compile(r"""[\s"'“”„‘’{}\[\],:\\]+""")

JsonObject: TypeAlias = dict[str, JsonValue]


class UnreadableJsonError(ValueError):
    """The text is no object that can be read for certain; the message says why."""

    repair_tried = False


class CutOffJsonError(UnreadableJsonError):
    """The text ends in the middle of its object."""


@dataclass(frozen=True, slots=True)
class FoundObject:
    """An object that was read, and whether its JSON had to be repaired."""

    data: JsonObject
    repaired: bool


def read_object(text: str, extent: Extent, *, closed: bool, may_repair: bool) -> FoundObject:
    """Read the object that `extent` describes in `text`.

    `closed` tells that the block's closing fence stands behind the text, `may_repair` allows repair.
    Raises `CutOffJsonError` where the text ends in the middle, `UnreadableJsonError` for everything else that
    can't be read for certain: no object, too long, too deep, numbers that are none, a repair that would change it.
    """
    if extent.start is None:
        raise UnreadableJsonError("it holds no JSON object")
    if extent.depth > MAX_DEPTH:
        raise UnreadableJsonError(f"its JSON is nested deeper than {MAX_DEPTH} levels")
    source = text[extent.start : extent.end]
    size = len(source.encode(errors="replace"))
    if size > MAX_STRICT_BYTES:
        raise UnreadableJsonError(f"its JSON has {size} bytes; at most {MAX_STRICT_BYTES} are read")
    if extent.end is None:
        if (
            not closed
            or extent.in_string
            or extent.last in {",", ":", "[", "{"}
            or extent.missing not in _MENDABLE_ENDS
        ):
            raise CutOffJsonError("its JSON ends in the middle")
        source = f"{source}\n{extent.missing}"
    try:
        value = json.loads(
            source, strict=False, parse_constant=_refuse_number, parse_float=_finite, parse_int=_not_too_long
        )
    except json.JSONDecodeError as error:
        if size > MAX_REPAIR_BYTES:
            raise UnreadableJsonError(
                f"its JSON is broken ({error}) and over the {MAX_REPAIR_BYTES} bytes that are repaired",
            ) from error
        if not may_repair:
            raise UnreadableJsonError(f"its JSON is broken ({error}) and too many blocks needed repair") from error
        return FoundObject(_repaired(source, error), repaired=True)
    except ValueError as error:
        raise UnreadableJsonError(f"its JSON has a number that can't be read: {error}") from error
    return FoundObject(value, repaired=False)


def _repaired(source: str, fault: json.JSONDecodeError) -> JsonObject:
    failure = UnreadableJsonError(f"its JSON is broken ({fault})")
    source = without_comments(source)
    expected = _source_essence(source)
    if expected is None or _deepest(source) > MAX_DEPTH:
        raise failure from fault
    failure.repair_tried = True
    try:
        value: Any = json_repair.loads(source, skip_json_loads=True)
    except (ValueError, RecursionError) as error:
        raise failure from error
    said = list(_said(value))
    if not isinstance(value, dict) or _essence("".join(said)) != expected or any(map(JSON_INSIDE.search, said)):
        raise failure from fault
    return value


def _source_essence(source: str) -> str | None:
    """All that the source says without its syntax; None where repair would have to guess too much."""
    parts: list[str] = []
    faults = 0
    before, last = "", "{"
    for count, token in enumerate(tokens(source)):
        mark = token.text if token.kind == "mark" else ""
        if mark == ":":
            faults += last != "" or before not in {"{", ","}
        elif mark == ",":
            faults += last in {",", ":", "{", "["}
        elif not mark:
            faults += last == "" or (token.kind == "word" and not _PLAIN_WORD.fullmatch(token.text))
            faults += token.text.count("'", 1, -1) if token.text.startswith("'") else 0
            parts.append(_LITERALS.get(token.text) or token.string())
        before, last = last, mark
        if count > _MAX_REPAIR_TOKENS or faults > _MAX_FAULTS or token.text.lstrip("+-") in _NO_NUMBERS:
            return None
    return _essence("".join(parts))


def _said(value: JsonValue) -> Iterator[str]:
    """All keys and values, in order, as the source would write them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _said(item)
    elif isinstance(value, list):
        for item in value:
            yield from _said(item)
    else:
        yield json.dumps(value)


def _essence(text: str) -> str:
    return _SYNTAX.sub("", without_surrogates(text))


def _deepest(source: str) -> int:
    # Repair may see brackets where a string was meant, so all of them count here.
    level = deepest = 0
    for bracket in re.findall(r"[\[\](){}]", source):
        level += 1 if bracket in "[({" else -1
        deepest = max(deepest, level)
    return deepest


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        _refuse_number(digits)
    return number


def _not_too_long(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        _refuse_number(digits)
    return int(digits)


def _refuse_number(digits: str) -> NoReturn:
    shown = digits if len(digits) <= _SHOWN_DIGITS else f"{digits[:_SHOWN_DIGITS]}…"
    raise ValueError(f"{shown} is not finite or too long")
