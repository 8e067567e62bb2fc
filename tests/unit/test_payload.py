import json

import pytest

from mindbridge.questions.blocks import find_blocks
from mindbridge.questions.json_text import MAX_STRICT_BYTES
from mindbridge.questions.model import (
    DEFAULT_QUESTION,
    UNREADABLE,
    JsonValue,
    Option,
    PlainQuestion,
    ProblemCode,
    Question,
)
from mindbridge.questions.payload import Payload, read_payload

WHOLE = Question("Q?", (Option(1, "🚀", "A", "a", "🚀"), Option(2, "❤️", "B", 0, "❤️")))


def read(content: str, *, closed: bool = True, max_options: int = 5, may_repair: bool = True) -> Payload:
    (block,) = find_blocks(f"```interactive\n{content}" + ("\n```" if closed else ""))
    return read_payload(block, "block 1", max_options=max_options, may_repair=may_repair)


def read_options(*options: JsonValue, max_options: int = 5) -> Payload:
    return read(json.dumps({"question": "Q?", "options": list(options)}), max_options=max_options)


def option(field: JsonValue) -> Option:
    payload = read_options(field)
    assert payload.question is not None
    return payload.question.options[0]


def codes(payload: Payload) -> list[ProblemCode]:
    return [problem.code for problem in payload.problems]


def test_block_of_the_contract_is_its_question() -> None:
    content = """{"question": "What approach would you prefer?",
 "options": [{"emoji": "🚀", "label": "Fast and automated", "value": "fast"},
             {"emoji": "🔍", "label": "Careful and manual", "value": "careful"}]}"""
    fast = Option(1, "🚀", "Fast and automated", "fast", "🚀")
    careful = Option(2, "🔍", "Careful and manual", "careful", "🔍\ufe0f")
    question = Question("What approach would you prefer?", (fast, careful))
    plain = PlainQuestion(question.text, ("🚀 Fast and automated", "🔍 Careful and manual"))
    assert read(content) == Payload(question, plain)


@pytest.mark.parametrize("missing", [{}, dict.fromkeys(("emoji", "label", "value", "description"))])
def test_missing_and_null_fields_have_their_defaults(missing: JsonValue) -> None:
    assert option(missing) == Option(1, "❓", "Option", "option", "❓\ufe0f")


@pytest.mark.parametrize("text", ['{"options": ["A"]}', '{"question": null, "options": ["A"]}'])
def test_missing_question_has_its_default(text: str) -> None:
    assert read(text).question == Question(DEFAULT_QUESTION, (Option(1, "❓", "A", "a", "❓\ufe0f"),))


@pytest.mark.parametrize("value", [0, 1, -1.5, False, True, "", "x", [], [None, 1, "a"], {}, {"a": {"b": [0]}}])
def test_value_keeps_its_type(value: JsonValue) -> None:
    read_value = option({"label": "A", "value": value}).value
    assert read_value == value
    assert type(read_value) is type(value)


@pytest.mark.parametrize(("field", "label"), [("Yes, Do", "Yes, Do"), (7, "7"), (2.5, "2.5"), (True, "true")])
def test_bare_option_is_a_label(field: JsonValue, label: str) -> None:
    assert option(field) == Option(1, "❓", label, label.lower(), "❓\ufe0f")


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("a\n2. 🔍 b", "a 2. 🔍 b"),
        ("a\r\nb\tc", "a b c"),
        ("a\u2028b\u2029c\x85d\ve\ff", "a b c d e f"),
        ("a\0b\x1bc\x7f", "a b c"),
        ("\u202eevil\u202c \u2066x\u2069", "evil x"),
        ("  a   b ", "a b"),
        ("\ud83d\ude80 \ud800", "🚀 \ufffd"),
        ("👩‍👩‍👧 ok", "👩‍👩‍👧 ok"),
        ("<b>bold</b> *x*", "<b>bold</b> *x*"),
        (" \n ", "Option"),
        ("\u200b", "Option"),
        (["a"], "Option"),
        (0, "0"),
    ],
)
def test_label_is_one_line(label: JsonValue, shown: str) -> None:
    """X4"""
    assert option({"label": label, "value": 1}).label == shown


