import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from mindbridge.questions.blocks import MAX_BLOCKS, Block, find_blocks

J = '{"question": "Q?", "options": ["A", "B"]}'
BLOCK = f"```interactive\n{J}\n```"


def the_block(text: str) -> Block:
    (block,) = find_blocks(text)
    return block


def around(text: str) -> tuple[str, str]:
    block = the_block(text)
    return text[: block.start], text[block.end :]


@pytest.mark.parametrize(
    "text",
    [
        BLOCK,
        f"```interactive json\n{J}\n```",
        f"``` \tINTERACTIVE  Json \n{J}\n```",
        f"~~~interactive\n{J}\n~~~",
        f"`````interactive\n{J}\n`````",
        f"```interactive\r\n{J}\r\n```\r\n",
        f"   ```interactive\n   {J}\n   ```",
        f"```interactive\n{J}\n```````",
        f"```interactive {J} ```",
        f"```interactive{J}```",
        f"```interactive {J}\n```",
        f"~~~interactive {J} ~~~",
        f"```\ninteractive\n{J}\n```",
        f"```\ninteractive json\n{J}\n```",
        f"```json\nInteractive\n{J}\n```",
        f"~~~ json \n  interactive\n{J}\n~~~",
        f"```\ninteractive {J}\n```",
        f"```interactive\n{J}```",
    ],
)
def test_every_shape_of_a_block_is_found_whole(text: str) -> None:
    """X6"""
    block = the_block(text)
    assert (block.content.strip(), block.closed, block.counts) == (J, True, True)
    assert text[: block.start] + text[block.end :].strip() == ""


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        (f"Let me ask: ```interactive\n{J}\n```\nmore", "Let me ask: ", "\nmore"),
        (f"Let me ask: ```interactive {J} ``` and so on", "Let me ask: ", " and so on"),
        (f"# Pick: ```interactive\n{J}\n```", "# Pick: ", ""),
        (f"Ask:\n```\ninteractive\n{J}\n```\nmore", "Ask:\n", "\nmore"),
        (f"{BLOCK} Let me know\n\n# Rest", "", " Let me know\n\n# Rest"),
        (f"```interactive\n{J}``` Let me know\nmore", "", " Let me know\nmore"),
        (f"```interactive\n{J[:-1]}\n``` Let me know\nmore", "", " Let me know\nmore"),
        (f"a\n\n- b\n\n  ```interactive\n  {J}\n  ```\n- c", "a\n\n- b\n\n", "\n- c"),
        (f"1. ```interactive\n   {J}\n   ```\n2. c", "", "\n2. c"),
        (f"1. Pick ```interactive\n   {J}\n   ```\n2. c", "1. Pick ", "\n2. c"),
        (f"1. b\n   ```interactive\n{J}\n```\nc", "1. b\n", "\nc"),
        (f"text\n      ```interactive\n      {J}\n      ```\nmore", "text\n", "\nmore"),
        (f"- a\n  - b\n\n    ```interactive\n    {J}\n    ```\n", "- a\n  - b\n\n", "\n"),
        (f"> quoted\n\n{BLOCK}\n> quoted", "> quoted\n\n", "\n> quoted"),
        (f"```py\nx\n```\n{BLOCK}\n```py\ny\n```", "```py\nx\n```\n", "\n```py\ny\n```"),
        (f"<details>\n{BLOCK}\n</details>", "<details>\n", "\n</details>"),
    ],
)
def test_text_around_a_block_stays_out_of_it(text: str, before: str, after: str) -> None:
    """X6"""
    assert around(text) == (before, after)


@pytest.mark.parametrize(
    "text",
    [
        f"````markdown\n{BLOCK}\n````",
        f"~~~\n{BLOCK}\n~~~",
        f"```markdown\n```interactive\n{J}\n```",
        f"> ```interactive\n> {J}\n> ```",
        f"> > ```interactive\n> > {J}\n> > ```",
        f"- > ```interactive\n  > {J}\n  > ```",
        f"> Ask: ```interactive {J} ```",
        f"For example:\n\n    ```interactive\n    {J}\n    ```\n",
        f"- ````\n  {BLOCK}\n  ````",
        f"`` ```interactive {J} ``` ``",
        "Open a fence with ```interactive\nand write the question.",
        "```interactively\nx\n```",
        f"```interactive demo\n{J}\n```",
        f"```json\n{J}\n```",
        f"interactive\n{J}",
        f"``interactive {J} ``",
        "```\ninteractive --help\n```",
        "```\ninteractive\nrebase\n```",
        "nothing",
        "",
    ],
)
def test_example_or_mention_is_no_block(text: str) -> None:
    """X7"""
    assert find_blocks(text) == ()


@pytest.mark.parametrize(
    ("text", "content", "after"),
    [
        (f"```interactive\n{J}", J, ""),
        (f"```interactive\n{J}\n\nThe rest.\n\n- of it", J, "\n\nThe rest.\n\n- of it"),
        (f"```interactive\n{J}\n\n```py\nx = 1\n```\nend", J, "\n\n```py\nx = 1\n```\nend"),
        (f"- ```interactive\n  {J}\n- next", J, "\n- next"),
        ('- ```interactive\n  {"question": "Q?",\n\nnext', '{"question": "Q?",', "next"),
        (f"```interactive\n{J[:20]}", J[:20], ""),
        ("```interactive", "", ""),
        (f"````interactive\n{J}\n```", J, "\n```"),
    ],
)
def test_block_without_a_closing_fence_ends_with_its_json(text: str, content: str, after: str) -> None:
    block = the_block(text)
    assert (block.content.strip(), block.closed, text[block.end :]) == (content, False, after)


