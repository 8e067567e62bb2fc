"""What one block comes to: a question that can be live, or what of it is certain (contract, section 3)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest

from mindbridge.questions.blocks import Block
from mindbridge.questions.fields import many_lines, one_line, plain_question, question_of
from mindbridge.questions.json_object import CutOffJsonError, UnreadableJsonError, read_object
from mindbridge.questions.json_text import JSON_INSIDE, Extent, tokens
from mindbridge.questions.model import DEFAULT_QUESTION, UNREADABLE, PlainQuestion, Problem, ProblemCode, Question

# As much of an unreadable block is shown as anyone reads.
_MAX_CERTAIN_LABELS = 50
_MAX_CERTAIN_TOKENS = 1_500

_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_JSON_MARKS = re.compile(r"[{}\[\]\"“”]")
_NO_PROSE = re.compile(r"(?:json|//.*|#.*|/\*.*)?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Payload:
    """What a block came to.

    `question` is None where the block can't be live; `plain` is how it reads where it isn't. `before` and `after` are
    prose that stood between the fences, next to the JSON. `repair_tried` tells that its JSON was given to repair.
    """

    question: Question | None
    plain: PlainQuestion
    problems: tuple[Problem, ...] = ()
    before: str = ""
    after: str = ""
    repair_tried: bool = False


def read_payload(block: Block, name: str, *, max_options: int, may_repair: bool) -> Payload:
    """Read a block's JSON as a question. Never fails: whatever can't be read is told in `problems`.

    `name` is what the block is called there. At most `max_options` options count. `may_repair` allows to repair
    broken JSON.
    """
    content, extent = block.content, block.extent
    before, after = _prose_around(content, extent, closed=block.closed)
    try:
        found = read_object(content, extent, closed=block.closed, may_repair=may_repair)
    except UnreadableJsonError as error:
        cut_off = isinstance(error, CutOffJsonError) or not (block.closed or content.strip())
        code = ProblemCode.BLOCK_CUT_OFF if cut_off else ProblemCode.BLOCK_UNREADABLE
        problem = Problem(code, f"{name}: {error}; it was shown without buttons")
        return Payload(None, _certain_parts(content), (problem,), before, after, error.repair_tried)
    question, problems = question_of(found.data, name, max_options)
    if "{" in content[extent.end or len(content) :]:
        message = f"{name}: only the first JSON object of a block counts; the others were left out"
        problems = (*problems, Problem(ProblemCode.BLOCK_NOT_LIVE, message))
    live = question if isinstance(question, Question) else None
    plain = plain_question(question) if isinstance(question, Question) else question
    return Payload(live, plain, problems, before, after, found.repaired)


def _prose_around(content: str, extent: Extent, *, closed: bool) -> tuple[str, str]:
    """The prose before and behind the object of a block; remains of JSON and comments are none."""
    if extent.start is None:
        # An unreadable block shows nothing of itself, unless it could be the whole rest of a reply.
        return "", "" if closed else _prose(content)
    before = _prose(content[: extent.start])
    if extent.end is not None:
        return before, _prose(content[extent.end :])
    if closed or extent.in_string:
        return before, ""
    tail = content[extent.start :]
    last_mark = max((match.end() for match in _JSON_MARKS.finditer(tail)), default=0)
    paragraphs = _BLANK_LINE.search(tail, last_mark)
    return before, _prose(tail[paragraphs.end() :]) if paragraphs else ""


def _prose(text: str) -> str:
    text = text.strip()
    return "" if _JSON_MARKS.search(text) or _NO_PROSE.fullmatch(text) else text


def _certain_parts(content: str) -> PlainQuestion:
    """The question and the labels of JSON that can't be read, as far as they stand there whole."""
    question = ""
    labels: list[str] = []
    for key, text in _whole_strings(content):
        if key == "question":
            question = question or many_lines(text)
        elif key in {"label", "options"} and (label := one_line(text)):
            labels.append(label)
    if not question and not labels:
        return PlainQuestion(UNREADABLE)
    return PlainQuestion(question or DEFAULT_QUESTION, tuple(labels[:_MAX_CERTAIN_LABELS]))


def _whole_strings(content: str) -> Iterator[tuple[str, str]]:
    """The strings that are whole, each with its key; in a list, with the list's key."""
    found = list(islice(tokens(content[max(content.find("{"), 0) :]), _MAX_CERTAIN_TOKENS))
    key = ""
    outer_keys = [""]
    for token, following in zip_longest(found, found[1:]):
        next_mark = following.text if following and following.kind == "mark" else ""
        if token.kind == "mark":
            if token.text in {"{", "["}:
                outer_keys.append(key if token.text == "[" else "")
            elif token.text in {"}", "]"} and len(outer_keys) > 1:
                outer_keys.pop()
            key = key if token.text == ":" else outer_keys[-1]
        elif next_mark == ":":
            key = token.string()
        elif token.kind == "string" and (next_mark or following is None):
            text = token.string()
            if not JSON_INSIDE.search(text):
                yield key, text
