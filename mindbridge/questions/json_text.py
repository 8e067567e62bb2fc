"""The JSON of a block as models write it: where its object ends, how whole it is, and what it says.

Strict JSON first. Repair is for short texts only, and is believed only if it neither lost nor invented anything.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import json_repair

from mindbridge.questions.model import JsonValue

MAX_STRICT_BYTES = 16 * 1024
MAX_REPAIR_BYTES = 4 * 1024
MAX_DEPTH = 20
# json-repair is quadratic in the number of places that it has to guess about.
_MAX_FAULTS = 16

_TOKEN = re.compile(
    r"""
    (?P<space>\s++)
  | (?P<comment>//[^\n]*+ | \#[^\n]*+ | /\*(?:[^*]|\*(?!/))*+(?:\*/)?)
  | (?P<string>
        "(?:[^"\\]|\\.)*+(?P<double>")?
      | [“”„](?:[^“”"\\]|\\.)*+(?P<curly>[“”"])?
      | '(?:[^'\\]|\\.|'(?!\s*+(?:[,:}\]]|\Z)))*+(?P<single>')?
    )
  | (?P<mark>[{}\[\],:])
  | (?P<word>[^\s"'“”„{}\[\],:/\#]++|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_BEFORE_OBJECT = re.compile(r"(?:\s++|//[^\n]*+|\#[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([bfnrt])|(.))", re.DOTALL)
_SYNTAX = re.compile(r"""[\s"'“”„‘’{}\[\],:\\]+""")
# JSON that slipped into a string, as where a quote is missing.
JSON_INSIDE = re.compile(r"""["'“”]\s*+[:\]}]|[\[{]\s*+["'“”]""")
_CLOSERS = {"{": "}", "[": "]"}
# What may be missing at the end of an object that is whole otherwise: its last brace, or the list's bracket too.
_MENDABLE_ENDS = ("}", "]}")

JsonObject: TypeAlias = dict[str, JsonValue]


class UnreadableJsonError(ValueError):
    """The text is no object that can be read for certain; the message says why."""

    repair_tried = False


class CutOffJsonError(UnreadableJsonError):
    """The text ends in the middle of its object."""


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of JSON-like text. `kind` is string, mark, word or comment; `whole` is False for an unclosed string."""

    kind: str
    text: str
    end: int
    whole: bool = True

    def string(self) -> str:
        """What a string token says: its quotes and escapes taken off."""
        return _ESCAPE.sub(_unescaped, self.text[1:-1] if self.whole else self.text[1:])


@dataclass(frozen=True, slots=True)
class FoundObject:
    """An object that was read, and whether its JSON had to be repaired."""

    data: JsonObject
    repaired: bool


@dataclass(frozen=True, slots=True)
class Extent:
    """How far the first object of a text reaches.

    `start` is the place of its brace, None where there is none or a list around it; `end` the place behind its last
    brace, None where the text ends before it, or it is nested too deep. `missing` are the brackets that would close
    it, `in_string` tells that a string is open, `last` is the last character that is neither blank nor comment,
    `depth` the deepest nesting seen.
    """

    start: int | None
    end: int | None = None
    missing: str = ""
    in_string: bool = False
    last: str = ""
    depth: int = 0


def tokens(text: str, start: int = 0, stop: int | None = None) -> Iterator[Token]:
    """Split JSON-like text into its tokens, blanks left out. Never fails; linear in the text."""
    for match in _TOKEN.finditer(text, start, len(text) if stop is None else stop):
        kind = match.lastgroup or "word"
        if kind in {"double", "curly", "single"}:
            kind = "string"
        if kind != "space":
            whole = kind != "string" or bool(match["double"] or match["curly"] or match["single"])
            yield Token(kind, match[0], match.end(), whole)


def object_extent(text: str, start: int = 0, stop: int | None = None) -> Extent:
    """Find the first object in `text[start:stop]` and how far it reaches, whatever its quotes and commas are like."""
    stop = len(text) if stop is None else stop
    skipped = _BEFORE_OBJECT.match(text, start, stop)
    first = skipped.end() if skipped else start
    brace = text.find("{", first, stop)
    if brace < 0 or text.startswith("[", first, stop):
        return Extent(start=None)
    closers: list[str] = []
    depth = 0
    last = ""
    in_string = False
    for token in tokens(text, brace, stop):
        if token.kind == "comment":
            continue
        last = token.text[-1]
        in_string = not token.whole
        if token.kind != "mark":
            continue
        if token.text in _CLOSERS:
            closers.append(_CLOSERS[token.text])
            depth = max(depth, len(closers))
            if depth > MAX_DEPTH:
                break
        elif token.text in closers:
            while closers.pop() != token.text:
                pass
            if not closers:
                return Extent(brace, token.end, depth=depth, last=last)
    return Extent(brace, None, "".join(reversed(closers)), in_string, last, depth)


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
        if not closed or extent.in_string or extent.last in {",", ":"} or extent.missing not in _MENDABLE_ENDS:
            raise CutOffJsonError("its JSON ends in the middle")
        source = f"{source}\n{extent.missing}"
    try:
        value = json.loads(source, strict=False, parse_constant=_refuse_number, parse_float=_finite)
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
    after_value = False
    for token in tokens(source):
        if token.kind == "comment":
            continue
        if token.kind == "mark":
            after_value = False
            continue
        faults += after_value
        after_value = True
        if token.kind == "string":
            parts.append(token.string())
        elif token.text.lstrip("+-") in {"NaN", "Infinity"} or faults > _MAX_FAULTS:
            return None
        else:
            parts.append({"True": "true", "False": "false", "None": "null"}.get(token.text, token.text))
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


def without_surrogates(text: str) -> str:
    """Join surrogate pairs, as JSON escapes write them, and replace what has no partner by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _deepest(source: str) -> int:
    # Repair may see brackets where a string was meant, so all of them count here.
    level = deepest = 0
    for bracket in re.findall(r"[\[\](){}]", source):
        level += 1 if bracket in "[({" else -1
        deepest = max(deepest, level)
    return deepest


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    return " " if match[2] else match[3]


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        _refuse_number(digits)
    return number


def _refuse_number(digits: str) -> NoReturn:
    raise ValueError(f"{digits[:20]} is no finite number")
