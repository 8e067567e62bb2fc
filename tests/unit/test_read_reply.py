import pytest

from mindbridge.questions.blocks import MAX_BLOCKS
from mindbridge.questions.model import UNREADABLE, Option, PlainQuestion, ProblemCode, Prose, Question, Reply
from mindbridge.questions.read import MAX_REPAIRS, MAX_REPLY_BYTES, read_reply

BLOCK = """```interactive
{"question": "Q?", "options": [{"emoji": "🚀", "label": "A"}, {"emoji": "🔥", "label": "B"}]}
```"""
QUESTION = Question("Q?", (Option(1, "🚀", "A", "a", "🚀"), Option(2, "🔥", "B", "b", "🔥")))
PLAIN = PlainQuestion("Q?", ("🚀 A", "🔥 B"))
BROKEN = '```interactive\n{"question": "Broken?", "options": [\n```'
MENDABLE = '```interactive\n{"question": "Q?", "options": ["A",]}\n```'


def codes(reply: Reply) -> list[ProblemCode]:
    return [problem.code for problem in reply.problems]


@pytest.mark.parametrize("text", ["Hello", "\n  Hello\r\n\n", "interactive", "```py\nx\n```", f"````\n{BLOCK}\n````"])
def test_reply_without_a_block_is_its_own_text(text: str) -> None:
    """X7"""
    assert read_reply(text) == Reply((Prose(text),))


@pytest.mark.parametrize("text", ["", " ", "\n\r\n\t"])
def test_empty_reply_is_nothing(text: str) -> None:
    assert read_reply(text) == Reply(())


def test_question_stands_where_its_block_stood() -> None:
    assert read_reply(f"\n Before\n\n- it\n\n \n{BLOCK}\n\n\n  after  \n") == Reply(
        (Prose("\n Before\n\n- it"), QUESTION, Prose("  after  \n"))
    )


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        (f"Let me ask: {BLOCK} Let me know", "Let me ask:", "Let me know"),
        (f"hard break  \n\n{BLOCK}\n\n    code\n", "hard break  ", "    code\n"),
        (f"a\r\n\r\n{BLOCK}\r\n\r\n  b\r\n", "a", "  b\r\n"),
    ],
)
def test_only_blank_lines_next_to_a_block_are_left_out(text: str, before: str, after: str) -> None:
    assert read_reply(text) == Reply((Prose(before), QUESTION, Prose(after)))


def test_only_the_first_question_is_live() -> None:
    reply = read_reply(f"a\n\n{BLOCK}\n\nb\n\n{BLOCK}\n\nc\n\n{BLOCK}")
    assert reply.segments == (Prose("a"), QUESTION, Prose("b"), PLAIN, Prose("c"), PLAIN)
    assert codes(reply) == [ProblemCode.BLOCK_NOT_LIVE] * 2
    assert [problem.message.split(":")[0] for problem in reply.problems] == ["block 2", "block 3"]


def test_bad_block_does_not_take_a_good_one_down() -> None:
    """X8"""
    reply = read_reply(f"{BROKEN}\n\nthen\n\n{BLOCK}")
    assert reply.segments == (PlainQuestion("Broken?"), Prose("then"), QUESTION)
    assert codes(reply) == [ProblemCode.BLOCK_CUT_OFF]


def test_bad_block_without_an_end_does_not_take_a_good_one_down() -> None:
    """X8"""
    reply = read_reply(f'```interactive\n{{"question": "Broken?", "opt\n\n{BLOCK}')
    assert reply.segments == (PlainQuestion("Broken?"), QUESTION)


def test_question_too_large_to_be_asked_leaves_the_place_to_the_next() -> None:
    large = BLOCK.replace("Q?", "x" * 9_000)
    reply = read_reply(f"{large}\n\n{BLOCK}")
    assert reply.segments == (PlainQuestion("x" * 9_000, PLAIN.lines), QUESTION)
    assert codes(reply) == [ProblemCode.METADATA_TOO_LARGE]


def test_prose_inside_a_block_stands_next_to_its_question() -> None:
    reply = read_reply(BLOCK.replace("\n{", "\nHere:\n{").replace("}\n", "}\nThere.\n"))
    assert reply.segments == (Prose("Here:"), QUESTION, Prose("There."))


@pytest.mark.parametrize("max_options", [1, 2, 10])
def test_limit_of_options_is_the_one_that_was_asked_for(max_options: int) -> None:
    labels = ", ".join(f'"{number}"' for number in range(12))
    reply = read_reply(f'```interactive\n{{"options": [{labels}]}}\n```', max_options=max_options)
    assert reply.question is not None
    assert len(reply.question.options) == max_options
    assert codes(reply) == [ProblemCode.OPTIONS_TRUNCATED]


