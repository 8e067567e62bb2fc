"""The `demo` backend: built in, needs no key, and shows what questions can do (contract, section 5)."""

import json
import re
from collections.abc import Callable

from mindbridge.agents.failure import one_line
from mindbridge.agents.turn import SelectedOption, Selection, Turn
from mindbridge.questions.model import JsonValue

MENU = "What would you like to see?"

_GREETINGS = frozenset({"hello", "hi", "hey", "hallo", "moin", "hola", "bonjour", "ciao"})
_NOT_IN_A_NAME = frozenset("`*_[]<>(){}#~|\\!@:&$^=")
_NAME_LENGTH = 40


class DemoAgent:
    """Answers every turn from a fixed set of short texts and questions."""

    async def reply(self, turn: Turn) -> str:
        """Gives `demo_reply(turn)`."""
        return demo_reply(turn)


def demo_reply(turn: Turn) -> str:
    """Gives the reply's Markdown; the same turn always gives the same reply.

    A greeting or `menu` gets the menu. A choice is told in words, with its value's JSON type; one from the menu is
    followed by the question that it names, any other by the menu. Ordinary words are answered without a question.
    """
    words = set(re.findall(r"\w+", turn.text.casefold()))
    if turn.selection is not None:
        answer = _answer_to_selection(turn, turn.selection)
    elif words & _GREETINGS:
        answer = (
            f"Hello, {_name(turn)}! I am the demo agent: I ask, you choose. "
            f"Click a button under my question, or type its number.\n\n{_menu()}"
        )
    elif "menu" in words:
        answer = _menu()
    elif "another" in words:
        answer = _another(turn)
    else:
        answer = _explanation(turn)
    return _about_problems(turn) + answer


def _block(question: str, options: list[dict[str, JsonValue]]) -> str:
    lines = ",\n             ".join(json.dumps(option, ensure_ascii=False) for option in options)
    return f'```interactive\n{{"question": {json.dumps(question)},\n "options": [{lines}]}}\n```'


def _plain() -> str:
    options: list[dict[str, JsonValue]] = [
        {"emoji": "🚀", "label": "Fast and automated", "value": "fast"},
        {"emoji": "🔍", "label": "Careful and manual", "value": "careful"},
    ]
    return "An emoji, a label and a value for each option: that is all.\n\n" + _block(
        "What approach would you prefer?", options
    )


def _shared() -> str:
    options: list[dict[str, JsonValue]] = [
        {"emoji": "💺", "label": "Window", "value": "window"},
        {"emoji": "💺", "label": "Middle", "value": "middle"},
        {"emoji": "💺", "label": "Aisle", "value": "aisle"},
    ]
    return "Three seats, one emoji. So the buttons are numbers, and none of them means two seats.\n\n" + _block(
        "Where would you like to sit?", options
    )


def _typed() -> str:
    options: list[dict[str, JsonValue]] = [
        {"emoji": "🔕", "label": "Never", "value": False, "description": "false, a boolean"},
        {"emoji": "🔔", "label": "Once a day", "value": 1, "description": "1, a number"},
        {"emoji": "🍽️", "label": "At meals", "value": ["08:00", "13:00", "19:00"], "description": "an array"},
        {"emoji": "⏱️", "label": "Every hour", "value": {"every": "1h"}, "description": "an object"},
    ]
    return "You see a label. I get a value, of any JSON type; the descriptions tell which.\n\n" + _block(
        "How often may I remind you?", options
    )


_BROKEN_BLOCK = """\
```interactive
{question: 'Is this block readable?',
 'options': [{'emoji': '👍', 'label': 'Yes', 'value': True,},
             {'emoji': '👎', 'label': 'No', 'value': False,},],}
```"""


def _broken() -> str:
    return (
        "Models write such things: single quotes, a name without quotes, Python's `True`, commas too many.\n\n"
        f"````\n{_BROKEN_BLOCK}\n````\n\n"
        f"That was an example, so it stayed text. Here it is for real:\n\n{_BROKEN_BLOCK}"
    )


