"""Finding the `interactive` blocks of a reply (contract, section 3).

markdown-it-py's block rules decide what is a fence and what is only an example of one: in a longer fence, a quote or an
indented code block. Added to them are the shapes that models write and CommonMark does not know. The rules see only
the lines that can matter to that, so that a long reply costs little.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, fence, paragraph

from mindbridge.questions.deciding_lines import deciding_lines
from mindbridge.questions.fences import MAX_OPENERS, Opener, ReplyText
from mindbridge.questions.json_text import NO_OBJECT, Extent

MAX_BLOCKS = 16


@dataclass(frozen=True, slots=True)
class Block:
    """A block at `text[start:end]` of the reply, fences included.

    `content` is what stands between the fences and `extent` where the JSON object is in it; `closed` tells that there
    is a closing fence. `counts` is False where the reply has more blocks than are read: then all that is known is that
    one could stand there.
    """

    start: int
    end: int
    content: str = ""
    extent: Extent = NO_OBJECT
    closed: bool = False
    counts: bool = True


def find_blocks(text: str) -> tuple[Block, ...]:
    """Find the blocks of a reply, in order, without overlap. Never fails; linear in the text.

    A block is a fence of ``` or ~~~ named `interactive` or `interactive json`, in any case; or the same all on one
    line, behind prose on its line, or named by the line below the fence. It ends at its closing fence, with or
    without text behind it on the line; without one, behind its JSON object if that is whole, else at the next block,
    the next fence or the end of the reply. The first `MAX_BLOCKS` count.
    """
    reply = ReplyText(text)
    if not reply.openers:
        return ()
    search = _Search(text, reply)
    lines = deciding_lines(reply)
    if lines is not None:
        search.run(lines)
        if not search.full and len(reply.openers) < MAX_OPENERS:
            return tuple(search.blocks)
    return (*search.blocks, *_unread_blocks(reply, search.blocks))


def _unread_blocks(reply: ReplyText, read: Sequence[Block]) -> Iterator[Block]:
    place = read[-1].end if read else 0
    for opener in reply.openers:
        if opener.start >= place:
            place = reply.unread_closing(opener)
            yield Block(opener.start, place, counts=False)
    if len(reply.openers) == MAX_OPENERS:
        for start, end in reply.unread_blocks(place):
            yield Block(start, end, counts=False)


class _Search:
    """One run of the block rules: which opener stands on which of their lines, and the blocks found so far."""

    def __init__(self, text: str, reply: ReplyText) -> None:
        self.blocks: list[Block] = []
        self._text = text
        self._reply = reply
        self._lines: list[int] = []
        self._starts: list[int] = []
        self._openers: dict[int, Opener] = {}

    @property
    def full(self) -> bool:
        """Whether there are as many blocks as count."""
        return len(self.blocks) >= MAX_BLOCKS

    def run(self, lines: list[int]) -> None:
        """Let the rules go over the lines that start here."""
        self._lines = lines
        texts = [self._reply.source[line : self._reply.line_end(line)] for line in lines]
        self._starts = [0, *accumulate(len(text) + 1 for text in texts)]
        for opener in reversed(self._reply.openers):
            self._openers[bisect_left(lines, opener.line)] = opener
        _PARSER.block.parse("\n".join(texts), _PARSER, {"search": self}, [])

    def opener_on(self, line: int) -> Opener | None:
        """The first opener on one of the rules' lines."""
        return None if self.full else self._openers.get(line)

    def is_whole_line(self, state: StateBlock, line: int, opener: Opener) -> bool:
        """Whether the line begins with the opener, apart from what the containers around it need there."""
        column = state.bMarks[line] + state.tShift[line] - self._starts[line]
        return opener.line + column == opener.start

    def take(self, state: StateBlock, line: int, opener: Opener) -> None:
        """Add the block that opens here, and any on the rest of the line where it ends; move the rules behind them."""
        next_line = self._add(opener, state.blkIndent)
        follower = self._reply.opener_from(self.blocks[-1].end)
        while follower and follower.start < next_line and not self.full:
            next_line = self._add(follower, state.blkIndent)
            follower = self._reply.opener_from(self.blocks[-1].end)
        state.line = max(line + 1, bisect_left(self._lines, next_line))

    def _add(self, opener: Opener, indent: int) -> int:
        closing = self._reply.closing(opener, indent)
        start = opener.line if opener.first_on_line else opener.start
        content = self._text[opener.end : closing.content_end]
        closed = closing.end > closing.content_end
        self.blocks.append(Block(start, closing.end, content, closing.extent, closed))
        return closing.next_line


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
