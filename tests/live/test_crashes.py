"""A bridge that is killed at any step loses nothing and repeats nothing (contract, section 7.1)."""

import asyncio
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

import pytest

from mindbridge.steps import Side, Step
from tests.live.bridge import Bridge
from tests.live.conftest import NewBridge, NewPerson
from tests.live.conversation import (
    buttons_of,
    is_button,
    is_edit_of,
    is_message,
    is_question,
    room_with,
    root_of,
    said_in,
)
from tests.live.killed_bridge import PROGRAM, Point, kill_at, points_passed
from tests.live.person import Event, Person
from tests.live.waiting import wait_until

AT_ONCE = 6
SIDES: tuple[Side, Side] = ("before", "after")
BUTTONS = ["🚀", "🔍\ufe0f"]

# How often each step is reached, at least. CLAIM: once without a delivery or with the edit, once for each event that is
# sent, once to acknowledge the last of them, once more after it came back.
ASKING = {
    Step.ADMIT: 2,
    Step.START_TURN: 1,
    Step.CALL_AGENT: 1,
    Step.END_TURN: 1,
    Step.CLAIM: 6,
    Step.SEND_MESSAGE: 1,
    Step.SEND_BUTTON: 2,
}
ANSWERING = {
    Step.ADMIT: 2,
    Step.START_TURN: 1,
    Step.CALL_AGENT: 1,
    Step.END_TURN: 1,
    Step.CLAIM: 6,
    Step.SEND_EDIT: 1,
    Step.SEND_MESSAGE: 1,
    Step.SEND_REDACTION: 2,
}
STARTING = (Step.PREPARE, Step.CLOSE_REMOVED, Step.RECORD_ACCOUNT, Step.REQUEUE_PARKED, Step.FORGET)
NOT_KILLED = {
    Step.MARK_GAP: (
        "committed before the position that it belongs to, and the same when it is done again",
        "test_clicks_in_a_gap_that_cannot_be_read_count_and_withdrawn_ones_do_not",
    ),
    Step.RETRY_TURN: (
        "one statement of a command of its own, whose user sees whether it was done",
        "test_turn_that_failed_three_times_is_parked_with_one_notice_until_it_is_run_again",
    ),
}


def both_sides(steps: Iterable[tuple[Step, int]]) -> list[Point]:
    return [Point(step, side, nth) for step, times in steps for nth in range(1, times + 1) for side in SIDES]


async def side_by_side(points: Sequence[Point], run: Callable[[Point], Awaitable[None]]) -> None:
    """Runs once for each point, some at a time; an ExceptionGroup that names the points at which a run failed."""
    places = asyncio.Semaphore(AT_ONCE)

    async def run_at(point: Point) -> None:
        async with places:
            await run(point)

    results = await asyncio.gather(*map(run_at, points), return_exceptions=True)
    failed: dict[Point, Exception] = {}
    for point, result in zip(points, results, strict=True):
        if isinstance(result, Exception):
            result.add_note(f"killed {point}")
            failed[point] = result
    if failed:
        raise ExceptionGroup(f"killed {', '.join(map(str, failed))}", list(failed.values()))


def is_settled(bridge: Bridge) -> bool:
    [agent] = bridge.journal.status()["agents"]
    return not {"pending", "attempted"} & set(agent["deliveries"]) and "queued" not in agent["turns"]


@dataclass
class Conversation:
    """A person and a bridge that notes its points, alone in a room."""

    alice: Person
    bridge: Bridge
    room: str

    @property
    def account(self) -> str:
        return self.bridge.user_id()

    async def quiet(self) -> None:
        """Until the bridge has taken in all that is in the room so far, and has nothing left to do."""
        await wait_until(lambda: is_settled(self.bridge))
        mark = await self.alice.send_text(self.room, "mark", msgtype="m.notice")
        await wait_until(lambda: "seen by" in self.bridge.journal.why(mark)["reason"])
        await self.alice.wait_for(self.room, lambda event: event["event_id"] == mark)

    async def at_rest(self) -> None:
        """The same, and until its deliverer has looked for work after that; only where its points are noted."""
        await self.quiet()

        def has_looked() -> bool:
            passed = points_passed(self.bridge.folder)
            last = max(index for index, point in enumerate(passed) if point == (Step.ADMIT, "after"))
            claims = [point for point in passed[last:] if point[0] is Step.CLAIM]
            return claims[:1] == [(Step.CLAIM, "before")] and claims[-1] == (Step.CLAIM, "after")

        await wait_until(has_looked)

    async def killed(self) -> None:
        """Until the bridge has killed itself."""
        try:
            status = await self.bridge.ended()
        except TimeoutError:
            raise AssertionError("the point was not reached") from None
        assert status == -signal.SIGKILL

    async def say(self, text: str) -> str:
        return await self.alice.send_text(self.room, text)

    async def question(self) -> Event:
        """The question, with its buttons."""
        question = await self.alice.wait_for(self.room, is_question())
        await self.alice.wait_for(self.room, is_button(BUTTONS[-1], question["event_id"]))
        return question

    async def answer(self, question: Event, how: str) -> str:
        if how == "reaction":
            return await self.alice.react(self.room, question["event_id"], "🔍")
        return await self.alice.send_text(self.room, "2", thread=root_of(question))

    async def answered(self, question: Event) -> None:
        """Until the answer has led to a reply and the edit."""
        await self.alice.wait_for(self.room, is_message("You chose Careful and manual."))
        await self.alice.wait_for(self.room, is_edit_of(question["event_id"]))
        await self.quiet()

    def sent(self) -> list[Event]:
        """All that the agent's account has sent, in order."""
        sent = [event for event in self.alice.timeline(self.room) if event["sender"] == self.account]
        return [event for event in sent if event["type"] != "m.room.member"]


