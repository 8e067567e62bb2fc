"""The JSON of a block as models write it, whatever its quotes, commas and comments: tokens and the first object."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

MAX_STRICT_BYTES = 16 * 1024
MAX_DEPTH = 20

_STRINGS = r"""
    (?P<comment>//[^\n]*+ | \#[^\n]*+ | /\*(?>(?:[^*]|\*(?!/))*)(?:\*/)?)
  | (?P<string>
        "(?>(?:[^"\\]|\\.)*)"
      | [“”„](?>(?:[^“”"\\]|\\.)*)[“”"]
      | '(?>(?:[^'\\]|\\.|'(?!\s*+(?:[,:}\]]|\Z)))*)'
    )
  | (?P<open_string>["“”„'].*+)
"""
_TOKEN = re.compile(
    _STRINGS + r"| (?P<mark>[{}\[\],:]) | (?P<word>[^\s\"'“”„{}\[\],:/\#]++ | [^\s])",
    re.VERBOSE | re.DOTALL,
)
# The same, as coarse as brackets allow.
_BRACKET_TOKEN = re.compile(
    _STRINGS + r"| (?P<bracket>[{}\[\]]) | (?P<other>[^\"'“”„{}\[\]/\#]++ | .)",
    re.VERBOSE | re.DOTALL,
)
_BEFORE_OBJECT = re.compile(r"(?>(?:\s++|//[^\n]*+|\#[^\n]*+|/\*(?>(?:[^*]|\*(?!/))*)\*/)*)")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([bfnrt])|(.))", re.DOTALL)
# JSON that slipped into a string, as where a quote is missing.
JSON_INSIDE = re.compile(r"""["'“”]\s*+[:\]}]|[\[{]\s*+["'“”]""")
_CLOSERS = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of JSON-like text: `kind` is string, open_string (it never ends), mark or word."""

    kind: str
    text: str

    def string(self) -> str:
        """What a string or a word says: without its quotes and escapes."""
        if self.kind == "word":
            return self.text
        return _ESCAPE.sub(_unescaped, self.text[1:-1] if self.kind == "string" else self.text[1:])


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

    def moved(self, by: int) -> "Extent":
        """The same extent in a text that begins `by` characters further left."""
        if self.start is None:
            return self
        return replace(self, start=self.start + by, end=None if self.end is None else self.end + by)


NO_OBJECT = Extent(None)


def tokens(text: str) -> Iterator[Token]:
    """Split JSON-like text into its tokens, blanks and comments left out. Never fails; linear in the text."""
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind and kind != "comment":
            yield Token(kind, match[0])


def without_comments(text: str) -> str:
    """The text with a blank in place of each comment."""
    return _TOKEN.sub(lambda match: " " if match.lastgroup == "comment" else match[0], text)


def object_extent(text: str, start: int = 0, stop: int | None = None) -> Extent:
    """Find the first object in `text[start:stop]` and how far it reaches, whatever its quotes and commas are like."""
    stop = len(text) if stop is None else stop
    skipped = _BEFORE_OBJECT.match(text, start, stop)
    first = skipped.end() if skipped else start
    brace = text.find("{", first, stop)
    if brace < 0 or text.startswith("[", first, stop):
        return NO_OBJECT
    closers: list[str] = []
    depth = 0
    last = ""
    in_string = False
    for match in _BRACKET_TOKEN.finditer(text, brace, min(stop, brace + MAX_STRICT_BYTES)):
        kind = match.lastgroup
        if kind == "comment":
            continue
        in_string = kind == "open_string"
        last = match[0].rstrip()[-1:] or last
        if kind != "bracket":
            continue
        if last in _CLOSERS:
            closers.append(_CLOSERS[last])
            depth = max(depth, len(closers))
            if depth > MAX_DEPTH:
                break
        elif last in closers:
            while closers.pop() != last:
                pass
            if not closers:
                return Extent(brace, match.end(), depth=depth)
    return Extent(brace, None, "".join(reversed(closers)), in_string, last, depth)


def without_surrogates(text: str) -> str:
    """Join surrogate pairs, as JSON escapes write them, and replace what has no partner by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    return " " if match[2] else match[3]
