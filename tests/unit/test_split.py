import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindbridge.questions.split import MIN_LIMIT, json_size, split_markdown

LIMIT = 1_000
PARAGRAPH = "word " * 60

# fmt: off
FRAGMENTS = (
    "a", "word ", "x" * 700, "é" * 300, "🚀" * 200, "\n", "\n\n", "  ", "    ", "\x01" * 90, '"' * 300, "- ",
    "1. ", "> ", "```", "```py\n", "```\n", "~~~\n", "\n```\n", "\n   ```js\n", "\n> ```\n", "line\n" * 90,
)
# fmt: on
long_text = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)


def without_blanks(text: str) -> str:
    return "".join(text.split())


def is_within(part: str, whole: str) -> bool:
    """Whether all characters of `part` are in `whole`, in their order."""
    characters = iter(whole)
    return all(character in characters for character in part)


def test_text_that_fits_is_not_touched() -> None:
    assert split_markdown("  a\n\n```\nb\n```", LIMIT) == ("  a\n\n```\nb\n```",)


@pytest.mark.parametrize("text", ["", "  \n\t\n"])
def test_blank_text_has_no_pieces(text: str) -> None:
    assert split_markdown(text, LIMIT) == ()


def test_text_is_cut_between_paragraphs() -> None:
    """X1"""
    paragraphs = [f"{number} {PARAGRAPH}".strip() for number in range(7)]

    pieces = split_markdown("\n\n".join(paragraphs), LIMIT)

    assert [piece.split("\n\n") for piece in pieces] == [paragraphs[0:3], paragraphs[3:6], paragraphs[6:]]


def test_list_is_cut_before_an_item_and_not_within_one() -> None:
    items = [f"{number}. item\n\n   {PARAGRAPH}".strip() for number in range(1, 6)]

    pieces = split_markdown("\n\n".join(items), LIMIT)

    assert all(re.match(r"\d\. item", piece) for piece in pieces)


def test_long_paragraph_is_cut_between_lines() -> None:
    lines = [f"{number} " + "w" * 90 for number in range(30)]

    pieces = split_markdown("\n".join(lines), LIMIT)

    assert [line for piece in pieces for line in piece.split("\n")] == lines


def test_long_line_is_cut_between_words() -> None:
    words = [f"word{number}" for number in range(500)]
    assert [word for piece in split_markdown(" ".join(words), LIMIT) for word in piece.split()] == words


def test_long_word_is_cut_where_no_emoji_is_torn_apart() -> None:
    family = "👩🏽‍🚀"

    pieces = split_markdown(family * 300, LIMIT)

    assert "".join(pieces) == family * 300
    assert all(piece.startswith("👩") and piece.endswith("🚀") for piece in pieces)


def test_accent_stays_with_its_letter() -> None:
    pieces = split_markdown("e\u0301" * 900, LIMIT)
    assert all(piece.startswith("e") for piece in pieces)


def test_fence_is_not_cut_where_it_fits_into_a_piece() -> None:
    fence = "```py\n" + "x = 1\n\n" * 70 + "```"

    pieces = split_markdown(f"{PARAGRAPH}\n\n{fence}\n\n{PARAGRAPH}", LIMIT)

    assert fence in [piece.strip() for piece in pieces]


def test_fence_that_must_be_cut_is_closed_and_opened_again_with_its_language() -> None:
    lines = [f"x = {number}" for number in range(400)]
    text = "before\n\n```py title\n" + "\n".join(lines) + "\n```\n\nafter"

    before, *code, last = split_markdown(text, LIMIT)

    assert before == "before"
    assert all(piece.startswith("```py") and piece.endswith("\n```") for piece in code)
    assert last.startswith("```py\n")
    assert last.endswith("```\n\nafter")
    shown = "\n".join([*code, last])
    assert [line for line in shown.split("\n") if line.startswith("x")] == lines


def test_fence_in_a_list_goes_on_outside_of_it() -> None:
    text = "1. item\n\n   ```js\n" + "   y()\n" * 400 + "   ```\n   more\n2. next"

    first, second, *_, last = split_markdown(text, LIMIT)

    assert first == "1. item"
    assert second.startswith("   ```js\n   y()\n")
    assert second.endswith("\n   ```")
    assert last.startswith("```js\ny()\n")
    assert last.endswith("y()\n```\n   more\n2. next")


def test_fence_in_a_quote_goes_on_in_a_quote() -> None:
    for piece in split_markdown("> ```\n" + "> y()\n" * 400 + "> ```", LIMIT):
        assert piece.startswith("> ```\n> y()")
        assert piece.endswith("\n> ```")


def test_fence_within_a_longer_fence_is_content() -> None:
    text = "````md\n" + "```\nx\n```\n" * 200 + "````"
    for piece in split_markdown(text, LIMIT):
        assert piece.startswith("````md\n")
        assert piece.endswith("\n````")


@settings(deadline=None)
@given(long_text | st.text(st.characters(exclude_categories=["Cs"])), st.integers(MIN_LIMIT, 3_000))
def test_pieces_fit_and_no_text_is_lost(text: str, limit: int) -> None:
    """X1"""
    pieces = split_markdown(text, limit)

    assert all(json_size(piece) <= limit for piece in pieces)
    assert all(piece.strip() for piece in pieces)
    assert is_within(without_blanks(text), without_blanks("".join(pieces)))


@settings(deadline=None)
@given(
    st.lists(st.text(st.sampled_from("aé🚀\u0301 .\n"), min_size=1, max_size=20)).map(lambda words: "".join(words) * 30)
)
def test_pieces_of_text_without_fences_add_nothing(text: str) -> None:
    assert without_blanks("".join(split_markdown(text, LIMIT))) == without_blanks(text)
