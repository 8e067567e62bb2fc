"""Which lines of a reply decide whether its `interactive` fences are blocks or only stand in an example.

The block rules cost some 10 to 40 µs a line, a long reply has many lines, and few of them matter to its fences.
"""

import re
from itertools import islice

from mindbridge.questions.fences import ReplyText

# More lines than this, all of them fences or what contains them, are no text that anyone wrote to be read.
_MAX_DECIDING_LINES = 2_000
# How many lines are looked at, in all, for what contains the indented fences.
_MAX_STEPS = 5_000

_FENCE_LINE = re.compile(r"^[ \t>*+\-\d.)]*+(?:`{3}|~{3})", re.MULTILINE)
_BLANK_LINE = re.compile(r"\n(?=[ \t]*+\n)")
_INDENTATION = re.compile(r"[ \t]*+")
# Text, or an empty list item, may only go on with the paragraph of the line above.
_PLAIN_LINE = re.compile(r"[ \t]*+(?:(?:[-+*]|\d{1,9}+[.)])[ \t]*+$|(?!1[.)]|[-+*#>`~_]))", re.MULTILINE)


def deciding_lines(reply: ReplyText) -> list[int] | None:
    """Where the lines start that decide what the openers are: fences, what is around them, and the lines next to these.

    Where lines are left out, one blank line stands for all the blank ones among them. None for too many lines.
    """
    source = reply.source
    last = reply.openers[-1].line
    fences = {match.start() for match in islice(_FENCE_LINE.finditer(source, 0, last), _MAX_DECIDING_LINES)}
    fences.update(opener.line for opener in reply.openers)
    kept: set[int] = set()
    steps_left = _MAX_STEPS
    for fence_line in sorted(fences):
        kept.update((fence_line, reply.line_start(max(fence_line - 1, 0))))
        around, steps_left = _lines_around(source, fence_line, steps_left)
        for line in around:
            kept.update((reply.line_start(max(line - 1, 0)), line, reply.line_end(line) + 1))
        if len(kept) > _MAX_DECIDING_LINES:
            return None
    end = 0
    for line in sorted(kept):
        blank = _BLANK_LINE.search(source, end, line)
        if blank:
            kept.add(blank.end())
        end = reply.line_end(line)
    return sorted(kept)


def _lines_around(source: str, start: int, steps: int) -> tuple[list[int], int]:
    """The lines that can begin what contains the line that starts here, and how many more steps may be taken.

    These are less indented. A line of plain text right below another does not end what is around both, as it may only
    go on with a paragraph.
    """
    around: list[int] = []
    ending = plain = _indentation(source, start)
    while start > 0 and ending > 0 and steps > 0:
        steps -= 1
        end = start - 1
        start = source.rfind("\n", 0, end) + 1
        if source[start:end].isspace() or start == end:
            continue
        indent = _indentation(source, start)
        line_above = source[source.rfind("\n", 0, max(start - 1, 0)) + 1 : start]
        ends_others = not line_above.strip() or not _PLAIN_LINE.match(source, start, end)
        if indent < (ending if ends_others else plain):
            around.append(start)
        ending = min(ending, indent) if ends_others else ending
        plain = min(plain, indent)
    return around, steps


def _indentation(source: str, start: int) -> int:
    blanks = _INDENTATION.match(source, start)
    return len(blanks[0].expandtabs(4)) if blanks else 0
