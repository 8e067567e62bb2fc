"""A reply as Matrix messages (contract, section 3): both forms of the text, the question in place of its block."""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from mindbridge.questions.fields import one_line
from mindbridge.questions.markdown import ProseWriter
from mindbridge.questions.model import INSTRUCTION, Option, PlainQuestion, Prose, Question, Reply
from mindbridge.questions.safe_html import escaped, plain_html
from mindbridge.questions.split import MIN_LIMIT, json_size, split_markdown

CONTENT_BUDGET: Final = 44_000
"""Bytes of canonical JSON for both forms of a message's text and its question's metadata.

Encrypted it is a third longer, and any room may be encrypted by the time that it is sent. The rest of an event, its
relation and what the server adds, has what is left of the 65,536 that Matrix allows.
"""

NAME_LIMIT: Final = 80
_LABEL_LIMIT = 200
# A closing edit has three status lines: one in each form of the text and one in the outer body.
_STATUS_ROOM = 5_000
_METADATA_ROOM = 400
_KEYS_ROOM = 100
_JOIN_ROOM = 8
# A form of the text is at most this part of its message, so that HTML has room to be the longer one.
_TEXT_SHARE = 0.42
# Shorter ones, in characters, are not cut.
_LONG_TEXT = 4_000
# A question that is too large gets shorter descriptions, then none, then shorter HTML.
_FALLBACKS = ((None, None), (500, None), (100, None), (0, None), (0, 300))


@dataclass(frozen=True, slots=True)
class Text:
    """A message's text in both forms; `formatted_body` is HTML of the tags that the Matrix specification allows."""

    body: str
    formatted_body: str


@dataclass(frozen=True, slots=True)
class Part:
    """One message of a reply: its text up to the status line, its question, its text behind the status line."""

    head: Text
    question: Question | None = None
    tail: Text | None = None

    def text(self, status: str | None = INSTRUCTION) -> Text:
        """The whole text. Under a question stands the status, one line of plain text, unless it is None."""
        texts = [self.head]
        if self.question is not None and status is not None:
            texts.append(Text(status, f"<p>{escaped(status)}</p>"))
        return _joined([*texts, self.tail] if self.tail else texts)


def render_reply(reply: Reply, *, budget: int = CONTENT_BUDGET) -> tuple[Part, ...]:
    """Turn a reply, as `read_reply` gives it, into the messages to send, in order; none for an empty reply.

    What does not fit into a message of `budget` bytes (at least 40,000) goes on in the next one; the question, with
    its options, is whole in one.
    """
    budget -= _KEYS_ROOM
    blocks = [block for block in _blocks(reply, budget) if block.text.body]
    return tuple(_part(group) for group in _grouped(blocks, budget))


def answered_line(option: Option, name: str, when: datetime) -> str:
    """The status line of an answered question: which option, by whom, and when, in UTC; always one line."""
    shown_name = _shortened(one_line(name), NAME_LIMIT) or "someone"
    chosen = f"✔ {option.number}. {option.emoji} {_shortened(one_line(option.label), _LABEL_LIMIT)}"
    return f"{chosen} · {shown_name} · {when.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def part_to_json(part: Part) -> str:
    """The part as ASCII JSON, for `part_from_json`."""
    return json.dumps(asdict(part), separators=(",", ":"))


@lru_cache(maxsize=64)
def part_from_json(stored: str) -> Part:
    """The part that `part_to_json` stored. Many tries to answer a question come together, so some are remembered."""
    part = json.loads(stored)
    question = part["question"]
    if question is not None:
        question = Question(**{**question, "options": tuple(Option(**option) for option in question["options"])})
    return Part(Text(**part["head"]), question, Text(**part["tail"]) if part["tail"] is not None else None)


class _Block:
    """What is never cut, some prose or a question; `size` is what it takes up of a message's budget, in bytes."""

    __slots__ = ("question", "size", "text")

    def __init__(self, text: Text, question: Question | None = None) -> None:
        self.text = text
        self.question = question
        self.size = json_size(text.body) + json_size(text.formatted_body) + _JOIN_ROOM
        if question is not None:
            options = [[option.emoji, option.label, option.button] for option in question.options]
            self.size += len(json.dumps(options, ensure_ascii=False).encode()) + _METADATA_ROOM + _STATUS_ROOM


