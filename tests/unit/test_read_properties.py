"""What holds of any reply, however strange."""

import json
import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from mindbridge.questions.blocks import find_blocks
from mindbridge.questions.emoji_keys import buttons_for, emoji_of_field, keycap
from mindbridge.questions.fields import many_lines, one_line
from mindbridge.questions.model import JsonValue, Option, PlainQuestion, Prose, Question, Reply
from mindbridge.questions.read import read_reply

EMOJI = ["🚀", "🔍", "❤️", "👍", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "❓", "©️"]

texts = st.text(st.characters(codec="utf-8"), max_size=20)
scalars: st.SearchStrategy[JsonValue] = (
    st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
values: st.SearchStrategy[JsonValue] = (
    scalars | st.lists(scalars | st.none(), max_size=3) | st.dictionaries(texts, scalars | st.none(), max_size=3)
)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    fields = draw(st.lists(st.tuples(st.sampled_from(["", *EMOJI]), texts, values), min_size=1, max_size=5))
    emojis = [emoji_of_field(field or keycap(number), number).emoji for number, (field, _, _) in enumerate(fields, 1)]
    options = tuple(
        Option(number, emoji, one_line(label) or "A", value, button, one_line(label[1:]) or None)
        for number, (emoji, (_, label, value), button) in enumerate(
            zip(emojis, fields, buttons_for(emojis), strict=True), 1
        )
    )
    return Question(many_lines(draw(texts)) or "Q?", options)


def write_block(question: Question, fence: str = "```", *, indent: int | None = None, ascii_only: bool = False) -> str:
    options = [
        {"emoji": option.emoji, "label": option.label, "value": option.value, "description": option.description}
        for option in question.options
    ]
    payload = json.dumps(
        {"question": question.text, "options": options}, indent=indent, ensure_ascii=ascii_only, allow_nan=False
    )
    return f"{fence}interactive\n{payload}\n{fence}"


def ask(text: str, *labels: str) -> Question:
    return Question(text, tuple(Option(number, "🚀", label, label, "🚀") for number, label in enumerate(labels, 1)))


FIRST, SECOND = ask("which", "fast", "careful"), ask("sure", "yes")
BLOCKS = [
    write_block(FIRST),
    write_block(SECOND, "~~~", indent=2),
    write_block(SECOND, "`````", indent=0),
    write_block(ask("it’s “[{,:}]”?", "`don't`", "// {no}", "```"), ascii_only=True),
]
blocks = st.sampled_from(BLOCKS)


CHARACTERS = "{}[]\",:'\\`\n“”#/x"
BREAKERS = [*CHARACTERS, "```", "//", "NaN"]


@st.composite
def broken_blocks(draw: st.DrawFn) -> str:
    """A block with some of its characters left out, doubled, or replaced."""
    text = draw(blocks)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(text)))
        kind = draw(st.sampled_from(["cut", "lose", "put"]))
        if kind == "cut":
            text = text[:place]
        elif kind == "lose":
            text = text[:place] + text[place + draw(st.integers(1, 12)) :]
        else:
            text = text[:place] + draw(st.sampled_from(BREAKERS)) + text[place:]
    return text


prose_lines = st.builds(
    "{}prose{}{}".format,
    st.sampled_from(["", "", "  ", "- ", "> ", "# ", "1. "]),
    st.integers(0, 99),
    st.sampled_from(["", " and more", "!", " **x** `y`"]),
)
FENCES = ["```", "~~~", "````", "```interactive", "```interactive\n", "```interactive {", "interactive", "`"]
MARKS = ["\n", "\r\n", "- ", "    ", "> ", "1. ", "]}", "}", "{", "//", "\t", "\0", "\ud800", "\u2028"]
PIECES = ['{"question": "', '"options": [', '"label": "A"']
fragments = st.sampled_from(FENCES + MARKS + PIECES)
replies = st.lists(fragments | blocks | broken_blocks() | prose_lines | st.text(max_size=10), max_size=8).map("".join)


def visible(reply: Reply) -> list[str]:
    """All text of a reply that a person sees, a string for each segment."""
    shown: list[str] = []
    for segment in reply.segments:
        match segment:
            case Prose(markdown):
                shown.append(markdown)
            case PlainQuestion(text, lines):
                shown.append("\n".join([text, *lines]))
            case Question(text, options):
                shown.append("\n".join([text, *(option.label for option in options)]))
    return shown


