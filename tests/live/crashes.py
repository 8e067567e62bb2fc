"""Conversations with bridges that kill themselves, and what must be there in the end all the same."""

import asyncio
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mindbridge.ids import AgentName, EventId, turn_id
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
from tests.live.killed_bridge import PROGRAM, Point, kill_at, points_passed, spare
from tests.live.person import Event, Person
from tests.live.waiting import wait_until

AT_ONCE = 6
SIDES: tuple[Side, Side] = ("before", "after")
BUTTONS = ["🚀", "🔍\ufe0f"]
CHOSEN = "You chose Careful and manual."
MOST_RUNS = {"message": 2, "selection": 2}
"""How often the agent runs for a turn: once more where the bridge was killed meanwhile."""
MOST_SENDS = {Step.SEND_MESSAGE: 3, Step.SEND_BUTTON: 3, Step.SEND_EDIT: 2, Step.SEND_REDACTION: 3}
"""How often each kind of event is sent for a question and its answer: once more where the bridge was killed meanwhile.

A server that knows the transaction id shows none of the others in the room.
"""


def both_sides(steps: Mapping[Step, int]) -> list[Point]:
    """Right before and right after each step, each time that it is reached."""
    return [Point(step, side, nth) for step, times in steps.items() for nth in range(1, times + 1) for side in SIDES]


async def side_by_side(runs: Mapping[str, Callable[[], Awaitable[None]]]) -> None:
    """Does all, some at a time; an ExceptionGroup that names those that failed."""
    places = asyncio.Semaphore(AT_ONCE)

    async def do(run: Callable[[], Awaitable[None]]) -> None:
        async with places:
            await run()

    results = await asyncio.gather(*map(do, runs.values()), return_exceptions=True)
    failed: dict[str, Exception] = {}
    for name, result in zip(runs, results, strict=True):
        if isinstance(result, Exception):
            result.add_note(f"killed {name}")
            failed[name] = result
    if failed:
        raise ExceptionGroup(f"killed {'; '.join(failed)}", list(failed.values()))