def test_next_block_ends_one_without_a_closing_fence() -> None:
    """X8"""
    first, second = find_blocks(f"```interactive\n{J[:20]}\n\n{BLOCK}\n")
    assert (first.content.strip(), first.closed) == (J[:20], False)
    assert (second.content.strip(), second.closed) == (J, True)


def test_fence_inside_a_string_does_not_end_the_block() -> None:
    content = '{"question": "Which?\n``` is a fence\n", "options": ["A"]}'
    assert the_block(f"```interactive\n{content}\n```").content.strip() == content


@pytest.mark.parametrize("label", ["see ```interactive {", "```", "~~~interactive {x}", "a ``` b"])
def test_what_looks_like_a_fence_in_a_label_is_a_label(label: str) -> None:
    content = f'{{"question": "Q?", "options": ["{label}", "B"]}}'
    block = the_block(f"```interactive\n{content}\n```")
    assert (block.content.strip(), block.closed) == (content, True)


def test_json_behind_a_fence_in_the_middle_of_json_stays_in_the_block() -> None:
    assert around('```interactive\n{\n```"question": "Q?"}\n```\nmore') == ("", "\nmore")


def test_blocks_on_one_line_are_all_found() -> None:
    text = f"a ```interactive {J}``` b ```interactive {J} ```c\nd"
    blocks = find_blocks(text)
    assert [block.content.strip() for block in blocks] == [J, J]
    assert re.sub(r"[\0]+", "|", text[: blocks[0].start] + "\0" + text[blocks[0].end : blocks[1].start]) == "a | b "
    assert text[blocks[1].end :] == "c\nd"


def test_content_is_that_of_the_reply_byte_for_byte() -> None:
    assert the_block('```interactive\r\n{"a":\r"\0"}\r\n```').content.strip() == '{"a":\r"\0"}'


def test_blocks_beyond_the_limit_are_found_but_do_not_count() -> None:
    text = f"{BLOCK}\n\nprose\n\n" * (MAX_BLOCKS + 2)
    blocks = find_blocks(text)
    assert [block.counts for block in blocks] == [True] * MAX_BLOCKS + [False] * 2
    assert re.sub(r"\s+", " ", text[blocks[-2].end : blocks[-1].start]) == " prose "


@pytest.mark.parametrize("count", [300, 5_000])
def test_any_number_of_blocks_is_found(count: int) -> None:
    """X9"""
    blocks = find_blocks(f"{BLOCK}\n" * count)
    assert len(blocks) == count
    assert sum(block.counts for block in blocks) == MAX_BLOCKS


def test_block_behind_a_long_text_is_found() -> None:
    """X1"""
    text = "A line of prose, not short and not long.\n\n- a point\n  - below it\n\n" * 3_000
    assert around(text + BLOCK) == (text, "")


def test_block_among_more_fences_than_anyone_writes_does_not_count() -> None:
    """X9"""
    block = the_block("- ```\n" * 5_000 + BLOCK)
    assert not block.counts


PLAIN_LINES = ["a", "", "", "- a", "  b", "1. c", "   d", "> q", "# h", "---", "    e", "      f", "\tg", "- - x", ">"]
FENCE_LINES = ["```", "````", "~~~", "```py", "* ```", "  ```", "    ```", ">> ```"]


def random_document(seed: int) -> str:
    """Lines of all kinds with whole blocks in all kinds of containers."""
    source = random.Random(seed)  # noqa: S311 - for examples
    lines: list[str] = []
    for _ in range(source.randint(1, 14)):
        if source.random() > 0.25:
            lines.append(source.choice(PLAIN_LINES + FENCE_LINES))
            continue
        indent = " " * source.choice([0, 0, 1, 2, 3, 4, 6])
        marker = source.choice(["", "", "- ", "1. ", "> ", "* - "])
        inner = indent + (marker if marker == "> " else " " * len(marker))
        fence = source.choice(["```", "~~~", "````"])
        lines += [f"{indent}{marker}{fence}interactive", f"{inner}{J}", f"{inner}{fence}"]
    return "\n".join(lines)


def commonmark_blocks(text: str) -> list[int]:
    """The lines where CommonMark sees fences of the right name outside quotes."""
    found: list[int] = []
    quotes = 0
    for token in MarkdownIt("commonmark", {"html": False}).parse(text):
        quotes += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        if token.type == "fence" and token.info == "interactive" and not quotes and token.map:
            found.append(token.map[0])
    return found


def has_code_in_a_paragraph(text: str) -> bool:
    """CommonMark lets a paragraph swallow a fence that is indented like code; here it is a block."""
    return bool(re.search(r"^.*\S.*\n(?: {4,}|\t)[^\n]*interactive", text, re.MULTILINE))


@settings(deadline=None)
@given(st.integers(0, 10**9))
def test_fences_are_blocks_exactly_where_commonmark_says_so(seed: int) -> None:
    """X7"""
    text = random_document(seed)
    if has_code_in_a_paragraph(text):
        return
    assert [text.count("\n", 0, block.start) for block in find_blocks(text)] == commonmark_blocks(text)