def _blocks(reply: Reply, budget: int) -> Iterator[_Block]:
    writer = ProseWriter()
    prose = [segment.markdown for segment in reply.segments if isinstance(segment, Prose)]
    if len(prose) > 1 or sum(map(len, prose)) > _LONG_TEXT:
        for markdown in prose:
            writer.learn_definitions(markdown)
    for number, segment in enumerate(reply.segments):
        match segment:
            case Prose():
                # What follows a block may be indented only because the block stood in a list.
                yield from _prose_blocks(segment.markdown.lstrip() if number else segment.markdown, writer, budget)
            case PlainQuestion():
                yield from _plain_blocks(segment, budget)
            case Question():
                yield _question_block(segment, budget)


def _prose_blocks(markdown: str, writer: ProseWriter, budget: int) -> Iterator[_Block]:
    limit = int(budget * _TEXT_SHARE)
    pieces = deque(split_markdown(markdown, limit))
    while pieces:
        piece = pieces.popleft()
        size = json_size(piece)
        if size > limit:
            pieces.extendleft(reversed(split_markdown(piece, limit)))
            continue
        block = _Block(Text(piece.rstrip(), writer.write(piece)))
        if block.size > budget and limit > MIN_LIMIT:
            # Even pieces, with room to be cut at a good place, so that none is left over with a few words.
            count = block.size * 11 // (budget * 10) + 1
            limit = max(MIN_LIMIT, size * 21 // (count * 20))
            pieces.appendleft(piece)
        elif block.size > budget:
            yield _Block(Text(piece.rstrip(), plain_html(piece)))
        else:
            yield block


def _plain_blocks(question: PlainQuestion, budget: int) -> Iterator[_Block]:
    listed = "\n".join(f"- {line}" for line in question.lines)
    items = "".join(f"<li>{escaped(line)}</li>\n" for line in question.lines)
    texts = [Text(question.text, plain_html(question.text))]
    if question.lines:
        texts.append(Text(listed, f"<ul>\n{items}</ul>"))
    block = _Block(_joined(texts))
    if block.size <= budget:
        yield block
    else:
        # Escaped, a character takes up to five.
        for piece in split_markdown(block.text.body, budget // 7):
            yield _Block(Text(piece, plain_html(piece)))


def _question_block(question: Question, budget: int) -> _Block:
    blocks = (_Block(_question_text(question, *limits), question) for limits in _FALLBACKS)
    block = next(blocks)
    while block.size > budget and (smaller := next(blocks, None)):
        block = smaller
    return block


def _question_text(question: Question, description_limit: int | None, html_limit: int | None) -> Text:
    lines: list[str] = []
    html_lines: list[str] = []
    for option in question.options:
        line = f"{option.number}. {option.emoji} {one_line(option.label)}"
        lines.append(line)
        html_lines.append(escaped(_shortened(line, html_limit)))
        description = _shortened(one_line(option.description or ""), description_limit)
        if description:
            lines.append(f"   {description}")
            html_lines.append(f"&nbsp;&nbsp;&nbsp;{escaped(description)}")
    # No <ol>: the list around it, or a client, would give it other numbers than the ones that count.
    asked = Text(question.text, plain_html(_shortened(question.text, html_limit)))
    return _joined([asked, Text("\n".join(lines), "<p>" + "<br>\n".join(html_lines) + "</p>")])


def _grouped(blocks: Iterable[_Block], budget: int) -> Iterator[list[_Block]]:
    """Put as many blocks as fit into each message."""
    group: list[_Block] = []
    size = 0
    for block in blocks:
        if group and size + block.size > budget:
            yield group
            group, size = [], 0
        group.append(block)
        size += block.size
    if group:
        yield group


def _part(group: list[_Block]) -> Part:
    asking = next((number for number, block in enumerate(group) if block.question), None)
    if asking is None:
        return Part(_unwrapped(_joined(block.text for block in group)))
    head, tail = group[: asking + 1], group[asking + 1 :]
    return Part(
        _joined(block.text for block in head),
        group[asking].question,
        _joined(block.text for block in tail) if tail else None,
    )


def _joined(texts: Iterable[Text]) -> Text:
    found = list(texts)
    body = "\n\n".join(text.body for text in found)
    return Text(body.strip(), "\n".join(text.formatted_body for text in found))


def _unwrapped(text: Text) -> Text:
    """Without the paragraph's tags where there is only one, as the specification asks for."""
    formatted = text.formatted_body
    if formatted.startswith("<p>") and formatted.endswith("</p>") and formatted.count("<p>") == 1:
        return Text(text.body, formatted[len("<p>") : -len("</p>")])
    return text


def _shortened(text: str, limit: int | None) -> str:
    if limit is None or len(text) <= limit:
        return text
    return f"{text[: limit - 1].rstrip()}…" if limit else ""