@dataclass
class Conversation:
    """A person and a bridge that notes its points, alone in a room."""

    alice: Person
    bridge: Bridge
    room: str

    @property
    def account(self) -> str:
        return self.bridge.user_id()

    async def say(self, text: str) -> str:
        return await self.alice.send_text(self.room, text)

    async def answer(self, question: Event, how: str) -> str:
        """Answers with the second option, by `reaction` or by `number`."""
        if how == "reaction":
            return await self.alice.react(self.room, question["event_id"], "🔍")
        return await self.alice.send_text(self.room, "2", thread=root_of(question))

    async def killed_at(self, point: Point, cause: Awaitable[str]) -> str:
        """Has the bridge kill itself at the point, to which `cause` leads, and starts it again.

        Gives what `cause` gave.
        """
        kill_at(self.bridge.folder, point)
        caused = await cause
        await self.ended_itself()
        await self.bridge.start(PROGRAM)
        return caused

    async def ended_itself(self) -> None:
        """Until the bridge has killed itself; the next one lives."""
        try:
            status = await self.bridge.ended()
        except TimeoutError:
            raise AssertionError("the point was not reached") from None
        assert status == -signal.SIGKILL
        spare(self.bridge.folder)

    def is_settled(self) -> bool:
        [agent] = self.bridge.journal.status()["agents"]
        return not {"pending", "attempted"} & set(agent["deliveries"]) and "queued" not in agent["turns"]

    async def quiet(self) -> None:
        """Until the bridge has taken in all that is in the room so far, and has nothing left to do."""
        await wait_until(self.is_settled)
        mark = await self.alice.send_text(self.room, "mark", msgtype="m.notice")
        await wait_until(lambda: "seen by" in self.bridge.journal.why(mark)["reason"])
        await self.alice.wait_for(self.room, lambda event: event["event_id"] == mark)

    def sent(self) -> list[Event]:
        """All that the agent's account has sent, in order."""
        sent = [event for event in self.alice.timeline(self.room) if event["sender"] == self.account]
        return [event for event in sent if event["type"] != "m.room.member"]

    async def at_rest(self) -> None:
        """Until it is quiet and the bridge has looked for work after that; only where its points are noted."""
        await self.quiet()

        def has_looked() -> bool:
            passed = points_passed(self.bridge.folder)
            last = max(index for index, point in enumerate(passed) if point == (Step.ADMIT, "after"))
            claims = [side for step, side in passed[last:] if step is Step.CLAIM]
            return claims[:1] == ["before"] and claims[-1] == "after"

        await wait_until(has_looked)

    async def question(self) -> Event:
        """The question, when the room holds it, its buttons once and in their order, and nothing else of the agent."""
        question = await self.alice.wait_for(self.room, is_question())
        await self.alice.wait_for(self.room, is_button(BUTTONS[-1], question["event_id"]))
        await self.quiet()
        assert [kind_of(event) for event in self.sent()] == ["m.room.message", "m.reaction", "m.reaction"]
        assert await buttons_of(self.alice, self.room, question["event_id"]) == BUTTONS
        return question

    async def check_end(self, question: Event, answer: str) -> None:
        """All that an answered question leads to is there once, for the person, the agent and the journal."""
        await self.alice.wait_for(self.room, is_message(CHOSEN))
        await self.alice.wait_for(self.room, is_edit_of(question["event_id"]))
        await self.quiet()
        kinds = Counter(map(kind_of, self.sent()))
        assert kinds == {"m.room.message": 2, "m.reaction": 2, "edit": 1, "m.room.redaction": 2}
        assert said_in(self.alice, self.room, self.account)[1:] == [CHOSEN]
        assert await buttons_of(self.alice, self.room, question["event_id"]) == []
        [edit] = [event for event in self.sent() if kind_of(event) == "edit"]
        assert edit["content"]["m.new_content"]["dev.mindbridge.question"]["state"] == "answered"
        self._check_turns(answer)
        self._check_journal()
        self._check_sends()

    def _check_turns(self, answer: str) -> None:
        by_kind = {kind: [turn for turn in self.bridge.turns() if turn["kind"] == kind] for kind in MOST_RUNS}
        for kind, turns in by_kind.items():
            assert {turn["turn_id"] for turn in turns} == {
                turn_id(AgentName("assistant"), EventId(turn["event_id"])) for turn in turns
            }
            assert len({turn["turn_id"] for turn in turns}) == 1
            assert {turn["attempt"] for turn in turns} == {1}
            assert len(turns) <= MOST_RUNS[kind]
        assert {turn["selection"]["source_event_id"] for turn in by_kind["selection"]} == {answer}
        assert {turn["event_id"] for turn in by_kind["selection"]} == {answer}

    def _check_journal(self) -> None:
        status = self.bridge.journal.status()
        [agent] = status["agents"]
        told = agent["turns"], agent["questions"], agent["deliveries"]
        assert told == ({"done": 2}, {"answered": 1}, {"sent": 7})
        assert status["parked"] == status["refused"] == status["uncertain"] == []

    def _check_sends(self) -> None:
        begun = Counter(step for step, side in points_passed(self.bridge.folder) if side == "before")
        sent_too_often = {step: begun[step] for step, most in MOST_SENDS.items() if begun[step] > most}
        assert sent_too_often == {}


def kind_of(event: Event) -> str:
    """Its type, or `edit`."""
    return "edit" if "m.new_content" in event["content"] else str(event["type"])


@dataclass
class Stage:
    """Makes conversations, each with a new person, bridge and room: `talk = await new_talk()`."""

    new_person: NewPerson
    new_bridge: NewBridge

    async def __call__(self, **settings: Any) -> Conversation:
        """Starts one; `settings` are those of `new_bridge`."""
        alice, bridge = await self.new_person("Alice"), await self.new_bridge(**settings)
        await bridge.start(PROGRAM)
        talk = Conversation(alice, bridge, await room_with(alice, bridge.user_id()))
        await talk.at_rest()
        return talk