def kind_of(event: Event) -> str:
    return "edit" if "m.new_content" in event["content"] else str(event["type"])


async def check_question(talk: Conversation) -> Event:
    """The room holds the question, its buttons once and in their order, and nothing else; gives the question."""
    question = await talk.question()
    await talk.quiet()
    assert [kind_of(event) for event in talk.sent()] == ["m.room.message", "m.reaction", "m.reaction"]
    assert await buttons_of(talk.alice, talk.room, question["event_id"]) == BUTTONS
    return question


async def check_end(talk: Conversation, question: Event, answer: str) -> None:
    """All that an answered question leads to is there once, for the person, the agent and the journal."""
    await talk.answered(question)
    assert Counter(map(kind_of, talk.sent())) == {
        "m.room.message": 2,
        "m.reaction": 2,
        "edit": 1,
        "m.room.redaction": 2,
    }
    assert said_in(talk.alice, talk.room, talk.account)[1:] == ["You chose Careful and manual."]
    assert await buttons_of(talk.alice, talk.room, question["event_id"]) == []
    [edit] = [event for event in talk.sent() if kind_of(event) == "edit"]
    assert edit["content"]["m.new_content"]["dev.mindbridge.question"]["state"] == "answered"

    first, second = (
        [turn for turn in talk.bridge.turns() if turn["kind"] == kind] for kind in ("message", "selection")
    )
    assert len({turn["turn_id"] for turn in first}) == len({turn["turn_id"] for turn in second}) == 1
    assert {turn["selection"]["source_event_id"] for turn in second} == {answer}
    assert {turn["attempt"] for turn in (*first, *second)} == {1}
    assert max(len(first), len(second)) <= 2

    status = talk.bridge.journal.status()
    [agent] = status["agents"]
    assert (agent["turns"], agent["questions"], agent["deliveries"]) == ({"done": 2}, {"answered": 1}, {"sent": 7})
    assert status["parked"] == status["refused"] == status["uncertain"] == []


@dataclass
class Stage:
    """Makes conversations, each with a new person, bridge and room."""

    new_person: NewPerson
    new_bridge: NewBridge

    async def __call__(self, **settings: object) -> Conversation:
        alice, bridge = await self.new_person("Alice"), await self.new_bridge(**settings)  # type: ignore[arg-type]
        await bridge.start(PROGRAM)
        talk = Conversation(alice, bridge, await room_with(alice, bridge.user_id()))
        await talk.at_rest()
        return talk


@pytest.fixture
def new_talk(new_person: NewPerson, new_bridge: NewBridge) -> Stage:
    return Stage(new_person, new_bridge)


# The flow


@pytest.mark.parametrize("how", ["reaction", "number"])
async def test_flow_reaches_the_steps_at_which_the_bridge_is_killed(how: str, new_talk: Stage) -> None:
    talk = await new_talk()
    phases: list[Counter[tuple[Step, Side]]] = []
    begin = len(points_passed(talk.bridge.folder))
    started = {step for step, _ in points_passed(talk.bridge.folder)}

    async def end_phase() -> None:
        nonlocal begin
        await talk.at_rest()
        passed = points_passed(talk.bridge.folder)
        phases.append(Counter(passed[begin:]))
        begin = len(passed)

    await talk.say("ask me")
    question = await check_question(talk)
    await end_phase()
    answer = await talk.answer(question, how)
    await check_end(talk, question, answer)
    await end_phase()

    assert started == {*STARTING, Step.ADMIT, Step.CLAIM}
    for passed, expected in zip(phases, (ASKING, ANSWERING), strict=True):
        assert {step for step, _ in passed} == set(expected)
        for side in SIDES:
            times = {step: passed[step, side] for step in expected}
            varying = {Step.ADMIT, Step.CLAIM}
            assert all(times[step] >= expected[step] for step in varying), times
            assert {step: times[step] for step in times if step not in varying} == {
                step: expected[step] for step in expected if step not in varying
            }


async def test_bridge_killed_while_it_asks_asks_once(new_talk: Stage) -> None:
    async def run(point: Point) -> None:
        talk = await new_talk()
        kill_at(talk.bridge.folder, point)
        await talk.say("ask me")
        await talk.killed()
        await talk.bridge.start()
        question = await check_question(talk)
        answer = await talk.answer(question, "reaction")
        await check_end(talk, question, answer)
        await talk.bridge.stop(signal.SIGKILL)

    await side_by_side(both_sides(ASKING.items()), run)


@pytest.mark.parametrize("how", ["reaction", "number"])
async def test_bridge_killed_while_it_takes_an_answer_takes_it_once(how: str, new_talk: Stage) -> None:
    async def run(point: Point) -> None:
        talk = await new_talk()
        await talk.say("ask me")
        question = await check_question(talk)
        await talk.at_rest()
        kill_at(talk.bridge.folder, point)
        answer = await talk.answer(question, how)
        await talk.killed()
        await talk.bridge.start()
        await check_end(talk, question, answer)
        await talk.bridge.stop(signal.SIGKILL)

    await side_by_side(both_sides(ANSWERING.items()), run)


async def test_bridge_killed_again_and_again_while_it_starts_takes_an_answer_given_meanwhile_once(
    new_talk: Stage,
) -> None:
    talk = await new_talk()
    await talk.say("ask me")
    question = await check_question(talk)
    await talk.bridge.stop(signal.SIGKILL)
    answer = await talk.answer(question, "reaction")
    for point in both_sides((step, 1) for step in STARTING):
        kill_at(talk.bridge.folder, point)
        await talk.bridge.launch(PROGRAM)
        await talk.killed()
    await talk.bridge.start()
    await check_end(talk, question, answer)