def test_question_keeps_its_lines_and_nothing_that_hides() -> None:
    """X4"""
    payload = read(json.dumps({"question": " a\r\nb\rc\u2028d\0\x1b\u202e\te \n", "options": ["A"]}))
    assert payload.plain.text == "a\nb\nc\nd e"


@pytest.mark.parametrize(
    ("question", "text"), [(5, "5"), (False, "false"), ([1], DEFAULT_QUESTION), ("", DEFAULT_QUESTION)]
)
def test_question_of_another_type_is_text_or_missing(question: JsonValue, text: str) -> None:
    assert read(json.dumps({"question": question, "options": ["A"]})).plain.text == text


def test_description_is_one_line_or_none() -> None:
    assert option({"label": "A", "description": "quick\nand easy"}).description == "quick and easy"
    assert option({"label": "A", "description": " "}).description is None
    assert read_options({"label": "A", "description": "quick"}).plain.lines == ("❓ A – quick",)


def test_lone_surrogates_leave_no_trace_in_values() -> None:
    """X9"""
    value: JsonValue = {"\udc00": ["\ud83d\ude80", "\ud800"]}
    assert option({"label": "A", "value": value}).value == {"\ufffd": ["🚀", "\ufffd"]}


def test_options_beyond_the_limit_are_left_out_and_told() -> None:
    payload = read_options(*"ABCDEFGH")
    assert payload.question is not None
    assert [found.label for found in payload.question.options] == list("ABCDE")
    assert codes(payload) == [ProblemCode.OPTIONS_TRUNCATED]
    assert payload.problems[0].message == "block 1: options 6 to 8 left out: at most 5 options count"


def test_what_is_no_option_is_left_out_told_and_takes_no_place() -> None:
    payload = read_options(None, "A", [1], "B", "C", max_options=2)
    assert payload.question is not None
    assert [(found.number, found.label) for found in payload.question.options] == [(1, "A"), (2, "B")]
    (problem,) = payload.problems
    assert problem.code == ProblemCode.OPTIONS_TRUNCATED
    assert "options 1, 3 left out: an option is an object or a label; option 5 left out: at most 2" in problem.message


@pytest.mark.parametrize("options", ["[]", "[null, []]", "null", '"A"', '{"A": 1}', "3"])
def test_block_without_options_shows_its_question_only(options: str) -> None:
    payload = read(f'{{"question": "Q?", "options": {options}}}')
    assert (payload.question, payload.plain, codes(payload)) == (
        None,
        PlainQuestion("Q?"),
        [ProblemCode.BLOCK_UNREADABLE],
    )


def test_unusable_emoji_is_replaced_and_told_once() -> None:
    fields: list[JsonValue] = [
        {"label": label, "emoji": emoji} for label, emoji in zip("ABCD", ["🚀🔥", "2️⃣", "1️⃣", "go"], strict=True)
    ]
    payload = read_options(*fields)
    assert payload.question is not None
    assert [found.emoji for found in payload.question.options] == ["❓", "2️⃣", "❓", "❓"]
    assert [found.button for found in payload.question.options] == ["1️⃣", "2️⃣", "3️⃣", "4️⃣"]
    assert codes(payload) == [ProblemCode.EMOJI_REPLACED]
    assert "options 1, 3, 4" in payload.problems[0].message


@pytest.mark.parametrize(("letters", "live"), [(7_913, True), (7_914, False)])
def test_question_over_8000_bytes_is_plain_and_told(letters: int, live: bool) -> None:  # noqa: FBT001 - what is expected
    payload = read_options({"label": "A", "value": "x" * letters})
    metadata = {"question_text": "Q?", "options": [{"number": 1, "emoji": "❓", "label": "A", "value": "x" * letters}]}
    assert (len(json.dumps(metadata, separators=(",", ":"))) <= 8_000) is live
    assert (payload.question is not None) is live
    assert payload.plain == PlainQuestion("Q?", ("❓ A",))
    assert codes(payload) == ([] if live else [ProblemCode.METADATA_TOO_LARGE])


