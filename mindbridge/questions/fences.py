"""Where in a reply's text an `interactive` block could open, and where one that opens there ends.

Pure text: whether an opener counts, or stands in an example, is for the block rules to say (`blocks`).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from mindbridge.questions.json_text import object_extent

_MARKER = re.compile(
    r"(?P<fence>(?<!`)`{3,}+|(?<!~)~{3,}+)[ \t]*+(?P<below>(?:json[ \t]*+)?\n[ \t]*+)?"
    r"interactive(?:[ \t]++json)?+[ \t]*+(?=\{|\n|\Z)",
    re.IGNORECASE | re.ASCII,
)
_CONTAINERS = re.compile(r"[ \t]*+(?:(?:[-+*]|\d{1,9}+[.)])[ \t]++)*+")
_OBJECT_FOLLOWS = re.compile(r"\s*+\{")
_LANGUAGE = re.compile(r"[\w+#.-]++")
_JSON_STARTS = tuple("{}[],\"'“”")


@dataclass(frozen=True, slots=True)
class Opener:
    """A place where a block could open: from its fence at `start` to `end`, behind its name.

    `first_on_line` tells that nothing but blanks and list markers stands before it on its line.
    """

    start: int
    end: int
    fence: str
    line: int
    first_on_line: bool


@dataclass(frozen=True, slots=True)
class Closing:
    """Where a block ends: its content at `content_end`, all of it at `end`. `next_line` is the first line behind it."""

    content_end: int
    end: int
    next_line: int
    closed: bool = True


class ReplyLines:
    """A reply's text in lines as CommonMark counts them, and its openers. Places are the same as in the text."""

    def __init__(self, text: str) -> None:
        self.source = text.replace("\r\n", " \n").replace("\r", "\n").replace("\0", "\ufffd")
        self.lines = self.source.split("\n")
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        self.openers = tuple(self._find_openers())
        self._opener_starts = [opener.start for opener in self.openers]

    def line_of(self, place: int) -> int:
        """The number of the line that a place of the text is in."""
        return bisect_right(self.starts, place) - 1

    def opener_from(self, place: int) -> Opener | None:
        """The first opener at a place or behind it."""
        index = bisect_left(self._opener_starts, place)
        return self.openers[index] if index < len(self.openers) else None

    def closing(self, opener: Opener, indent: int = 0) -> Closing:
        """Where the block that opens here ends; `indent` is what the list around it asks of its lines.

        A fence right behind the whole JSON object on its line ends the block, whatever follows it. A block without a
        closing fence ends behind its object where the object is whole and the only one.
        """
        found = self._closing_line(opener, indent)
        extent = object_extent(self.source, opener.end, found.content_end)
        if extent.end is None:
            return found
        fence = re.compile(rf"[ \t]*+{opener.fence}{opener.fence[0]}*+").match(self.source, extent.end)
        if fence:
            return Closing(extent.end, fence.end(), self.line_of(fence.end()) + 1)
        if not found.closed and "{" not in self.source[extent.end : found.content_end]:
            return Closing(extent.end, extent.end, found.next_line, closed=False)
        return found

    def _find_openers(self) -> Iterator[Opener]:
        for match in _MARKER.finditer(self.source):
            line = self.line_of(match.start())
            containers = _CONTAINERS.match(self.source, self.starts[line], match.start())
            prose = self.source[containers.end() if containers else self.starts[line] : match.start()]
            # A quote is never a block, and a fence behind backticks is an example in code.
            if prose.startswith(">") or prose.rstrip().endswith(("`", "~")):
                continue
            if (prose or match["below"]) and not _OBJECT_FOLLOWS.match(self.source, match.end()):
                continue
            yield Opener(match.start(), match.end(), match["fence"], line, first_on_line=not prose)

    def _closing_line(self, opener: Opener, indent: int) -> Closing:
        line = self.line_of(opener.end)
        follower = self.opener_from(opener.end)
        stop = follower.start if follower and follower.line == line else self.starts[line + 1] - 1
        rest = self.source[opener.end : stop].rstrip()
        if rest.endswith(opener.fence):
            return Closing(opener.end + len(rest.rstrip(opener.fence[0])), opener.end + len(rest), line + 1)
        if follower and follower.line == line:
            return Closing(stop, stop, line + 1, closed=False)
        last_line = follower.line if follower else len(self.lines)
        in_string = False
        for number in range(line + 1, last_line):
            body = self.lines[number].strip()
            if body.startswith(opener.fence):
                if body.strip(opener.fence[0]) and not in_string:
                    in_string = object_extent(self.source, opener.end, self.starts[number]).in_string
                if not in_string or not body.strip(opener.fence[0]):
                    return self._closing_fence(opener, number)
            elif body.endswith(opener.fence) and body.rstrip(opener.fence[0]).rstrip().endswith(("}", "]")):
                return self._closing_fence(opener, number)
            elif body and indentation(self.lines[number]) < indent and not body.startswith(_JSON_STARTS):
                return Closing(self.starts[number], self.starts[number], number, closed=False)
        stop = self.starts[last_line] if follower else len(self.source)
        return Closing(stop, stop, last_line, closed=False)

    def _closing_fence(self, opener: Opener, number: int) -> Closing:
        start, line = self.starts[number], self.lines[number]
        place = line.index(opener.fence)
        length = len(line[place:]) - len(line[place:].lstrip(opener.fence[0]))
        if _LANGUAGE.fullmatch(line[place + length :].rstrip()):
            # No closing fence but the opening one of other code.
            return Closing(start, start, number, closed=False)
        return Closing(start + place, start + place + length, number + 1)


def indentation(line: str) -> int:
    """How far a line is indented, tabs counted as CommonMark does."""
    blank = line[: len(line) - len(line.lstrip(" \t"))]
    return len(blank.expandtabs(4)) if "\t" in blank else len(blank)
