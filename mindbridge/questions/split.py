"""Cutting a long Markdown text into pieces that each fit into a message: at paragraphs, lines, or where it must be."""

import json
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

MIN_LIMIT: Final = 1_000
"""No piece is asked to be smaller, in bytes; it leaves room for the lines that close and reopen a fence."""

_LONGEST_ESCAPE = 6
_FENCE_ROOM = 300
_FENCE = re.compile(
    r"^(?P<indent>[ \t>]{0,40}+)(?P<item>(?>(?:(?:[-+*]|\d{1,9}+[.)])[ \t]++)*))"
    r"(?P<marker>`{3,40}+|~{3,40}+)(?P<info>[^\n]*)$",
    re.MULTILINE,
)
_LANGUAGE = re.compile(r"[ \t]*+([\w+#.-]{1,40})", re.ASCII)
_CODE_INDENT = 4
# Nobody writes more; what comes behind them is cut as if it were no fence.
_MAX_FENCE_LINES = 5_000
# How far to look back for a line that is not indented, which neither a list nor a paragraph in it goes on with.
_CANDIDATES = 200
_LONGEST_EMOJI = 30
_JOINERS = "\u200d\ufe0e\ufe0f"


def json_size(text: str) -> int:
    """How many bytes the text takes up in canonical JSON, without its quotes."""
    return len(json.dumps(text, ensure_ascii=False).encode()) - 2


def split_markdown(text: str, limit: int) -> tuple[str, ...]:
    """Cut a text into pieces of at most `limit` bytes of JSON each (`MIN_LIMIT` if that is more), none of them blank.

    All of the text is in the pieces, but for the blanks at the cuts. A fence that has to be cut is closed at the end
    of one piece and opened again, with its language, at the start of the next.
    """
    text = text.replace("\r\n", "\n").strip("\n")
    if len(text) * _LONGEST_ESCAPE <= limit or json_size(text) <= limit:
        return (text,) if text.strip() else ()
    return tuple(piece for piece in _pieces(text, max(limit, MIN_LIMIT)) if piece.strip())


@dataclass(frozen=True, slots=True)
class _Fence:
    """A fenced code block: its opening line at `start`, its content from `body`, its closing line up to `end`."""

    start: int
    body: int
    close: int
    end: int
    indent: str
    marker: str
    language: str

    @property
    def is_quoted(self) -> bool:
        return ">" in self.indent

    def opening(self) -> str:
        return f"{self.indent if self.is_quoted else ''}{self.marker}{self.language}\n"

    def closing(self, *, reopened: bool) -> str:
        indent = "" if reopened and not self.is_quoted else self.indent
        return f"\n{indent}{self.marker}"

    def outdented(self, content: str) -> str:
        """The rest of its content as it stands in a fence that is in no list."""
        if self.is_quoted or not self.indent:
            return content
        return re.sub(rf"^[ \t]{{1,{len(self.indent)}}}", "", content, flags=re.MULTILINE)


class _Fences:
    """The fences of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = list(_fence_lines(text)) if "```" in text or "~~~" in text else []
        self._starts = [opening.start() for opening, _ in self._lines]

    def __bool__(self) -> bool:
        return bool(self._lines)

    def around(self, place: int) -> _Fence | None:
        """The fence that would be cut at a place."""
        index = bisect_left(self._starts, place) - 1
        if index < 0:
            return None
        opening, closing = self._lines[index]
        end = closing.end() + 1 if closing else len(self._text)
        if place >= end:
            return None
        language = _LANGUAGE.match(opening["info"])
        return _Fence(
            start=opening.start(),
            body=opening.end() + 1,
            close=closing.start() if closing else end,
            end=end,
            indent=(opening["indent"] + " " * len(opening["item"]))[:40],
            marker=opening["marker"],
            language=language[1] if language else "",
        )


def _fence_lines(text: str) -> Iterator[tuple[re.Match[str], re.Match[str] | None]]:
    """The opening and the closing line of each fence; the last fence may have no closing one."""
    opening: re.Match[str] | None = None
    marker = ""
    for line in islice(_FENCE.finditer(text), _MAX_FENCE_LINES):
        _, item, this_marker, info = line.groups()
        if opening is None:
            if this_marker[0] == "~" or "`" not in info:
                opening, marker = line, this_marker
        elif this_marker.startswith(marker) and not item and not info.strip():
            yield opening, line
            opening = None
    if opening is not None and len(opening["indent"].expandtabs(_CODE_INDENT)) < _CODE_INDENT:
        yield opening, None


def _pieces(text: str, limit: int) -> Iterator[str]:
    fences = _Fences(text)
    room = limit - _FENCE_ROOM if fences else limit
    start = 0
    reopened: _Fence | None = None
    while start < len(text):
        opening = reopened.opening() if reopened else ""
        end = _reach(text, start, room)
        if end < len(text):
            end = _cut(text, start, end, fences)
        body = text[start:end]
        if reopened:
            inside = min(end, reopened.end)
            body = reopened.outdented(text[start:inside]) + text[inside:end]
        fence = fences.around(end) if end < len(text) else None
        closing = fence.closing(reopened=fence == reopened) if fence else ""
        yield opening + body.strip("\n") + closing
        start, reopened = end, fence


def _reach(text: str, start: int, room: int) -> int:
    """How far a piece from `start` can go in so many bytes."""
    end = min(len(text), start + room)
    while (size := json_size(text[start:end])) > room:
        end = start + (end - start) * room // size
    return end


def _cut(text: str, start: int, end: int, fences: _Fences) -> int:
    """The best place to cut in `text[start + 1:end]`."""
    for separator in ("\n\n", "\n"):
        last = 0
        for place in islice(_places(text, separator, start, end, fences), _CANDIDATES):
            if text[place] not in " \t":
                return place
            last = last or place
        if last:
            return last
    fence = fences.around(end)
    first = max(start, fence.body if fence else start) + 1
    line = text.rfind("\n", first, min(end, fence.close - 1 if fence else end)) + 1
    word = text.rfind(" ", first, end) + 1
    return line or word or _between_characters(text, start, end)


def _places(text: str, separator: str, start: int, end: int, fences: _Fences) -> Iterator[int]:
    """The places behind a separator and outside of fences, the last one first."""
    while (found := text.rfind(separator, start + 1, end)) >= 0:
        place = found + len(separator)
        fence = fences.around(place)
        if fence is None:
            yield place
        end = place - 1 if fence is None else fence.start


def _between_characters(text: str, start: int, end: int) -> int:
    """A place at or shortly before the end where no emoji and no accent is torn apart."""
    for place in range(end, max(start, end - _LONGEST_EMOJI), -1):
        if not _continues(text[place]) and text[place - 1] != _JOINERS[0]:
            return place
    return end


def _continues(character: str) -> bool:
    return character in _JOINERS or unicodedata.combining(character) > 0 or "🏻" <= character <= "🏿"
