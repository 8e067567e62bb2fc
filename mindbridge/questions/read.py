"""Reading an agent's reply: prose, at most one live question, and what was wrong with it (contract, section 3)."""

import re

from mindbridge.questions.blocks import Block, find_blocks
from mindbridge.questions.emoji_keys import MAX_OPTIONS
from mindbridge.questions.json_text import without_surrogates
from mindbridge.questions.model import UNREADABLE, Problem, ProblemCode, Prose, Reply, Segment
from mindbridge.questions.payload import read_payload

MAX_REPLY_BYTES = 256 * 1024
MAX_REPAIRS = 3

_NAME = re.compile("interactive", re.IGNORECASE | re.ASCII)
_BLANKS = " \t\r\n"


def read_reply(text: str, *, max_options: int = 5) -> Reply:
    """Read a reply's Markdown.

    Any text can be read: what is wrong with it is told in `problems`. Prose is kept as it is, apart from blank lines
    next to a block and lone surrogates. The first block that can be asked is the live question, with at most
    `max_options` options; all other blocks become plain text. Raises `ValueError` for `max_options` outside 1 to 10.
    """
    if not 1 <= max_options <= MAX_OPTIONS:
        raise ValueError(f"max_options is {max_options}; it must be from 1 to {MAX_OPTIONS}")
    reader = _Reader(max_options)
    text = reader.within_limit(without_surrogates(text))
    blocks = find_blocks(text) if _NAME.search(text) else ()
    counted = [block for block in blocks if block.counts]
    place = 0
    for number, block in enumerate(counted, 1):
        reader.add_prose(_prose(text[place : block.start], behind_block=place > 0, before_block=True))
        reader.add_block(block, f"block {number}")
        place = block.end
    rest = _with_words_for_blocks(text, place, blocks[len(counted) :])
    reader.add_prose(_prose(rest, behind_block=place > 0))
    if len(counted) < len(blocks):
        reader.add_problem(
            ProblemCode.BLOCK_UNREADABLE,
            f"reply: it has {len(blocks)} blocks; those behind the first {len(counted)} were not read",
        )
    return reader.reply()


class _Reader:
    """One reply being read."""

    def __init__(self, max_options: int) -> None:
        self._max_options = max_options
        self._segments: list[Segment] = []
        self._problems: list[Problem] = []
        self._repairs_left = MAX_REPAIRS
        self._has_question = False

    def reply(self) -> Reply:
        """What was read so far."""
        return Reply(tuple(self._segments), tuple(self._problems))

    def within_limit(self, text: str) -> str:
        """The text as far as it is read; what is over is cut at a character and told."""
        data = text.encode()
        if len(data) <= MAX_REPLY_BYTES:
            return text
        message = f"reply: it has {len(data)} bytes; only the first {MAX_REPLY_BYTES} were kept"
        self.add_problem(ProblemCode.REPLY_TOO_LONG, message)
        return data[:MAX_REPLY_BYTES].decode(errors="ignore")

    def add_problem(self, code: ProblemCode, message: str) -> None:
        """Tell something that was wrong."""
        self._problems.append(Problem(code, message))

    def add_prose(self, markdown: str) -> None:
        """Add a stretch of prose, unless it is blank."""
        if markdown.strip():
            self._segments.append(Prose(markdown))

    def add_block(self, block: Block, name: str) -> None:
        """Add what a block says: the first question is live, everything else is plain."""
        payload = read_payload(block, name, max_options=self._max_options, may_repair=self._repairs_left > 0)
        self._repairs_left -= payload.repair_tried
        self._problems.extend(payload.problems)
        self.add_prose(payload.before)
        if payload.question is not None and not self._has_question:
            self._has_question = True
            self._segments.append(payload.question)
        else:
            self._segments.append(payload.plain)
            if payload.question is not None:
                message = f"{name}: it was shown without buttons; only the first question of a reply can be answered"
                self.add_problem(ProblemCode.BLOCK_NOT_LIVE, message)
        self.add_prose(payload.after)


def _with_words_for_blocks(text: str, place: int, blocks: tuple[Block, ...]) -> str:
    """The text from a place on, with a sentence in place of each of the blocks."""
    if not blocks:
        return text[place:]
    parts: list[str] = []
    for block in blocks:
        prose = _prose(text[place : block.start], behind_block=place > 0, before_block=True)
        if prose.strip():
            parts.append(prose)
        if parts[-1:] != [UNREADABLE]:
            parts.append(UNREADABLE)
        place = block.end
    rest = _prose(text[place:], behind_block=True)
    return "\n\n".join([*parts, rest] if rest.strip() else parts)


def _prose(text: str, *, behind_block: bool = False, before_block: bool = False) -> str:
    """A stretch of a reply without the blank lines, or blanks on the same line, between it and a block."""
    if behind_block:
        kept = text.lstrip(_BLANKS)
        _, line_end, indent = text[: len(text) - len(kept)].replace("\r", "\n").rpartition("\n")
        text = indent + kept if line_end else kept
    if before_block:
        kept = text.rstrip(_BLANKS)
        last_blanks, line_end, _ = text[len(kept) :].replace("\r", "\n").partition("\n")
        text = kept + last_blanks if line_end else kept
    return text
