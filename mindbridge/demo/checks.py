"""Whether the conversation of `mindbridge demo --once` went as it should, by the room and by the journal."""

from collections.abc import Iterator
from dataclasses import dataclass

from mindbridge.demo.conversation import Conversation
from mindbridge.demo.journal_view import JournalView, SelectionTold
from mindbridge.demo.timeline import Joined, Message, Redaction
from mindbridge.ids import EventId, UserId
from mindbridge.questions.model import INSTRUCTION


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All of one performance: who took part, what the person did (event ids), what was seen, what the journal says."""

    you: UserId
    assistant: UserId
    helper: UserId
    hello: EventId
    click: EventId
    late_click: EventId
    number: EventId
    call: EventId
    conversation: Conversation
    journal: JournalView

    @property
    def asked(self) -> list[Message]:
        """The questions in the room, oldest first."""
        return [message for message in self.conversation.messages() if message.question is not None]

    def said(self, agent: UserId) -> list[Message]:
        """The agent's replies, oldest first."""
        return [each for each in self.conversation.messages() if each.sender == agent and not each.is_notice]

    @property
    def expected(self) -> tuple[SelectionTold | None, ...]:
        """What became of each question: the first was clicked, the second got a number, the third is open."""
        return (
            _selection(1, "🚀", "plain", self.you, self.click),
            _selection(2, "2", "careful", self.you, self.number),
            None,
        )


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: its name, a sentence that tells what is right, and all that was wrong with it."""

    name: str
    right: str
    wrong: tuple[str, ...]


def check(record: Record) -> list[Check]:
    """Look at everything."""
    looked_at = (
        ("posted", "each question was posted once, in its thread, its buttons in order", _posted(record)),
        ("click", "the click on a button was taken once, with its value", _taken(record, 0)),
        ("number", "the number typed in the thread was taken once, with its value", _taken(record, 1)),
        ("next", "the next question is open, and nothing answered it", _taken(record, 2)),
        ("closed", "each answered question shows what was chosen", _closed(record)),
        ("withdrawn", "the agent's own buttons went away after the answer", _withdrawn(record)),
        ("late", "a second click on the answered question changed nothing, and the person was told", _late(record)),
        ("replies", "every turn got exactly one reply, in the right thread", _replied(record)),
        ("silence", "the second agent was silent until it was called, and answered then", _silent(record)),
    )
    return [Check(name, right, tuple(complaints)) for name, right, complaints in looked_at]


def _posted(record: Record) -> Iterator[str]:
    recorded = [question.event_id for question in record.journal.questions]
    posted = [message.event_id for message in record.asked]
    if recorded != posted:
        yield f"the journal has the questions {recorded}, the room {posted}"
    if len(posted) != len(record.expected):
        yield f"{len(posted)} questions were posted instead of {len(record.expected)}"
    for message in record.asked:
        buttons = [button.key for button in record.conversation.buttons(message)]
        if buttons != [option.button for option in message.options]:
            yield f"{message.event_id} has the buttons {buttons}"
        if (message.sender, message.thread_id) != (record.assistant, record.hello):
            yield f"{message.event_id} is by {message.sender} in the thread {message.thread_id}"
        lines = message.text.splitlines()
        missing = [
            line
            for option in message.options
            if (line := f"{option.number}. {option.emoji} {option.label}") not in lines
        ]
        if missing or INSTRUCTION not in lines:
            yield f"{message.event_id} does not show {missing or INSTRUCTION}"


def _taken(record: Record, index: int) -> Iterator[str]:
    questions = record.journal.questions
    if index >= len(questions):
        yield "there is no such question"
        return
    expected = record.expected[index]
    if questions[index].selection != expected:
        yield f"the journal has {questions[index].selection!r} instead of {expected!r}"
    state = "open" if expected is None else "answered"
    if questions[index].state != state:
        yield f"the question is {questions[index].state} instead of {state}"


def _closed(record: Record) -> Iterator[str]:
    for message, expected in zip(record.asked, record.expected, strict=False):
        edits = record.conversation.edits(message)
        if len(edits) != (0 if expected is None else 1):
            yield f"{message.event_id} has {len(edits)} edits"
        if expected is None or not edits:
            continue
        option = next((each for each in message.options if each.number == expected.number), None)
        if option is None:
            yield f"{message.event_id} offers no option {expected.number}"
            continue
        before, _, after = message.text.partition(INSTRUCTION)
        line = f"✔ {option.number}. {option.emoji} {option.label} · You · "
        shown = edits[-1].text
        between = shown[len(before) : len(shown) - len(after)]
        if shown != before + between + after or not between.startswith(line) or "\n" in between:
            yield f"{message.event_id} became {shown!r}"
        if edits[-1].question is None or edits[-1].question.state != "answered":
            yield f"{message.event_id} does not say that it is answered"


def _withdrawn(record: Record) -> Iterator[str]:
    for message, expected in zip(record.asked, record.expected, strict=False):
        since = [] if expected is None else record.conversation.after(expected.source_event_id)
        withdrawn = {event.target for event in since if isinstance(event, Redaction)}
        for button in record.conversation.buttons(message):
            if expected is not None and button.event_id not in withdrawn:
                yield f"{button.key} under {message.event_id} did not go away after the answer"
            elif expected is None and record.conversation.is_withdrawn(button):
                yield f"{button.key} under {message.event_id} went away"


def _late(record: Record) -> Iterator[str]:
    if record.journal.verdict != "already_answered":
        yield f"the verdict is {record.journal.verdict}"
    notices = [message.text for message in record.conversation.messages() if message.is_notice]
    if len(notices) != 1:
        yield f"the notices are {notices}"


def _replied(record: Record) -> Iterator[str]:
    turns = {agent.agent: agent.turns for agent in record.journal.agents}
    expected = {"assistant": {"done": 3}, "helper": {"done": 1}}
    if turns != expected:
        yield f"the turns are {turns} instead of {expected}"
    causes = ((record.assistant, record.hello, (record.hello, record.click, record.number)),)
    for agent, thread, acts in (*causes, (record.helper, record.call, (record.call,))):
        replies = record.said(agent)
        if [reply.thread_id for reply in replies] != [thread] * len(acts):
            yield f"{agent} said {len(replies)} things instead of {len(acts)}, or said them elsewhere"
        for act, reply in zip(acts, replies, strict=False):
            if reply not in record.conversation.after(act):
                yield f"{reply.event_id} came before {act}, which it answers"


def _silent(record: Record) -> Iterator[str]:
    called = record.conversation.after(record.call)
    for event in record.conversation.seen:
        if event.sender == record.helper and not isinstance(event, Joined) and event not in called:
            yield f"it sent {event.event_id} before"
    if not record.said(record.helper):
        yield "it did not answer when it was called"


def _selection(number: int, key: str, value: str, you: UserId, source: EventId) -> SelectionTold:
    return SelectionTold(number=number, key=key, value=value, answered_by=you, source_event_id=source)
