"""Where in a reply's text an `interactive` block could open, and where one that opens there ends.

Pure text: whether an opener counts, or stands in an example, is for the block rules to say (`blocks`).
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from mindbridge.questions.json_text import NO_OBJECT, Extent, object_extent

# More than these are not looked at one by one.
MAX_OPENERS = 256

_FENCE = r"(?:(?<!`)`{3,}+|(?<!~)~{3,}+)"
_NAME = (
    r"[ \t]*+(?P<below>(?:json[ \t]*+)?\n[ \t]*+)?"
    r"interactive(?>(?:[ \t]++json)?)[ \t]*+(?=\{|\n|\Z)"
)
_MARKER = re.compile(rf"(?P<fence>{_FENCE}){_NAME}", re.IGNORECASE | re.ASCII)
# From a marker to the next fence of any kind, which belongs to the block unless it is a marker.
_UNREAD_BLOCK = re.compile(
    rf"{_FENCE}{_NAME}[^`~]*+(?>(?:(?!{_FENCE})[`~]++[^`~]*+)*)(?:{_FENCE}(?!{_NAME.replace('?P<below>', '?:')}))?",
    re.IGNORECASE | re.ASCII,
)
_CONTAINERS = re.compile(r"[ \t]*+(?>(?:(?:[-+*]|\d{1,9}+[.)])[ \t]++)*)")
_OBJECT_FOLLOWS = re.compile(r"\s*+\{")
# A line that a fence begins, or one that ends with a fence behind JSON.
_FENCE_LINE = re.compile(
    r"^[ \t]*+(?P<run>`{3,}+|~{3,}+)(?P<behind>[^\n]*+)|[}\]][ \t]*+(?P<late_run>`{3,}+|~{3,}+)[ \t]*+$",
    re.MULTILINE,
)
_FENCE_BEHIND_OBJECT = re.compile(r"[ \t]*+(`{3,}+|~{3,}+)")
_JSON_STARTS = tuple("{}[],\"'“”")
_LANGUAGE = re.compile(r"[\w+#.-]++[ \t]*+")


@dataclass(frozen=True, slots=True)
class Opener:
    """A place where a block could open: from its fence at `start` to `end`, behind its name.

    `line` is where its line starts; `first_on_line` tells that only blanks and list markers stand before it there.
    """

    start: int
    end: int
    fence: str
    line: int
    first_on_line: bool


@dataclass(frozen=True, slots=True)
class Closing:
    """Where a block ends: its content at `content_end`, all of it at `end`, both the same without a closing fence.

    `next_line` is where the first line starts that the block leaves alone. `extent` tells of the JSON object in the
    content, in places of the content.
    """

    content_end: int
    end: int
    next_line: int
    extent: Extent


class ReplyText:
    """A reply's text with line ends as CommonMark counts them, and its openers. Places are the same as in the reply."""

    def __init__(self, text: str) -> None:
        self.source = text.replace("\r\n", " \n").replace("\r", "\n").replace("\0", "\ufffd")
        self.openers = tuple(islice(self._find_openers(), MAX_OPENERS))
        self._opener_starts = [opener.start for opener in self.openers]

    def line_start(self, place: int) -> int:
        """Where the line begins that a place is in."""
        return self.source.rfind("\n", 0, place) + 1

    def line_end(self, place: int) -> int:
        """Where the line ends that a place is in."""
        end = self.source.find("\n", place)
        return len(self.source) if end < 0 else end

    def opener_from(self, place: int) -> Opener | None:
        """The first opener at a place or behind it."""
        index = bisect_left(self._opener_starts, place)
        return self.openers[index] if index < len(self.openers) else None

    def unread_blocks(self, place: int) -> Iterator[tuple[int, int]]:
        """Where blocks could start and end from a place on, found fast and without a thought about what is in them."""
        return (match.span() for match in _UNREAD_BLOCK.finditer(self.source, place))

    def unread_closing(self, opener: Opener) -> int:
        """Where a block that opens here and is not read ends."""
        return self._closing_line(opener, opener.end, NO_OBJECT, 0)[1]

    def closing(self, opener: Opener, indent: int) -> Closing:
        """Where the block that opens here ends; `indent` is what the list around it asks of its lines.

        A fence right behind the whole JSON object on its line ends the block, whatever follows it. A block without a
        closing fence ends behind its object where the object is whole and the only one.
        """
        whole = object_extent(self.source, opener.end)
        start = whole.end if whole.end is not None and self._has_openers_in_strings(opener, whole) else opener.end
        content_end, end, next_line = self._closing_line(opener, start, whole, indent)
        ends_inside = whole.end is not None and whole.end <= content_end
        extent = whole if ends_inside else object_extent(self.source, opener.end, content_end)
        if extent.end is not None:
            behind = _FENCE_BEHIND_OBJECT.match(self.source, extent.end)
            if behind and behind[1].startswith(opener.fence):
                content_end, end, next_line = extent.end, behind.end(), self.line_end(behind.end()) + 1
            elif end == content_end and "{" not in self.source[extent.end : content_end]:
                content_end = end = extent.end
        return Closing(content_end, end, next_line, extent.moved(-opener.end))

    def _find_openers(self) -> Iterator[Opener]:
        line = searched = own_text = 0
        for match in _MARKER.finditer(self.source):
            start = match.start()
            line_break = self.source.rfind("\n", searched, start)
            if line_break >= 0 or not searched:
                line = line_break + 1
                containers = _CONTAINERS.match(self.source, line, start)
                own_text = containers.end() if containers else line
            searched = start
            before = self.source[max(own_text, start - 8) : start].rstrip()
            # A quote is never a block, and a fence behind backticks is an example in code.
            if self.source.startswith(">", own_text) or before.endswith(("`", "~")):
                continue
            if (own_text < start or match["below"]) and not _OBJECT_FOLLOWS.match(self.source, match.end()):
                continue
            yield Opener(start, match.end(), match["fence"], line, first_on_line=own_text >= start)

    def _has_openers_in_strings(self, opener: Opener, whole: Extent) -> bool:
        """Whether what looks like openers in this object is part of strict JSON."""
        follower = self.opener_from(opener.end)
        if whole.end is None or follower is None or whole.end <= follower.start:
            return False
        try:
            json.loads(self.source[whole.start : whole.end])
        except ValueError:
            return False
        return True

    def _closing_line(self, opener: Opener, start: int, whole: Extent, indent: int) -> tuple[int, int, int]:
        """The end of the content, the end of the block, and the next line, as the fences from `start` on tell it.

        `whole` is the object that follows, wherever it ends.
        """
        line_end = stop = self.line_end(start)
        follower = self.opener_from(start)
        if follower and follower.start < line_end:
            stop = follower.start
        rest = self.source[start:stop].rstrip()
        if rest.endswith(opener.fence):
            return start + len(rest.rstrip(opener.fence[0])), start + len(rest), line_end + 1
        if stop < line_end:
            return stop, stop, line_end + 1
        limit = follower.line if follower else len(self.source)
        outdented = _outdented_text(indent).search(self.source, line_end, limit) if indent else None
        limit = outdented.start() if outdented else limit
        inside = range(whole.start, whole.end) if whole.start and whole.end and whole.end <= limit else range(0)
        for match in _FENCE_LINE.finditer(self.source, line_end, limit):
            group = "run" if match["run"] else "late_run"
            behind = (match["behind"] or "").strip()
            if not match[group].startswith(opener.fence) or (behind and match.start() in inside):
                continue
            if not inside and behind.startswith(_JSON_STARTS):
                continue
            if _LANGUAGE.fullmatch(match["behind"] or ""):
                # No closing fence but the opening one of other code.
                return match.start(), match.start(), match.start()
            return match.start(group), match.end(group), self.line_end(match.end(group)) + 1
        return limit, limit, limit


@lru_cache
def _outdented_text(indent: int) -> re.Pattern[str]:
    """Lines that are less indented than this and don't look like JSON or fences."""
    return re.compile(rf"^ {{0,{indent - 1}}}+(?=[^\s{{}}\[\],\"'“”`~])", re.MULTILINE)
