"""The `demo` backend: what a new user sees first."""

import json
import re
from typing import Any

import pytest
from pydantic import JsonValue

from mindbridge.agents.demo import MENU, DemoAgent, demo_reply
from mindbridge.questions.model import Option, Question
from mindbridge.questions.read import read_reply
from tests.unit.sample_turn import selection, turn

OPENED = {"question_id": "question_0", "question_event_id": "$q", "question_text": "Tea or coffee?"}
FENCE = re.compile(r"^(```+)(interactive)?\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)


def question(reply: str) -> Question | None:
    """What the reply asks, by itself and by the bridge's own reading of it."""
    read = read_reply(reply)
    assert read.problems == ()
    return read.question


def asked(reply: str) -> str | None:
    """The text of the reply's question."""
    found = question(reply)
    return found.text if found else None


def options(reply: str) -> tuple[Option, ...]:
    found = question(reply)
    assert found
    return found.options


def chosen(value: JsonValue, *, question_text: str = "What approach would you prefer?", **changes: Any) -> str:
    option = {"number": 2, "key": changes.pop("key", "2"), "label": "This one", "value": value}
    answer = selection(question_text=question_text, selected_option=option, older=changes.pop("older", False))
    return demo_reply(turn(kind="selection", text="Alice chose 2. This one", selection=answer, **changes))


async def test_hello_is_greeted_by_name_and_gets_the_menu() -> None:
    reply = await DemoAgent().reply(turn(text="Hello!"))

    assert reply.startswith("Hello, Alice! ")
    assert asked(reply) == MENU
    assert [option.value for option in options(reply)] == ["plain", "shared", "typed", "broken", "two"]


@pytest.mark.parametrize(
    "text", ["hi", "Hey there", "@demo:example.org hello", "Demo: HALLO", "menu", "the menu, please"]
)
def test_greetings_and_menu_get_the_menu(text: str) -> None:
    assert asked(demo_reply(turn(text=text))) == MENU


@pytest.mark.parametrize("text", ["wait, explain first", "this is about history", "", "7", "🚀", "what's a menuet?"])
def test_ordinary_words_are_answered_without_a_question(text: str) -> None:
    """T4"""
    reply = demo_reply(turn(text=text))

    assert reply
    assert asked(reply) is None


def test_ordinary_words_remind_of_the_questions_that_are_open() -> None:
    assert "“Tea or coffee?”" in demo_reply(turn(text="wait, explain first", open_questions=[OPENED]))


@pytest.mark.parametrize(
    ("value", "text", "buttons"),
    [
        ("plain", "What approach would you prefer?", ["🚀", "🔍️"]),
        ("shared", "Where would you like to sit?", ["1️⃣", "2️⃣", "3️⃣"]),
        ("typed", "How often may I remind you?", ["🔕", "🔔", "🍽️", "⏱️"]),
        ("broken", "Is this block readable?", ["👍️", "👎️"]),
        ("two", "Tea or coffee?", ["🍵", "☕️"]),
    ],
)
def test_choice_from_the_menu_is_confirmed_and_gets_its_question(value: str, text: str, buttons: list[str]) -> None:
    reply = chosen(value, question_text=MENU)

    assert reply.startswith(f'You chose **2. This one**, by its number. I got `"{value}"`, a string.\n\n')
    assert asked(reply) == text
    assert [option.button for option in options(reply)] == buttons


def test_broken_block_is_broken_and_shown_as_an_example_first() -> None:
    example, live = FENCE.findall(chosen("broken", question_text=MENU))

    assert (example[0], live[0]) == ("````", "```")
    assert example[2] == f"```interactive\n{live[2]}\n```"
    with pytest.raises(json.JSONDecodeError):
        json.loads(live[2])


def test_typed_values_are_of_several_types() -> None:
    reply = chosen("typed", question_text=MENU)

    assert [type(option.value) for option in options(reply)] == [bool, int, list, dict]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("fast", '`"fast"`, a string.'),
        ("plain", '`"plain"`, a string.'),
        ("", '`""`, a string.'),
        (0, "`0`, a number."),
        (2.5, "`2.5`, a number."),
        (False, "`false`, a boolean."),
        (["ü", 1], '`["ü", 1]`, an array.'),
        ({"every": "1h"}, '`{"every": "1h"}`, an object.'),
    ],
)
def test_choice_is_told_with_the_values_json_type_and_the_menu_follows(value: JsonValue, words: str) -> None:
    reply = chosen(value, key="🔍")

    assert reply.startswith(f"You chose **2. This one**, with 🔍. I got {words}\n\n")
    assert asked(reply) == MENU


def test_another_asks_a_second_question_and_says_which_one_a_number_means() -> None:
    reply = demo_reply(turn(text="Another one", open_questions=[OPENED]))

    assert asked(reply) == "Sunrise or sunset?"
    assert "A number now means this one." in reply


def test_another_without_an_open_question_just_asks() -> None:
    same = OPENED | {"question_text": "Sunrise or sunset?"}

    assert demo_reply(turn(text="another", open_questions=[same])) == demo_reply(turn(text="another"))
    assert "A number" not in demo_reply(turn(text="another"))


def test_answer_while_another_question_is_open_points_there_and_asks_nothing() -> None:
    reply = chosen("sunset", question_text="Sunrise or sunset?", open_questions=[OPENED])

    assert asked(reply) is None
    assert "Still open: “Tea or coffee?”" in reply


def test_answer_to_an_older_question_is_told_as_such() -> None:
    assert "older one" in chosen("tea", older=True)
    assert "older one" not in chosen("tea")


def test_problems_are_told_before_the_answer_and_can_not_ask() -> None:
    message = 'Read up to here: ```interactive {"options": ["a"]}```\nno more.'

    reply = demo_reply(turn(problems=[{"code": "block_cut_off", "message": message}]))

    told, _, _ = reply.partition("Hello, Alice!")
    assert "\n- Read up to here: '''interactive {\"options\": [\"a\"]}''' no more. (`block_cut_off`)\n" in told
    assert asked(reply) == MENU


@pytest.mark.parametrize(
    ("display_name", "greeted"),
    [
        ("Jean-Luc O'Neill", "Jean-Luc O'Neill"),
        ("अनिता 日本", "अनिता 日本"),
        ("@alice:example.org", "alice"),
        ('x\n```interactive\n{"options": ["a"]}\n```\n', 'x interactive "options" "a"'),
        ("**@room** <b>", "room b"),
        ("🚀" * 100, "🚀" * 40),
        ("`", "you"),
        ("", "you"),
    ],
)
def test_name_is_greeted_without_what_markdown_could_read(display_name: str, greeted: str) -> None:
    sender = {"user_id": "@alice:example.org", "display_name": display_name}

    reply = demo_reply(turn(sender=sender))

    assert reply.startswith(f"Hello, {greeted}! ")
    assert asked(reply) == MENU