def _two() -> str:
    options: list[dict[str, JsonValue]] = [
        {"emoji": "🍵", "label": "Tea", "value": "tea"},
        {"emoji": "☕", "label": "Coffee", "value": "coffee"},
    ]
    return "Leave this one open and write `another`: then I ask a second one.\n\n" + _block("Tea or coffee?", options)


_SECOND_QUESTION = "Sunrise or sunset?"


def _another(turn: Turn) -> str:
    options: list[dict[str, JsonValue]] = [
        {"emoji": "🌅", "label": "Sunrise", "value": "sunrise"},
        {"emoji": "🌇", "label": "Sunset", "value": "sunset"},
    ]
    others = [question for question in turn.open_questions if question.question_text != _SECOND_QUESTION]
    text = "Here is one more."
    if others:
        text += " A number now means this one. For an older one click its button, or reply to it."
    return f"{text}\n\n{_block(_SECOND_QUESTION, options)}"


_MENU: dict[str, tuple[str, str, str | None, Callable[[], str]]] = {
    "plain": ("🚀", "A plain choice", None, _plain),
    "shared": ("👯", "Options that share an emoji", None, _shared),
    "typed": ("📦", "Values and descriptions", None, _typed),
    "broken": ("🩹", "A broken block", "mindbridge repairs it", _broken),
    "two": ("🔀", "Two open questions", "answered in any order", _two),
}


def _menu() -> str:
    options: list[dict[str, JsonValue]] = []
    for value, (emoji, label, description, _) in _MENU.items():
        option: dict[str, JsonValue] = {"emoji": emoji, "label": label, "value": value}
        options.append(option | ({} if description is None else {"description": description}))
    return _block(MENU, options)


def _answer_to_selection(turn: Turn, selection: Selection) -> str:
    option = selection.selected_option
    text = f"You chose **{option.number}. {option.label}**, {_how(option)}. {_value(option.value)}"
    if selection.older:
        text += " That question was an older one of mine, and it was still open."
    if selection.question_text == MENU and isinstance(option.value, str) and option.value in _MENU:
        return f"{text}\n\n{_MENU[option.value][-1]()}"
    if turn.open_questions:
        return f"{text}\n\n{_still_open(turn)}"
    return f"{text}\n\n{_menu()}"


def _how(option: SelectedOption) -> str:
    return "by its number" if option.key == str(option.number) else f"with {option.key}"


def _value(value: JsonValue) -> str:
    match value:
        case bool():
            kind = "a boolean"
        case int() | float():
            kind = "a number"
        case str():
            kind = "a string"
        case list():
            kind = "an array"
        case dict():
            kind = "an object"
        case _:
            kind = "null"
    return f"I got `{json.dumps(value, ensure_ascii=False)}`, {kind}."


def _explanation(turn: Turn) -> str:
    text = (
        "No hurry. My questions have numbered options: click a button, or type a number. "
        "Anything else is just talk, as now, and a question waits until you answer it."
    )
    return f"{text}\n\n{_still_open(turn) if turn.open_questions else 'Write `menu`, and I ask you something.'}"


def _still_open(turn: Turn) -> str:
    questions = " ".join(f"“{question.question_text}”" for question in turn.open_questions)
    return f"Still open: {questions} Answer when you like, or write `menu`."


def _about_problems(turn: Turn) -> str:
    if not turn.problems:
        return ""
    lines = (f"- {one_line(problem.message).replace('`', chr(39))} (`{problem.code}`)" for problem in turn.problems)
    return "My last message was not quite right, and mindbridge told me:\n\n" + "\n".join(lines) + "\n\n"


def _name(turn: Turn) -> str:
    """The person's name without anything that Markdown, or a client, could take for more than a name."""
    name = turn.sender.display_name
    if name == turn.sender.user_id:
        name = name.removeprefix("@").partition(":")[0]
    plain = "".join(char for char in one_line(name) if char not in _NOT_IN_A_NAME)
    return plain[:_NAME_LENGTH].strip() or "you"
