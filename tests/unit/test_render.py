import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindbridge.questions.model import INSTRUCTION, JsonValue, Option, PlainQuestion, Prose, Question, Reply
from mindbridge.questions.read import read_reply
from mindbridge.questions.render import (
    CONTENT_BUDGET,
    NAME_LIMIT,
    Part,
    Text,
    answered_line,
    part_from_json,
    part_to_json,
    render_reply,
)
from tests.unit.html_tags import look_at

BLOCK = """```interactive
{"question": "What approach would you prefer?",
 "options": [{"emoji": "🚀", "label": "Fast and automated", "value": "fast"},
             {"emoji": "🔍", "label": "Careful and manual", "value": "careful"}]}
```"""
FAST = Option(1, "🚀", "Fast and automated", "fast", "🚀")
CAREFUL = Option(2, "🔍", "Careful and manual", "careful", "🔍")
QUESTION = Question("What approach would you prefer?", (FAST, CAREFUL))
BODY = """What approach would you prefer?

1. 🚀 Fast and automated
2. 🔍 Careful and manual

React with an emoji or type the number to respond."""
FORMATTED = """<p>What approach would you prefer?</p>
<p>1. 🚀 Fast and automated<br>
2. 🔍 Careful and manual</p>
<p>React with an emoji or type the number to respond.</p>"""
NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
# With the relation, what the server adds, and the outer line of an edit, an event must stay under 65,536 bytes.
EVENT_LIMIT = 61_000


def render_one(*segments: Prose | PlainQuestion | Question) -> Part:
    (part,) = render_reply(Reply(segments))
    return part


def ask(*labels: str, text: str = "Which?") -> Question:
    return Question(text, tuple(Option(number, "🚀", label, label, "🚀") for number, label in enumerate(labels, 1)))


def metadata(question: Question) -> dict[str, object]:
    options = [
        {"number": option.number, "emoji": option.emoji, "label": option.label, "button": option.button}
        for option in question.options
    ]
    fixed = {"version": 1, "question_id": "q" * 64, "revision": 1, "state": "answered", "kind": "choice"}
    return {**fixed, "multiple": False, "options": options}


def content_size(part: Part, status: str | None = INSTRUCTION) -> int:
    text = part.text(status)
    content: dict[str, object] = {"body": text.body, "formatted_body": text.formatted_body}
    if part.question:
        content["dev.mindbridge.question"] = metadata(part.question)
    return len(json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode())


def test_question_reads_as_the_contract_shows_it() -> None:
    assert render_one(QUESTION).text() == Text(BODY, FORMATTED)


def test_question_stands_in_place_of_its_block() -> None:
    (part,) = render_reply(read_reply(f"I see **two** ways.\n\n{BLOCK}\n\nTake your *time*."))

    assert part.text() == Text(
        f"I see **two** ways.\n\n{BODY}\n\nTake your *time*.",
        f"<p>I see <strong>two</strong> ways.</p>\n{FORMATTED}\n<p>Take your <em>time</em>.</p>",
    )
    assert part.question is not None
    assert [option.value for option in part.question.options] == ["fast", "careful"]


def test_answered_question_has_the_answer_in_place_of_the_instruction() -> None:
    part = render_one(Prose("before"), QUESTION, Prose("after"))

    answered = part.text("✔ 1. 🚀 Fast & automated")

    assert answered.body == f"before\n\n{BODY}\n\nafter".replace(INSTRUCTION, "✔ 1. 🚀 Fast & automated")
    assert answered.formatted_body == f"<p>before</p>\n{FORMATTED}\n<p>after</p>".replace(
        INSTRUCTION, "✔ 1. 🚀 Fast &amp; automated"
    )


def test_question_without_status_has_no_status_line() -> None:
    text = render_one(QUESTION, Prose("after")).text(None)
    assert text.body == f"{BODY}\n\nafter".replace(f"\n\n{INSTRUCTION}", "")
    assert text.formatted_body == f"{FORMATTED}\n<p>after</p>".replace(f"\n<p>{INSTRUCTION}</p>", "")


def test_message_without_question_has_no_status_line() -> None:
    assert render_one(Prose("hello *you*")).text("✔ 1.") == Text("hello *you*", "hello <em>you</em>")


