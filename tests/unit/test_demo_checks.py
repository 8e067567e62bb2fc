"""The demo's own judgement: a conversation that went right passes, and each way to go wrong is seen."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from mindbridge.demo.checks import Record, check
from mindbridge.demo.conversation import Conversation
from mindbridge.demo.journal_view import AgentTold, JournalView, QuestionTold, SelectionTold
from mindbridge.demo.timeline import Edit, Joined, Message, OptionShown, QuestionShown, Reaction, Redaction, Seen
from mindbridge.ids import AgentName, EventId, QuestionId, UserId
from mindbridge.questions.model import INSTRUCTION

YOU, ASSISTANT, HELPER = UserId("@you:x"), UserId("@assistant:x"), UserId("@helper:x")
HELLO, CLICK, LATE, NUMBER, CALL = (EventId(f"${name}") for name in ("hello", "click", "late", "number", "call"))

OPTIONS = {
    "$menu": (("🚀", "A plain choice"), ("👯", "A shared emoji")),
    "$approach": (("🚀", "Fast"), ("🔍", "Careful")),
    "$again": (("🚀", "A plain choice"), ("👯", "A shared emoji")),
}
CHOSEN = {"$menu": 1, "$approach": 2}


def shown(name: str, state: str) -> QuestionShown:
    options = tuple(
        OptionShown(number=number, emoji=emoji, label=label, button=emoji)
        for number, (emoji, label) in enumerate(OPTIONS[name], start=1)
    )
    return QuestionShown(question_id=QuestionId(f"question {name}"), state=state, options=options)


def body(name: str, status: str = INSTRUCTION) -> str:
    lines = (f"{number}. {emoji} {label}" for number, (emoji, label) in enumerate(OPTIONS[name], start=1))
    return "\n".join(("Before", "", "What?", "", *lines, "", status, "", "After"))


def asks(name: str) -> list[Seen]:
    question = Message(
        event_id=EventId(name), sender=ASSISTANT, text=body(name), thread_id=HELLO, question=shown(name, "open")
    )
    buttons = [
        Reaction(event_id=EventId(f"{name} {emoji}"), sender=ASSISTANT, target=EventId(name), key=emoji)
        for emoji, _ in OPTIONS[name]
    ]
    return [question, *buttons]


def closes(name: str) -> list[Seen]:
    number = CHOSEN[name]
    emoji, label = OPTIONS[name][number - 1]
    return [
        Edit(
            event_id=EventId(f"{name} edit"),
            sender=ASSISTANT,
            original=EventId(name),
            text=body(name, f"✔ {number}. {emoji} {label} · You · 2026-11-30 12:00 UTC"),
            question=shown(name, "answered"),
        )
    ]


def withdraws(name: str) -> list[Seen]:
    return [
        Redaction(event_id=EventId(f"{name} {emoji} gone"), sender=ASSISTANT, target=EventId(f"{name} {emoji}"))
        for emoji, _ in OPTIONS[name]
    ]


ROOM: tuple[Seen, ...] = (
    Joined(event_id=EventId("$1"), sender=ASSISTANT, user=ASSISTANT),
    Joined(event_id=EventId("$2"), sender=HELPER, user=HELPER),
    Message(event_id=HELLO, sender=YOU, text="hello"),
    *asks("$menu"),
    Reaction(event_id=CLICK, sender=YOU, target=EventId("$menu"), key="🚀"),
    *closes("$menu"),
    *asks("$approach"),
    *withdraws("$menu"),
    Reaction(event_id=LATE, sender=YOU, target=EventId("$menu"), key="👯"),
    Message(event_id=EventId("$told"), sender=ASSISTANT, text="already", is_notice=True, thread_id=HELLO),
    Message(event_id=NUMBER, sender=YOU, text="2", thread_id=HELLO),
    *asks("$again"),
    *closes("$approach"),
    *withdraws("$approach"),
    Message(event_id=CALL, sender=YOU, text="@helper are you there?"),
    Message(event_id=EventId("$here"), sender=HELPER, text="here", thread_id=CALL),
)


def selection(number: int, key: str, value: str, source: EventId) -> SelectionTold:
    return SelectionTold(number=number, key=key, value=value, answered_by=YOU, source_event_id=source)


def told(name: str, taken: SelectionTold | None) -> QuestionTold:
    return QuestionTold(
        question_id=QuestionId(f"question {name}"),
        agent=AgentName("assistant"),
        event_id=EventId(name),
        state="answered" if taken else "open",
        selection=taken,
    )


def turns(agent: str, done: int, **others: int) -> AgentTold:
    return AgentTold(agent=AgentName(agent), turns={"done": done, **others})


JOURNAL = JournalView(
    questions=(
        told("$menu", selection(1, "🚀", "plain", CLICK)),
        told("$approach", selection(2, "2", "careful", NUMBER)),
        told("$again", None),
    ),
    agents=(turns("assistant", 3), turns("helper", 1)),
    verdict="already_answered",
)


def record(room: tuple[Seen, ...] = ROOM, journal: JournalView = JOURNAL) -> Record:
    conversation = Conversation()
    for event in room:
        conversation.add(event)
    return Record(
        you=YOU,
        assistant=ASSISTANT,
        helper=HELPER,
        hello=HELLO,
        click=CLICK,
        late_click=LATE,
        number=NUMBER,
        call=CALL,
        conversation=conversation,
        journal=journal,
    )


def failed(performance: Record) -> set[str]:
    """The names of the checks that fail."""
    return {each.name for each in check(performance) if each.wrong}


def without(*names: str) -> Callable[[tuple[Seen, ...]], tuple[Seen, ...]]:
    return lambda room: tuple(event for event in room if event.event_id not in names)


def with_event(event: Seen, behind: str) -> Callable[[tuple[Seen, ...]], tuple[Seen, ...]]:
    def insert(room: tuple[Seen, ...]) -> tuple[Seen, ...]:
        place = next(index for index, each in enumerate(room) if each.event_id == behind) + 1
        return (*room[:place], event, *room[place:])

    return insert


def swapped(one: str, other: str) -> Callable[[tuple[Seen, ...]], tuple[Seen, ...]]:
    def swap(room: tuple[Seen, ...]) -> tuple[Seen, ...]:
        events = {event.event_id: event for event in room}
        change = {EventId(one): events[EventId(other)], EventId(other): events[EventId(one)]}
        return tuple(change.get(event.event_id, event) for event in room)

    return swap


def changed(name: str, **fields: object) -> Callable[[tuple[Seen, ...]], tuple[Seen, ...]]:
    return lambda room: tuple(
        replace(event, **fields) if event.event_id == name else event  # type: ignore[arg-type]
        for event in room
    )


def test_a_conversation_that_went_right_passes_every_check() -> None:
    assert len(check(record())) == 9
    assert failed(record()) == set()


SECOND_HELLO = Message(event_id=EventId("$double"), sender=ASSISTANT, text="Hello again", thread_id=HELLO)
HELPER_SPEAKS = Message(event_id=EventId("$early"), sender=HELPER, text="I am here too", thread_id=HELLO)
HELPER_CLICKS = Reaction(event_id=EventId("$early"), sender=HELPER, target=EventId("$menu"), key="👀")
SECOND_NOTICE = Message(event_id=EventId("$told2"), sender=ASSISTANT, text="already", is_notice=True, thread_id=HELLO)
SECOND_EDIT = replace(closes("$menu")[0], event_id=EventId("$edit2"))
FOREIGN_EDIT = replace(SECOND_EDIT, sender=HELPER)
EXTRA_BUTTON = Reaction(event_id=EventId("$extra"), sender=ASSISTANT, target=EventId("$menu"), key="✅")
OPEN_WITHDRAWN = Redaction(event_id=EventId("$early gone"), sender=ASSISTANT, target=EventId("$again 🚀"))
SECOND_MENU = replace(asks("$menu")[0], event_id=EventId("$menu2"))


@pytest.mark.parametrize(
    ("doctor", "expected"),
    [
        (without("$menu 👯"), {"posted"}),
        (swapped("$menu 🚀", "$menu 👯"), {"posted"}),
        (with_event(EXTRA_BUTTON, "$menu 👯"), {"posted", "withdrawn"}),
        (with_event(SECOND_MENU, "$menu"), {"posted", "closed", "withdrawn", "replies"}),
        (changed("$approach", thread_id=None), {"posted", "replies"}),
        (changed("$approach", text="What?"), {"posted", "closed"}),
        (changed("$approach", text=body("$approach").replace("2. 🔍 Careful", "3. 🔍 Careful")), {"posted", "closed"}),
        (without("$menu edit"), {"closed"}),
        (with_event(SECOND_EDIT, "$menu edit"), {"closed"}),
        (changed("$menu edit", text=body("$menu", "✔ 2. 👯 A shared emoji · You · today")), {"closed"}),
        (changed("$menu edit", text=body("$menu", "✔ 1. 🚀 A plain choice · Helper · today")), {"closed"}),
        (changed("$menu edit", text="✔ 1. 🚀 A plain choice · You · today"), {"closed"}),
        (changed("$menu edit", question=shown("$menu", "open")), {"closed"}),
        (without("$approach 🔍 gone"), {"withdrawn"}),
        (with_event(OPEN_WITHDRAWN, "$again 👯"), {"withdrawn"}),
        (swapped("$menu 🚀 gone", "$1"), {"withdrawn"}),
        (without("$told"), {"late"}),
        (with_event(SECOND_NOTICE, "$told"), {"late"}),
        (with_event(SECOND_HELLO, "$menu 👯"), {"replies"}),
        (swapped("$approach", "$click"), {"replies"}),
        (without("$here"), {"replies", "silence"}),
        (with_event(HELPER_SPEAKS, "$hello"), {"replies", "silence"}),
        (with_event(HELPER_CLICKS, "$menu"), {"silence"}),
    ],
)
def test_what_went_wrong_in_the_room_is_seen(
    doctor: Callable[[tuple[Seen, ...]], tuple[Seen, ...]], expected: set[str]
) -> None:
    assert failed(record(doctor(ROOM))) == expected


def test_an_edit_by_someone_else_changes_nothing() -> None:
    assert failed(record(with_event(FOREIGN_EDIT, "$call")(ROOM))) == set()


@pytest.mark.parametrize(
    ("index", "taken", "expected"),
    [
        (0, None, {"click"}),
        (0, selection(2, "👯", "shared", LATE), {"click"}),
        (0, selection(1, "🚀", "plain", LATE), {"click"}),
        (0, selection(1, "1", "plain", CLICK), {"click"}),
        (1, selection(2, "2", "fast", NUMBER), {"number"}),
        (1, selection(2, "🔍", "careful", NUMBER), {"number"}),
        (2, selection(1, "1", "plain", NUMBER), {"next"}),
    ],
)
def test_a_wrong_selection_in_the_journal_is_seen(index: int, taken: SelectionTold | None, expected: set[str]) -> None:
    questions = [told(question.event_id or "", question.selection) for question in JOURNAL.questions]
    questions[index] = told(questions[index].event_id or "", taken)
    assert failed(record(journal=replace(JOURNAL, questions=questions))) == expected


def test_a_question_that_the_journal_does_not_have_is_seen() -> None:
    assert failed(record(journal=replace(JOURNAL, questions=JOURNAL.questions[:2]))) == {"posted", "next"}


@pytest.mark.parametrize(
    "agents",
    [
        (turns("assistant", 4), turns("helper", 1)),
        (turns("assistant", 3), turns("helper", 2)),
        (turns("assistant", 3, queued=1), turns("helper", 1)),
        (turns("assistant", 2, parked=1), turns("helper", 1)),
        (turns("assistant", 3),),
    ],
)
def test_a_turn_too_many_or_too_few_is_seen(agents: tuple[AgentTold, ...]) -> None:
    assert failed(record(journal=replace(JOURNAL, agents=agents))) == {"replies"}


@pytest.mark.parametrize("verdict", [None, "selected", "not_an_option"])
def test_a_wrong_verdict_on_the_late_click_is_seen(verdict: str | None) -> None:
    assert failed(record(journal=replace(JOURNAL, verdict=verdict))) == {"late"}