@pytest.mark.parametrize(
    "content",
    [
        '{"question": "Q?", "options": [{"emoji": "🚀", "label": "A",}, {"emoji": "❤", "label": "B", "value": 0,},],}',
        "{“question”: “Q?”, “options”: [{“emoji”: “🚀”, “label”: “A”}, {“emoji”: “❤”, “label”: “B”, “value”: 0}]}",
        "{'question': 'Q?', 'options': [{'emoji':'🚀','label':'A','value':None}, {'emoji':'❤','label':'B','value':0}]}",
        """{
            // "which" {one}
            "question": "Q?", # it's the question
            "options": [{"emoji": "🚀", /* first, ] */ "label": "A"}, {"emoji": "❤", "label": "B", "value": 0}]
        }""",
        '{"question": "Q?", "options": [{"emoji": "🚀", "label": "A"}, {"emoji": "❤", "label": "B", "value": 0}]',
        '{"question": "Q?", "options": [{"emoji": "🚀", "label": "A"}, {"emoji": "❤", "label": "B", "value": 0}',
        '{"question": "Q?" "options": [{"emoji": "🚀" "label": "A"} {"emoji": "❤" "label": "B" "value": 0}]}',
        "{question: 'Q?', options: [{emoji: '🚀', label: 'A'}, {emoji: '❤', label: 'B', value: 0}]}",
        '{"question": "Q?", "options": [{"emoji": "🚀", "label": "A"}, {"emoji": "❤", "label": "B", "value": 0}}',
        '{"question": "Q?", "options": [{"emoji": "🚀", "label": "A"}, {"emoji": "❤", "label": "B", "value": 0}]}]}',
        '{\u00a0"question": "Q?", "options": [{"emoji": "🚀", "label": "A"},{"emoji": "❤", "label": "B","value": 0}]}',
    ],
    ids=lambda content: content[:30],
)
def test_usual_breakage_is_read(content: str) -> None:
    """X6"""
    payload = read(content)
    assert (payload.question, payload.problems) == (WHOLE, ())


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('{"question": "a\nb", "options": ["A"]}', "a\nb"),
        ('{"question": "Say "yes" or “no”", "options": ["A"]}', 'Say "yes" or “no”'),
        ("{'question': \"What's up?\", 'options': ['It\\'s']}", "What's up?"),
        ('{"question": "see http://x.y/z # 1", "options": ["A",]}', "see http://x.y/z # 1"),
        ('{"question": "\\u00e9\\ud83d\\ude80", "options": ["A",]}', "é🚀"),
        ('{"question": "a\\tb \\"c\\"", "options": ["A",]}', 'a b "c"'),
    ],
)
def test_repair_changes_no_text(content: str, text: str) -> None:
    """X6"""
    payload = read(content)
    assert payload.question is not None
    assert payload.question.text == text


@pytest.mark.parametrize(
    "content",
    [
        '{"question": "Q?", "options": [{"label": "A", "value": NaN}, {"label": "B"}]}',
        '{"question": "Q?", "options": [{"label": "A", "value": -Infinity}, {"label": "B"}]}',
        '{"question": "Q?", "options": [{"label": "A", "value": NaN,}, {"label": "B"}]}',
        '{"question": "Q?", "options": [{"label": "A", "value": 1e999}, {"label": "B"}]}',
        '{"question": "Q?", "options": [{"label": "A", "value": 1e999,}, {"label": "B"},]}',
        f'{{"question": "Q?", "options": [{{"label": "A", "value": {"9" * 5_000}}}, {{"label": "B"}}]}}',
        f'{{"question": "Q?", "options": [{{"label": "A", "value": {"[" * 18}{"]" * 18}}}, {{"label": "B"}}]}}',
        '{"question": "Q?", "question": "R?", "options": ["A", "B",]}',
        f'{{"question": "Q?", "options": ["A", "B"], "x": "{"x" * 5_000}",}}',
    ],
    ids=lambda content: content[:60],
)
def test_block_that_is_not_certain_shows_what_is(content: str) -> None:
    """X9"""
    payload = read(content)
    assert (payload.question, codes(payload)) == (None, [ProblemCode.BLOCK_UNREADABLE])
    assert payload.plain == PlainQuestion("Q?", ("A", "B"))