@pytest.mark.parametrize("text", ["", " \n\t\n", "\r\n"])
def test_empty_reply_becomes_no_message(text: str) -> None:
    assert render_reply(read_reply(text)) == ()
    assert render_reply(Reply((Prose(text),))) == ()


def test_plain_text_is_not_wrapped_in_a_paragraph_that_it_does_not_need() -> None:
    assert render_one(Prose("a < b")).text() == Text("a < b", "a &lt; b")
    assert render_one(Prose("a\n\nb")).text() == Text("a\n\nb", "<p>a</p>\n<p>b</p>")
    assert render_one(Prose("> a")).text() == Text("> a", "<blockquote>\n<p>a</p>\n</blockquote>")


def test_description_stands_under_its_option() -> None:
    question = replace(QUESTION, options=(replace(FAST, description="in an <hour>"), CAREFUL))

    text = render_one(question).text()

    assert "1. 🚀 Fast and automated\n   in an <hour>\n2. 🔍 Careful and manual\n" in text.body
    assert "1. 🚀 Fast and automated<br>\n&nbsp;&nbsp;&nbsp;in an &lt;hour&gt;<br>\n2. 🔍" in text.formatted_body


def test_question_that_is_not_live_is_a_plain_list_without_numbers() -> None:
    plain = PlainQuestion("Which\n<one>?", ("🚀 Fast", "🔍 <b>Careful</b>"))
    assert render_one(plain).text() == Text(
        "Which\n<one>?\n\n- 🚀 Fast\n- 🔍 <b>Careful</b>",
        "<p>Which<br>\n&lt;one&gt;?</p>\n<ul>\n<li>🚀 Fast</li>\n<li>🔍 &lt;b&gt;Careful&lt;/b&gt;</li>\n</ul>",
    )


def test_unreadable_block_shows_one_sentence_and_nothing_of_its_json() -> None:
    """X6"""
    (part,) = render_reply(read_reply('```interactive\n[{"a": 1\n```'))
    assert part.text() == Text("(A question could not be read.)", "(A question could not be read.)")
    assert part.question is None


@pytest.mark.parametrize(
    "hostile", ["<img src=x onerror=alert(1)>", "<b>bold</b>", "[a](javascript:alert(1))", "**a** &amp;"]
)
def test_markup_in_question_and_labels_is_text(hostile: str) -> None:
    """X3"""
    seen = look_at(render_one(ask(hostile, text=hostile)).text().formatted_body)
    assert set(seen.tags) == {"p"}
    assert seen.text == f"{hostile}\n1. 🚀 {hostile}\n{INSTRUCTION}"


def test_newline_in_a_label_forges_no_option() -> None:
    """X4"""
    text = render_one(ask("Yes\n2. 🔍 No", "Maybe\u2028\r3. All")).text()
    assert text.body.splitlines()[2:4] == ["1. 🚀 Yes 2. 🔍 No", "2. 🚀 Maybe 3. All"]
    assert look_at(text.formatted_body).tags.count("br") == 1


def test_names_in_question_and_labels_become_no_mentions() -> None:
    """X2"""
    seen = look_at(render_one(Prose("@room"), ask("@alice:example.org", text="@room?")).text().formatted_body)
    assert "a" not in seen.tags


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("1. one\n2. two\n\n", "\n\n3. three"),
        ("7. seven\n\n", "\n\n2. two"),
        ("- item\n\n  ", "\n  more\n- item"),
        ("1. item\n\n   ", "\n\n   more\n2. next"),
        ("- a\n  - b\n\n    ", "\n    more\n\n1. c"),
        ("text\n", "\ntext"),
        ("> quoted\n\n", "\n\n    code"),
    ],
)
def test_number_shown_is_the_number_that_counts_whatever_stands_around(before: str, after: str) -> None:
    """X5"""
    block = BLOCK.replace("\n", "\n" + " " * (len(before) - len(before.rstrip(" "))))

    (part,) = render_reply(read_reply(before + block + after))

    assert part.question is not None
    assert [(option.number, option.label) for option in part.question.options] == [(1, FAST.label), (2, CAREFUL.label)]
    text = part.text()
    assert FORMATTED in text.formatted_body
    assert BODY in text.body
    assert look_at(text.formatted_body).faults == []


def test_text_after_a_block_in_a_list_is_not_taken_for_code() -> None:
    text = render_one(Prose("- a\n  - b:"), QUESTION, Prose("      more\n- c")).text()
    assert "<pre>" not in text.formatted_body
    assert "<p>more</p>" in text.formatted_body