@settings(deadline=None)
@given(questions(), st.sampled_from(["```", "~~~", "````"]), st.sampled_from([None, 0, 1, 4]), st.booleans())
@example(Question("```interactive {", (Option(1, "🚀", "```", "~~~interactive", "🚀"),)), "```", None, False)  # noqa: FBT003
def test_written_question_is_read_as_it_was(
    question: Question,
    fence: str,
    indent: int | None,
    ascii_only: bool,  # noqa: FBT001 - drawn by hypothesis
) -> None:
    assert read_reply(write_block(question, fence, indent=indent, ascii_only=ascii_only)) == Reply((question,))


@settings(deadline=None)
@given(replies)
def test_any_reply_is_read(text: str) -> None:
    reply = read_reply(text)
    assert sum(isinstance(segment, Question) for segment in reply.segments) <= 1
    if reply.question is not None:
        options = reply.question.options
        assert [option.number for option in options] == list(range(1, len(options) + 1))
        assert len(options) <= 5
        assert len({option.button.replace("\ufe0f", "") for option in options}) == len(options)
        assert all(len(option.label.splitlines()) == 1 for option in options)
    "".join(visible(reply)).encode()


@settings(deadline=None)
@given(st.lists(prose_lines, max_size=4), blocks | broken_blocks(), st.lists(prose_lines, max_size=4))
def test_no_line_around_a_block_is_lost(before: list[str], block: str, after: list[str]) -> None:
    """All of it where the block is whole; where it is broken, what stands before it."""
    text = "\n".join([*before, "", block, "", *after])
    found = find_blocks(text)
    is_whole = len(found) == 1 and found[0].closed and text[found[0].start : found[0].end] == block
    shown = iter([line for part in visible(read_reply(text)) for line in part.split("\n")])
    # Looking for one line after the other uses up those before it, so this tells their order too.
    assert all(line in shown for line in (before + after if is_whole else before))


@settings(deadline=None)
@given(
    st.lists(prose_lines, max_size=3),
    blocks,
    st.lists(prose_lines, max_size=3),
    blocks,
    st.lists(prose_lines, max_size=3),
)
def test_prose_and_questions_keep_their_order(
    first: list[str], one: str, second: list[str], other: str, third: list[str]
) -> None:
    reply = read_reply("\n\n".join(["\n".join(first), one, "\n".join(second), other, "\n".join(third)]))
    kinds = [type(segment) for segment in reply.segments]
    expected = [Prose] * bool(first) + [Question] + [Prose] * bool(second) + [PlainQuestion] + [Prose] * bool(third)
    assert kinds == expected
    assert [part.markdown for part in reply.segments if isinstance(part, Prose)] == [
        "\n".join(lines) for lines in (first, second, third) if lines
    ]


KEYS = re.compile(r"[\"'“](?:question|options|label|value|emoji)[\"'”]\s*:")
plain_blocks = st.sampled_from([write_block(FIRST), write_block(SECOND, indent=1)])


@settings(deadline=None)
@given(plain_blocks, st.data())
def test_block_cut_off_anywhere_shows_no_json(block: str, data: st.DataObject) -> None:
    text = "Before\n\n" + block[: data.draw(st.integers(len("```interactive"), len(block) - len("\n```")))]
    reply = read_reply(text)
    assert not any("{" in part or KEYS.search(part) for part in visible(reply))
    assert visible(reply)[0] == "Before"


@settings(deadline=None)
@given(plain_blocks, st.data())
def test_block_with_a_broken_character_shows_no_json(block: str, data: st.DataObject) -> None:
    start, stop = len("```interactive\n"), len(block) - len("\n```")
    place = data.draw(st.integers(start, stop))
    put = data.draw(st.sampled_from(["", *CHARACTERS]))
    text = f"Before\n\n{block[:place]}{put}{block[place + 1 :] if place < stop else block[place:]}\n\nAfter"
    reply = read_reply(text)
    assert not any(KEYS.search(part) for part in visible(reply))
    assert visible(reply)[0] == "Before"
    assert visible(reply)[-1] == "After"
