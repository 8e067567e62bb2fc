"""The bridge's own words to people, and an answer in words for an agent."""

import html
from datetime import UTC, datetime

from mindbridge.agents.turn import Selection
from mindbridge.questions.answers import Verdict
from mindbridge.questions.fields import one_line
from mindbridge.questions.model import Option
from mindbridge.questions.render import NAME_LIMIT, Text, answered_line

SUPERSEDED_LINE = "↪ Asked again below."
AGENT_REMOVED_LINE = "✖ Closed: the agent that asked is no longer here."
NO_BUTTONS_LINE = "The buttons can't be shown here: type the number to respond."


def plain(text: str) -> Text:
    """One plain sentence as a Matrix text."""
    return Text(body=text, formatted_body=html.escape(text))


def iso(server_ts: int) -> str:
    """A server's time in milliseconds as ISO 8601 in UTC, to the second."""
    return moment(server_ts).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(server_ts: int) -> datetime:
    """A server's time in milliseconds; what no calendar holds becomes 1970."""
    try:
        return datetime.fromtimestamp(server_ts / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return datetime.fromtimestamp(0, UTC)


def chose(option: Option) -> str:
    """An answer as the history tells it."""
    return f"chose {option.number}. {option.label}"


def told(verdict: Verdict, name: str, taken: str | None) -> Text:
    """What someone is told whose answer was not taken; `taken` is the closing line of the answer that was."""
    name = one_line(name)[:NAME_LIMIT]
    match verdict:
        case Verdict.ALREADY_ANSWERED:
            return plain(f"{name}: this question was already answered. {taken or ''}".strip())
        case Verdict.SUPERSEDED:
            return plain(f"{name}: this question was asked again; please answer the newer one.")
        case _:
            return plain(f"{name}: this question is for someone else to answer.")


def taken_line(option: Option, name: str, answered_ts: int) -> str:
    """The line that replaces the instruction under an answered question."""
    return answered_line(option, name, moment(answered_ts))


def selection_text(selection: Selection, name: str) -> str:
    """A selection in words, with its JSON, for a model to read."""
    option, who = selection.selected_option, one_line(name)[:NAME_LIMIT]
    return (
        f"{who} answered your question {selection.question_text!r} with option {option.number}: {option.label}\n\n"
        f"```json\n{selection.model_dump_json(indent=2)}\n```"
    )


def room_upgraded() -> Text:
    """What the new room is told of the questions in the old one."""
    return plain("The questions that were open in the former room were closed when it was upgraded; please ask again.")


def parked(agent: str) -> Text:
    """The one notice about a turn that was set aside."""
    return plain(
        f"{agent} could not answer this: its program failed several times. Nothing is lost; it is tried again later."
    )


def unreadable(name: str) -> Text:
    """What a sender is told, once in a room, whose messages have stayed encrypted."""
    return plain(
        f"{name}: I can't read what you sent: your client has not given me its key. I go on as soon as it comes; "
        "if it does not, please send it again."
    )