@pytest.mark.parametrize("max_options", [-1, 0, 11])
def test_limit_of_options_without_keycaps_is_refused(max_options: int) -> None:
    with pytest.raises(ValueError, match="from 1 to 10"):
        read_reply("", max_options=max_options)


def test_only_three_blocks_of_a_reply_are_repaired() -> None:
    reply = read_reply("\n\n".join([MENDABLE] * (MAX_REPAIRS + 1) + [BLOCK]))
    assert codes(reply) == [ProblemCode.BLOCK_NOT_LIVE] * 2 + [
        ProblemCode.BLOCK_UNREADABLE,
        ProblemCode.BLOCK_NOT_LIVE,
    ]
    assert "too many blocks needed repair" in reply.problems[2].message


@pytest.mark.parametrize(("letter", "kept"), [("x", MAX_REPLY_BYTES), ("é", MAX_REPLY_BYTES // 2), ("€", 87_381)])
def test_reply_over_the_limit_is_cut_at_a_character_and_told(letter: str, kept: int) -> None:
    """X9"""
    reply = read_reply(letter * (MAX_REPLY_BYTES + 1))
    assert reply.segments == (Prose(letter * kept),)
    assert codes(reply) == [ProblemCode.REPLY_TOO_LONG]
    assert read_reply(letter * kept).problems == ()


def test_block_that_the_limit_cuts_is_cut_off() -> None:
    """X9"""
    text = "x" * (MAX_REPLY_BYTES - 40) + "\n" + BLOCK
    reply = read_reply(text)
    assert (reply.segments[-1], codes(reply)) == (
        PlainQuestion("Q?"),
        [ProblemCode.REPLY_TOO_LONG, ProblemCode.BLOCK_CUT_OFF],
    )


def test_surrogates_are_joined_or_replaced() -> None:
    """X9"""
    assert read_reply("a\ud83d\ude80b\ud800c\udc00") == Reply((Prose("a🚀b\ufffdc\ufffd"),))


def test_blocks_beyond_the_limit_are_a_sentence_each_and_told_once() -> None:
    """X9"""
    text = f"{BLOCK}\n" * MAX_BLOCKS + f"\na\n\n{BLOCK}\n\n{BLOCK}\n\nb\n\n{BLOCK}\nc"
    reply = read_reply(text)
    assert reply.segments == (
        QUESTION,
        *[PLAIN] * (MAX_BLOCKS - 1),
        Prose(f"a\n\n{UNREADABLE}\n\nb\n\n{UNREADABLE}\n\nc"),
    )
    assert codes(reply) == [ProblemCode.BLOCK_NOT_LIVE] * (MAX_BLOCKS - 1) + [ProblemCode.BLOCK_UNREADABLE]


def test_reply_of_thousands_of_blocks_is_a_short_one() -> None:
    """X9"""
    reply = read_reply(f"{BLOCK}\n" * 10_000)
    assert reply.question == QUESTION
    assert reply.segments[-1] == Prose(UNREADABLE)
    assert len(reply.segments) == MAX_BLOCKS + 1


HOSTILE = [
    "`",
    "~",
    "```",
    "![",
    "[",
    "[" * 5_000,
    "{",
    '{"',
    "'",
    '"',
    "“",
    "\\",
    "/*",
    "#",
    "> ",
    "- ",
    "1. ",
    "\n",
    " ",
]
HOSTILE += [
    "```interactive\n",
    "```interactive {",
    '```interactive {"',
    "    ```interactive\n",
    "- ```interactive\n  {\n",
]
HOSTILE += [
    "```\ninteractive\n",
    "interactive ",
    "```interactive\n{}\n```\n",
    "a ```interactive {}``` ",
    "\0",
    "\ud800",
    "(",
    '"a"b',
]


@pytest.mark.parametrize("unit", HOSTILE, ids=lambda unit: ascii(unit)[:30])
@pytest.mark.parametrize(
    "start", ["", "```interactive\n", '```interactive\n{"question": "Q?", "options": ["A', "x ```interactive {"]
)
def test_hostile_reply_is_read_like_any_other(start: str, unit: str) -> None:
    """X9"""
    reply = read_reply(start + unit * (60_000 // len(unit)))
    assert reply.question is None
    assert reply.problems or len(reply.segments) <= 1