def test_link_definition_behind_the_block_counts_before_it() -> None:
    text = render_one(Prose("see [the notes]"), QUESTION, Prose("[the notes]: https://example.org")).text()
    assert '<a href="https://example.org" rel="noopener">the notes</a>' in text.formatted_body


def test_long_reply_is_formatted_to_its_end_though_it_has_link_definitions() -> None:
    definition = "[a link]: https://example.org"
    paragraph = "Some *words* and [a link] in a paragraph that is as long as paragraphs are. " * 4
    parts = render_reply(Reply((QUESTION, Prose("\n\n".join([definition, *[paragraph] * 250])))))

    assert len(parts) > 2
    formatted = parts[-1].text().formatted_body
    assert formatted.startswith('<p>Some <em>words</em> and <a href="https://example.org" rel="noopener">a link</a> in')


def test_long_reply_is_split_at_paragraphs_with_the_question_in_the_last_message() -> None:
    """X1"""
    paragraphs = [f"{number} " + "Füchse 🦊 " * 80 + "Ende." for number in range(200)]
    text = "\n\n".join(paragraphs) + "\n\n" + BLOCK
    assert len(text.encode()) > 200_000

    parts = render_reply(read_reply(text))

    assert [part.question is not None for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].text().body.endswith(BODY)
    assert parts[-1].text().formatted_body.endswith(FORMATTED)
    assert "\n\n".join(part.text().body for part in parts) == "\n\n".join([*paragraphs, BODY])
    assert all(content_size(part) <= CONTENT_BUDGET for part in parts)


def test_prose_behind_the_question_goes_on_in_the_next_message_where_it_does_not_fit() -> None:
    parts = render_reply(Reply((QUESTION, Prose("word " * 7_000))))
    assert [part.question is not None for part in parts] == [True, False]
    assert parts[0].text().body.startswith(f"{BODY}\n\nword word")
    assert parts[0].text().formatted_body.startswith(f"{FORMATTED}\n<p>word word")


@pytest.mark.parametrize(
    "markdown", ["- a\n" * 9_000, "a\n\n" * 9_000, "&" * 40_000, "\x01" * 30_000, "|a|\n|-|\n\n" * 4_000]
)
def test_reply_whose_html_is_much_longer_than_its_text_is_split_by_both(markdown: str) -> None:
    """X1"""
    parts = render_reply(Reply((Prose(markdown),)))

    assert all(content_size(part) <= CONTENT_BUDGET for part in parts)
    assert "".join("".join(part.text().body.split()) for part in parts) == "".join(markdown.split())


def test_plain_question_that_is_too_large_is_split() -> None:
    parts = render_reply(Reply((PlainQuestion("&" * 16_000, ("<" * 16_000,)),)))
    assert len(parts) > 1
    assert all(content_size(part) <= CONTENT_BUDGET for part in parts)
    assert "".join("".join(part.text().body.split()) for part in parts) == "&" * 16_000 + "-" + "<" * 16_000


@pytest.mark.parametrize("budget", [40_000, CONTENT_BUDGET])
@pytest.mark.parametrize(
    "question",
    [
        ask("&" * 7_800),
        ask(*["&" * 780] * 10),
        ask("no", text="&" * 7_800),
        ask("🚀" * 600, "é" * 600),
        replace(QUESTION, options=(replace(FAST, description="&" * 16_000), CAREFUL)),
    ],
)
def test_question_fits_into_one_message_before_and_after_the_answer(question: Question, budget: int) -> None:
    (part,) = render_reply(Reply((question,)), budget=budget)

    line = answered_line(question.options[0], "&" * 300, NOON)

    assert part.question == question
    assert content_size(part) <= budget
    assert content_size(part, line) + len(json.dumps(f"* {line}").encode()) <= min(EVENT_LIMIT, budget + 5_000)
    assert part.text().body.startswith(f"{question.text}\n\n1. ")
    assert all(f"{option.number}. {option.emoji} {option.label}" in part.text().body for option in question.options)


def test_answer_is_told_with_option_name_and_time() -> None:
    assert answered_line(FAST, "Alice", NOON) == "✔ 1. 🚀 Fast and automated · Alice · 2026-11-30 12:00 UTC"