@pytest.mark.parametrize(
    "content",
    [
        "not JSON at all",
        "",
        "[]",
        "42",
        '"text"',
        "null",
        '["A", "B"]',
        "{}",
        "{" * 5_000,
        '{"question":' * 2_000,
        "[" * 5_000,
        "}]",
        "{]" * 100,
        "{'" * 3_000,
        "“" * 3_000,
        '{"question": ' + "(" * 3_000,
        f'{{"x": "{"x" * MAX_STRICT_BYTES}"}}',
    ],
    ids=lambda content: content[:20],
)
def test_block_without_anything_certain_is_one_sentence(content: str) -> None:
    """X9"""
    payload = read(content)
    assert (payload.question, payload.plain, len(payload.problems)) == (None, PlainQuestion(UNREADABLE), 1)
    assert codes(payload)[0] in {ProblemCode.BLOCK_UNREADABLE, ProblemCode.BLOCK_CUT_OFF}


def test_list_of_questions_is_no_question() -> None:
    payload = read('[{"question": "Q?", "options": ["A"]}, {"question": "R?", "options": ["B"]}]')
    assert (payload.question, payload.plain.text, codes(payload)) == (None, "Q?", [ProblemCode.BLOCK_UNREADABLE])


CUT = '{"question": "Q?", "options": [{"emoji": "🚀", "label": "A", "value": "a"}, {"label": "B", "value": "b"}]}'


@pytest.mark.parametrize("length", range(1, len(CUT)))
def test_block_cut_off_anywhere_is_told_and_shows_no_json(length: int) -> None:
    """X6"""
    payload = read(CUT[:length], closed=False)
    assert (payload.question, codes(payload)) == (None, [ProblemCode.BLOCK_CUT_OFF])
    labels = tuple(label for label in "AB" if f'"label": "{label}"' in CUT[:length])
    text = "Q?" if '"Q?"' in CUT[:length] else UNREADABLE
    assert payload.plain == PlainQuestion(text, labels)


@pytest.mark.parametrize("ending", [' {"label": "B"', ' {"label": "B', ' {"lab', " {", "", ' {"label": "B", "value":'])
def test_block_cut_off_within_its_fences_is_not_taken_for_whole(ending: str) -> None:
    """X6"""
    payload = read('{"question": "Q?", "options": [{"label": "A"},' + ending)
    assert (payload.question, codes(payload)) == (None, [ProblemCode.BLOCK_CUT_OFF])


def test_block_that_ends_before_it_begins_is_cut_off() -> None:
    assert codes(read("", closed=False)) == [ProblemCode.BLOCK_CUT_OFF]


def test_first_of_several_objects_counts() -> None:
    payload = read('{"question": "Q?", "options": ["A"]}\n{"question": "R?", "options": ["B"]}')
    assert payload.question == Question("Q?", (Option(1, "❓", "A", "a", "❓\ufe0f"),))
    assert codes(payload) == [ProblemCode.BLOCK_NOT_LIVE]
    assert payload.after == ""


def test_prose_between_the_fences_is_kept() -> None:
    payload = read('Here it is:\n{"question": "Q?", "options": ["A"]}\nTake your time.')
    assert (payload.before, payload.after, payload.problems) == ("Here it is:", "Take your time.", ())


@pytest.mark.parametrize(
    ("content", "after"),
    [
        (
            '{"question": "Q?", "options": ["A", "B"]\n\nThe rest of the reply.\n\n- of it',
            "The rest of the reply.\n\n- of it",
        ),
        ("Just prose,\n\nno JSON", "Just prose,\n\nno JSON"),
        ('{"question": "Q?", "options": [\n\ntrue', "true"),
        ('{"question": "Q?\n\nlost', ""),
    ],
)
def test_prose_that_a_block_without_an_end_swallowed_comes_back(content: str, after: str) -> None:
    payload = read(content, closed=False)
    assert (payload.question, payload.after) == (None, after)


def test_repair_is_not_tried_when_it_is_not_allowed() -> None:
    payload = read('{"question": "Q?", "options": ["A",]}', may_repair=False)
    assert (payload.question, payload.repair_tried) == (None, False)
    assert payload.plain == PlainQuestion("Q?", ("A",))
    assert codes(payload) == [ProblemCode.BLOCK_UNREADABLE]


@pytest.mark.parametrize("content", ['{"options": ["A",]}', '{"options": ["A"], "options": ["B",]}'])
def test_repair_that_was_tried_is_told_whatever_came_of_it(content: str) -> None:
    assert read(content).repair_tried
