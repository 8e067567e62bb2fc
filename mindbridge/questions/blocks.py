"""Finding the `interactive` blocks of a reply (contract, section 3).

markdown-it-py's block rules decide what is a fence and what is only an example of one: in a longer fence, a quote or an
indented code block. Added to them are the shapes that models write and CommonMark does not know. The rules see only
the lines that can matter to that, so that a long reply costs little.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, fence, paragraph

from mindbridge.questions.fences import Opener, ReplyLines, indentation

MAX_BLOCKS = 16
# More lines than this, all of them fences or what contains them, are no text that anyone wrote to be read.
_MAX_DECIDING_LINES = 2_000

_FENCE_LINE = re.compile(r"^[^`~\n]*+(?:`{3}|~{3})", re.MULTILINE)
_PLAIN_LINE = re.compile(r"[ \t]*+(?:(?:[-+*]|\d{1,9}+[.)])\s*\Z|(?!1[.)]|[-+*#>`~_]))")


@dataclass(frozen=True, slots=True)
class Block:
    """A block at `text[start:end]` of the reply, fences included.

    `content` is what stands between the fences, `closed` tells that there is a closing one. `counts` is False where
    the reply has more blocks than are read: then nothing is known but that one could stand there.
    """

    start: int
    end: int
    content: str
    closed: bool
    counts: bool = True


def find_blocks(text: str) -> tuple[Block, ...]:
    """Find the blocks of a reply, in order, without overlap. Never fails; linear in the text.

    A block is a fence of ``` or ~~~ named `interactive` or `interactive json`, in any case; or the same all on one
    line, behind prose on its line, or named by the line below the fence. It ends at its closing fence, with or
    without text behind it on the line; without one, behind its JSON object if that is whole, else at the next block,
    the next fence or the end of the reply. The first `MAX_BLOCKS` count.
    """
    reply = ReplyLines(text)
    if not reply.openers:
        return ()
    search = _Search(text, reply)
    lines = _deciding_lines(reply)
    if len(lines) <= _MAX_DECIDING_LINES:
        search.run(lines)
        if not search.full:
            return tuple(search.blocks)
    for opener in reply.openers:
        if not search.blocks or opener.start >= search.blocks[-1].end:
            search.add(opener, counts=False)
    return tuple(search.blocks)


class _OuterLine(NamedTuple):
    number: int
    indent: int
    ends_others: bool


class _Search:
    """One run of the block rules: which opener stands on which of their lines, and the blocks found so far."""

    def __init__(self, text: str, reply: ReplyLines) -> None:
        self.blocks: list[Block] = []
        self._text = text
        self._reply = reply
        self._numbers: list[int] = []
        self._starts: list[int] = []
        self._openers: dict[int, Opener] = {}

    @property
    def full(self) -> bool:
        """Whether there are as many blocks as count."""
        return len(self.blocks) >= MAX_BLOCKS

    def run(self, numbers: list[int]) -> None:
        """Let the rules go over these lines of the reply."""
        lines = [self._reply.lines[number] for number in numbers]
        self._numbers = numbers
        self._starts = [0, *accumulate(len(line) + 1 for line in lines)]
        for opener in reversed(self._reply.openers):
            self._openers[bisect_left(numbers, opener.line)] = opener
        _PARSER.block.parse("\n".join(lines), _PARSER, {"search": self}, [])

    def opener_on(self, line: int) -> Opener | None:
        """The first opener on one of the rules' lines."""
        return None if self.full else self._openers.get(line)

    def is_whole_line(self, state: StateBlock, line: int, opener: Opener) -> bool:
        """Whether the line begins with the opener, apart from what the containers around it need there."""
        column = state.bMarks[line] + state.tShift[line] - self._starts[line]
        return self._reply.starts[opener.line] + column == opener.start

    def take(self, state: StateBlock, line: int, opener: Opener) -> None:
        """Add the block that opens here, and any on the rest of the line where it ends; move the rules behind them."""
        next_line = self.add(opener, indent=state.blkIndent)
        follower = self._reply.opener_from(self.blocks[-1].end)
        while follower and follower.line < next_line and not self.full:
            next_line = self.add(follower, indent=state.blkIndent)
            follower = self._reply.opener_from(self.blocks[-1].end)
        state.line = max(line + 1, bisect_left(self._numbers, next_line))

    def add(self, opener: Opener, *, indent: int = 0, counts: bool = True) -> int:
        """Add the block that opens here; returns the number of the reply's first line that it leaves alone."""
        closing = self._reply.closing(opener, indent)
        start = self._reply.starts[opener.line] if opener.first_on_line else opener.start
        content = self._text[opener.end : closing.content_end]
        self.blocks.append(Block(start, closing.end, content, closing.closed, counts))
        return closing.next_line


def _deciding_lines(reply: ReplyLines) -> list[int]:
    """The lines that decide what the openers are: fences, what they can be inside of, and the lines next to these.

    What contains a line begins with a line that is less indented. A line of plain text right below another does not
    end what is around both, as it may only go on with a paragraph. Where lines are left out, one blank line stands for
    all the blank ones among them.
    """
    fences = {reply.line_of(match.start()) for match in _FENCE_LINE.finditer(reply.source)}
    fences.update(opener.line for opener in reply.openers)
    kept: set[int] = set()
    blanks: list[int] = []
    outer: list[_OuterLine] = []
    for number, line in enumerate(reply.lines[: reply.openers[-1].line + 1]):
        if not line or line.isspace():
            blanks.append(number)
            continue
        indent = indentation(line)
        ends_others = blanks[-1:] == [number - 1] or not _PLAIN_LINE.match(line)
        outer = [around for around in outer if around.indent < indent or (around.ends_others and not ends_others)]
        if number in fences:
            kept.update((max(number - 1, 0), number))
            for around in outer:
                kept.update((max(around.number - 1, 0), around.number, around.number + 1))
            if len(kept) > _MAX_DECIDING_LINES:
                break
        outer.append(_OuterLine(number, indent, ends_others))
    last = -1
    for number in sorted(kept):
        index = bisect_left(blanks, number) - 1
        if index >= 0 and blanks[index] > last:
            kept.add(blanks[index])
        last = number
    return sorted(kept)


def _search_of(state: StateBlock) -> _Search:
    search = state.env["search"]
    if not isinstance(search, _Search):
        raise TypeError(f"the block rules were run without a search: {search!r}")
    return search


# What silent means, and that it is a positional bool, is the parser's convention.
def _fence(state: StateBlock, line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001
    search = _search_of(state)
    opener = search.opener_on(line)
    if opener is None or state.is_code_block(line) or not search.is_whole_line(state, line, opener):
        return fence(state, line, end_line, silent)
    if not silent:
        search.take(state, line, opener)
    return True


def _block_behind_prose(state: StateBlock, line: int, _end_line: int, silent: bool) -> bool:  # noqa: FBT001
    search = _search_of(state)
    opener = search.opener_on(line)
    if opener is None or state.is_code_block(line):
        return False
    if not silent:
        search.take(state, line, opener)
    return True


def _paragraph(state: StateBlock, line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001
    # The lines that a paragraph goes on with are shown to no other rule where they are indented like code.
    paragraph(state, line, end_line, silent)
    search = _search_of(state)
    for number in range(line + 1, state.line):
        opener = search.opener_on(number)
        if opener is not None:
            search.take(state, number, opener)
            break
    return True


def _block_parser() -> MarkdownIt:
    # No HTML, so that nothing hides a fence which a renderer without HTML shows; no rules that only tell one kind of
    # paragraph from another.
    parser = MarkdownIt("commonmark", {"html": False}).disable(["reference", "lheading", "html_block"])
    rules = parser.block.ruler
    rules.at("fence", _fence, {"alt": ["paragraph", "blockquote", "list"]})
    rules.before("heading", "block_behind_prose", _block_behind_prose, {"alt": ["paragraph", "blockquote"]})
    rules.at("paragraph", _paragraph)
    return parser


_PARSER = _block_parser()
