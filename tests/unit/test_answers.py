"""Reading what was typed, and judging an answer (contract, section 4)."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindbridge.questions.answers import (
    TOLD,
    Try,
    Verdict,
    judge,
    may_answer,
    option_typed,
    strip_reply_fallback,
    typed_number,
)
from mindbridge.questions.lifecycle import State
from mindbridge.questions.model import Option

MEGABYTE = 1024 * 1024


def options(*labels: str) -> tuple[Option, ...]:
    return tuple(
        Option(number=number, emoji="❓", label=label, value=label.lower(), button=f"{number}\ufe0f\u20e3")
        for number, label in enumerate(labels, start=1)
    )


def number_typed(text: str, *, of: int = 3, labels: bool = True) -> int | None:
    option = option_typed(options(*(f"Label {letter}" for letter in "ABCDEFGHIJKL"[:of])), text, labels=labels)
    return None if option is None else option.number


def label_typed(text: str, *labels: str) -> int | None:
    option = option_typed(options(*labels), text, labels=True)
    return None if option is None else option.number


# Numbers


@pytest.mark.parametrize(
    "text",
    [
        "2",
        " 2 ",
        "2\n",
        "\t2\u00a0",
        "\u30002\u3000",
        "2.",
        "2)",
        "２",
        "２．",
        "２）",
        "2\ufe0f\u20e3",
        "2\u20e3",
        "２\ufe0f\u20e3",
        "option 2",
        "Option 2",
        "OPTION  2.",
        "option\t2)",
        "ｏｐｔｉｏｎ　２",
    ],
    ids=ascii,
)
def test_every_typed_form_of_a_number_means_its_option(text: str) -> None:
    """T3"""
    assert (typed_number(text), number_typed(text), number_typed(text, labels=False)) == (2, 2, 2)


@pytest.mark.parametrize(
    "text",
    [
        "02",
        "002",
        "0",
        "0\ufe0f\u20e3",
        "22",
        "222",
        "2 apples",
        "v2",
        "2?",
        "2!",
        "2..",
        "2.)",
        "(2)",
        "#2",
        "+2",
        "-2",
        "2.0",
        "2,",
        "1,2",
        "1 2",
        "1\n2",
        "2:",
        "option2",
        "options 2",
        "the option 2",
        "option",
        "option two",
        "option 2\ufe0f\u20e3 please",
        "two",
        "II",
        "٢",  # NFKC leaves other scripts' digits as they are
        "२",
        "2\u0308",
        "2\ufe0f\u20e32\ufe0f\u20e3",
        "\u20e3",
        "2\u200b3",
    ],
    ids=ascii,
)
def test_what_only_looks_like_a_number_is_no_answer(text: str) -> None:
    """T3"""
    assert number_typed(text) is None


@pytest.mark.parametrize("text", ["", " ", "\n", "\t \n", "\u00a0", "\u3000", "\u2028", ".", ")", "\ufe0f"], ids=ascii)
def test_a_blank_message_is_no_answer(text: str) -> None:
    """T6"""
    assert typed_number(text) is None
    assert number_typed(text) is None
    assert label_typed(text, "", "Yes") is None
    assert label_typed(text, " ", "Yes") is None


@pytest.mark.parametrize("text", ["10", "10.", "10)", "１０", "🔟", "option 10", " 🔟 "], ids=ascii)
def test_ten_means_the_tenth_option_where_there_is_one_and_nothing_where_there_is_none(text: str) -> None:
    assert typed_number(text) == 10
    assert [number_typed(text, of=number) for number in (2, 5, 9, 10, 12)] == [None, None, None, 10, 10]


def test_eleven_and_twelve_count_where_so_many_options_are_there() -> None:
    assert [number_typed(text, of=12) for text in ("11", "12", "13")] == [11, 12, None]
    assert [number_typed(text, of=10) for text in ("11", "12", "13")] == [None, None, None]


def test_a_number_that_the_question_does_not_offer_is_no_answer() -> None:
    assert [number_typed(text, of=3) for text in ("1", "3", "4", "9")] == [1, 3, None, None]


@pytest.mark.parametrize(
    "text",
    [
        "2" * MEGABYTE,
        " " * MEGABYTE,
        "option" + " " * MEGABYTE + "2",
        "\ufdfa" * (MEGABYTE // 3),  # NFKC makes eighteen characters of each
        "> " * (MEGABYTE // 2),
        "0" * MEGABYTE + "2",
        "2" + "\u0308" * MEGABYTE,
    ],
    ids=["digits", "blanks", "option", "growing", "quotes", "zeros", "accents"],
)
def test_a_megabyte_of_text_is_no_answer(text: str) -> None:
    assert typed_number(text) is None
    assert number_typed(text) is None
    assert label_typed(text, text) is None


@given(st.text())
def test_any_text_is_read_without_an_error_and_a_number_read_is_among_those_typed(text: str) -> None:
    number = typed_number(strip_reply_fallback(text))
    assert number is None or 0 <= number <= 99


@given(st.integers(1, 99), st.sampled_from(["{}", " {} ", "{}.", "{})", "option {}", "Option {}.", "\n{}\n"]))
def test_every_number_in_every_plain_form_is_read(number: int, form: str) -> None:
    assert typed_number(form.format(number)) == number


# Labels


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Fast and automated", "Fast and automated"),
        ("  fast AND automated\n", "Fast and automated"),
        ("Ｆａｓｔ", "Fast"),
        ("Fast", "Ｆａｓｔ"),
        ("STRASSE", "Straße"),
        ("straße", "STRASSE"),
        ("ﬁne", "fine"),
        ("cafe\u0301", "café"),
        ("ΟΔΟΣ", "οδος"),
        ("🚀", "🚀"),
        ("<b>yes</b>", "<b>yes</b>"),
        ("two", "Two"),
        ("2 apples", "2 apples"),
        ("options", "Options"),
    ],
    ids=ascii,
)
def test_exactly_a_label_in_any_case_and_width_means_its_option(text: str, label: str) -> None:
    assert label_typed(text, "Another", label) == 2


@pytest.mark.parametrize(
    "text", ["Fast", "Fast and automated!", "I want fast and automated", "fast  and automated", ""]
)
def test_text_that_is_only_part_of_a_label_or_more_is_no_answer(text: str) -> None:
    assert label_typed(text, "Fast and automated", "Careful and manual") is None


def test_labels_do_not_count_where_only_numbers_do() -> None:
    assert option_typed(options("Fast", "Careful"), "fast", labels=False) is None


@pytest.mark.parametrize("other", ["Yes", "YES", " yes ", "ｙｅｓ"])
def test_a_label_that_two_options_have_means_neither(other: str) -> None:
    assert label_typed("yes", "Yes", other) is None
    assert label_typed("no", "Yes", other, "No") == 3


@pytest.mark.parametrize("text", ["Option", "option", " OPTION ", "ｏｐｔｉｏｎ"])
def test_the_default_label_is_no_answer(text: str) -> None:
    assert label_typed(text, "Option", "Yes") is None


@pytest.mark.parametrize(
    "label", ["2", "2.", "２", "2\ufe0f\u20e3", "Option 2", "22", "02", "2024", "7.", "🔟"], ids=ascii
)
def test_a_label_that_is_a_number_is_no_answer_by_itself(label: str) -> None:
    assert label_typed(label, label) is None
    assert label_typed(label, label, "Yes") == (2 if typed_number(label) == 2 else None)


def test_a_number_means_the_option_with_it_even_where_another_option_has_it_as_label() -> None:
    assert [label_typed(text, "2", "1") for text in ("1", "2")] == [1, 2]


# The quote before a reply


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("> <@a:b> 1. Yes\n\n2", "2"),
        ("> <@a:b> What?\n> \n> 1. Yes\n> 2. No\n\n2", "2"),
        ("> <@a:b> What?\n>\n> 1. Yes\n\n2", "2"),
        ("> * <@a:b> waves\n\n2", "2"),
        ("> <@a:b> 1. Yes\n2", "2"),
        ("> <@a:b> 1. Yes\n\nfirst line\n\nsecond line", "first line\n\nsecond line"),
        ("> <@a:b> 1. Yes\n\n> my own quote\n\nwords", "> my own quote\n\nwords"),
        ("> <@a:b> 1. Yes\n   \n2", "2"),
        ("> <@a:b> 1. Yes\n\n", ""),
        ("> <@a:b> 1. Yes", ""),
        ("2", "2"),
        ("", ""),
        (">2", ">2"),
        (" > 2", " > 2"),
        ("2\n> <@a:b> 1. Yes\n\n3", "2\n> <@a:b> 1. Yes\n\n3"),
    ],
)
def test_the_quote_before_a_reply_is_cut_off_and_nothing_else(text: str, stripped: str) -> None:
    """T2"""
    assert strip_reply_fallback(text) == stripped


@given(
    st.lists(st.text(st.characters(exclude_characters="\n")), min_size=1), st.text().filter(lambda it: it[:1] != ">")
)
def test_what_stands_below_any_quote_is_left_as_it_was(quoted: list[str], said: str) -> None:
    """T2"""
    quote = "\n".join(f"> {line}" for line in ["<@bob:example.org> 1. Yes", *quoted])
    assert strip_reply_fallback(f"{quote}\n\n{said}") == said


def test_quote_that_names_nobody_is_the_writers_own() -> None:
    """T2"""
    assert strip_reply_fallback("> words\n\n2") == "> words\n\n2"


# Who, and what becomes of it

TAKEN = 2
WHO = list(itertools.product([True, False], repeat=4))


def expected(state: State, number: int, who: tuple[bool, bool, bool, bool]) -> Verdict:
    is_person, allowed, may, withdrawn = who
    by_state = {
        State.OPEN: Verdict.SELECTED,
        State.ANSWERED: Verdict.SAME_OPTION if number == TAKEN else Verdict.ALREADY_ANSWERED,
        State.SUPERSEDED: Verdict.SUPERSEDED,
        State.CLOSED: Verdict.QUESTION_CLOSED,
        State.POSTING: Verdict.UNKNOWN_QUESTION,
        State.FAILED: Verdict.UNKNOWN_QUESTION,
    }
    reasons = [
        (not is_person, Verdict.NOT_A_PERSON),
        (not allowed, Verdict.NOT_ALLOWED),
        (withdrawn, Verdict.WITHDRAWN),
        (not may, Verdict.NOT_ANSWERER),
    ]
    return next((verdict for holds, verdict in reasons if holds), by_state[state])


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("number", [1, TAKEN])
@pytest.mark.parametrize("who", WHO, ids=str)
def test_the_verdict_is_the_tables(state: State, number: int, who: tuple[bool, bool, bool, bool]) -> None:
    is_person, allowed, may, withdrawn = who
    attempt = Try(number=number, is_person=is_person, allowed=allowed, may_answer=may, withdrawn=withdrawn)
    taken = TAKEN if state is State.ANSWERED else None
    assert judge(state, taken, attempt) is expected(state, number, who)


def test_a_selection_needs_a_person_who_is_allowed_and_may_answer_and_an_open_question() -> None:
    selected = [
        (state, who)
        for state in State
        for who in WHO
        if judge(state, None, Try(1, *who)) is Verdict.SELECTED  # number, is_person, allowed, may_answer, withdrawn
    ]
    assert selected == [(State.OPEN, (True, True, True, False))]


def test_only_those_who_could_have_answered_a_live_question_are_told() -> None:
    assert {Verdict.ALREADY_ANSWERED, Verdict.NOT_ANSWERER, Verdict.SUPERSEDED} == TOLD


ALICE, BOB = "@alice:example.org", "@bob:example.org"


@pytest.mark.parametrize(
    ("answerers", "alice", "bob"),
    [
        ("anyone", True, True),
        ("requester", True, False),
        ((BOB,), False, True),
        ((ALICE, BOB), True, True),
        (("@carol:example.org",), False, False),
        (("@bob:example.org.evil",), False, False),
    ],
)
def test_who_may_answer_is_as_configured(answerers: object, alice: bool, bob: bool) -> None:  # noqa: FBT001
    assert may_answer(answerers, requester=ALICE, sender=ALICE) is alice  # type: ignore[arg-type] # one of the forms
    assert may_answer(answerers, requester=ALICE, sender=BOB) is bob  # type: ignore[arg-type]