def test_time_of_the_answer_is_told_in_utc() -> None:
    there = datetime(2026, 12, 1, 1, 30, tzinfo=timezone(timedelta(hours=13, minutes=30)))
    assert answered_line(FAST, "Alice", there).endswith("· 2026-11-30 12:00 UTC")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Al\nice", "Al ice"),
        ("\u202egro.live\u202c", "gro.live"),
        ("\u2066a\u2069\x07b\u200b", "a b"),
        ("<b>Bob</b>", "<b>Bob</b>"),
        ("\u200b \u202e", "someone"),
        ("n" * 200, "n" * (NAME_LIMIT - 1) + "…"),
    ],
)
def test_name_in_the_answer_is_one_short_line_that_turns_nothing_around(name: str, shown: str) -> None:
    assert answered_line(FAST, name, NOON) == f"✔ 1. 🚀 Fast and automated · {shown} · 2026-11-30 12:00 UTC"


def test_long_label_is_shortened_in_the_answer() -> None:
    line = answered_line(replace(FAST, label="l" * 3_000), "Alice", NOON)
    assert line == f"✔ 1. 🚀 {'l' * 199}… · Alice · 2026-11-30 12:00 UTC"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
# What reading gives: no lone surrogates; labels are one line already.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
labels = texts.map(lambda text: " ".join(text.split()) or "Option")


@st.composite
def questions(draw: st.DrawFn) -> Question:
    values: list[JsonValue] = draw(st.lists(json_values, min_size=1, max_size=10))
    options = tuple(
        Option(number, draw(st.sampled_from("🚀🔍❓")), draw(labels), value, "🚀", draw(st.none() | texts))
        for number, value in enumerate(values, 1)
    )
    return Question(draw(texts), options)


prose = (
    texts | st.lists(st.sampled_from(["- a\n", "1. b\n", "```\n", "\n\n", "word " * 900, "<", "&" * 500])).map("".join)
).map(Prose)
plain_questions = st.builds(PlainQuestion, texts, st.lists(labels).map(tuple))


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    segments: list[Prose | PlainQuestion | Question] = draw(st.lists(prose | plain_questions, max_size=5))
    if draw(st.booleans()):
        segments.insert(draw(st.integers(0, len(segments))), draw(questions()))
    return Reply(tuple(segments))


@settings(deadline=None)
@given(replies())
def test_part_survives_being_stored(reply: Reply) -> None:
    for part in render_reply(reply):
        stored = part_to_json(part)
        assert part_from_json(stored) == part
        assert stored.isascii()


@settings(deadline=None)
@given(replies())
def test_every_reply_becomes_safe_messages_within_the_budget(reply: Reply) -> None:
    """X1 X3"""
    parts = render_reply(reply, budget=40_000)

    for part in parts:
        assert part.text().body == part.text().body.strip() != ""
        assert content_size(part) <= 40_000
        assert look_at(part.text().formatted_body).faults == []
    assert [part.question for part in parts if part.question] == [reply.question] * (reply.question is not None)


@settings(deadline=None)
@given(replies())
def test_no_prose_is_lost(reply: Reply) -> None:
    shown = iter("".join("".join(part.text().body.split()) for part in render_reply(reply, budget=40_000)))
    written = "".join(segment.markdown for segment in reply.segments if isinstance(segment, Prose))
    assert all(character in shown for character in "".join(written.split()))


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([BLOCK, "text\n", "\n\n", "- ", "> ", "   ", "```\n", "````\n", "<b>", "[a](b)"])).map(
        "".join
    )
    | texts
)
def test_whatever_is_read_can_be_rendered(text: str) -> None:
    """X9"""
    for part in render_reply(read_reply(text)):
        shown = part.text()
        assert shown.body
        assert look_at(shown.formatted_body).faults == []


@settings(deadline=None)
@given(questions())
def test_every_option_has_one_line_with_its_number(question: Question) -> None:
    """X4 X5"""
    head = render_one(replace(question, text="Which?")).head

    lines = head.body.split("\n\n", 1)[1].split("\n")
    numbered = [line for line in lines if not line.startswith("   ")]
    assert [line.split(". ")[0] for line in numbered] == [str(option.number) for option in question.options]
    seen = [line.strip("\n ") for line in look_at(head.formatted_body.replace("<br>", "\x1e")).text.split("\x1e")]
    assert len(seen) == len(lines)
