"""The people of the soak: they ask, click, type, take back and talk, and remember what they did."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from tests.live.conversation import is_question
from tests.live.person import Event, Person

CLICKS = ["🍎", "🍌", "🍒", "🍇", "🍐"]
PAUSE_SECONDS = (2.0, 8.0)


@dataclass
class Answer:
    """A try to answer a question: option `number`, by click or typed; `withdrawn` a while later."""

    event_id: str
    number: int
    typed: bool
    withdrawn: bool = False


@dataclass
class Asked:
    """A message that makes the agent ask, and the tries to answer."""

    root: str
    options: int
    answers: list[Answer] = field(default_factory=list)


@dataclass
class Talk:
    """All that people said in one room. `words`: messages for the agent by event id, with the thread they are in."""

    room: str
    agent: str
    asked: list[Asked] = field(default_factory=list)
    words: dict[str, tuple[str, str]] = field(default_factory=dict)


Act = Callable[[Talk, Person], Coroutine[Any, Any, None]]


@dataclass
class People:
    """Two people in all rooms."""

    alice: Person
    bob: Person
    talks: list[Talk]
    chance: random.Random
    done: Counter[str] = field(default_factory=Counter)
    _numbers: int = 0

    async def talk(self) -> None:
        """Talks in all rooms at once, for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look())
            for talk in self.talks:
                tasks.create_task(self._talk_in(talk))

    async def _look(self) -> None:
        while True:
            await self.alice.catch_up()
            await asyncio.sleep(0.3)

    async def _talk_in(self, talk: Talk) -> None:
        acts: list[Callable[[Talk, Person], Coroutine[Any, Any, None]]] = [
            self._ask,
            self._answer,
            self._answer,
            self._answer,
            self._say,
        ]
        while True:
            await asyncio.sleep(self.chance.uniform(*PAUSE_SECONDS))
            act = self.chance.choice(acts)
            # What was begun is noted: it may have been done when the soak ends in the middle of it.
            person = self.chance.choice([self.alice, self.bob])
            await asyncio.shield(asyncio.create_task(act(talk, person)))

    async def _ask(self, talk: Talk, person: Person) -> None:
        self._numbers += 1
        options = self.chance.randint(2, 5)
        root = await person.send_text(talk.room, f"ask {options} n{self._numbers}")
        talk.asked.append(Asked(root, options))
        self.done["people: questions caused"] += 1

    async def _say(self, talk: Talk, person: Person) -> None:
        self._numbers += 1
        text = f"word n{self._numbers}"
        roots = [asked.root for asked in talk.asked]
        root = self.chance.choice([None, *roots[-3:]])
        event_id = await person.send_text(talk.room, text, thread=root)
        talk.words[event_id] = (root or event_id, text)
        self.done["people: messages"] += 1

    async def _answer(self, talk: Talk, person: Person) -> None:
        seen = {root: question for root, question in self._questions(talk).items() if root}
        known = [asked for asked in talk.asked if asked.root in seen]
        if not known:
            return
        asked = self.chance.choice(known[-4:])
        number = self.chance.randint(1, asked.options)
        question = seen[asked.root]["event_id"]
        if self.chance.random() < 0.4:
            event_id = await person.send_text(talk.room, str(number), thread=asked.root)
            asked.answers.append(Answer(event_id, number, typed=True))
            self.done["people: numbers typed"] += 1
            return
        if any(not each.typed and each.number == number for each in asked.answers):
            return  # the homeserver takes each reaction of a person once
        event_id = await person.react(talk.room, question, CLICKS[number - 1])
        answer = Answer(event_id, number, typed=False)
        asked.answers.append(answer)
        self.done["people: clicks"] += 1
        if self.chance.random() < 0.2:
            answer.withdrawn = True
            await person.redact(talk.room, event_id)
            self.done["people: clicks withdrawn"] += 1

    def _questions(self, talk: Talk) -> dict[str, Event]:
        found = {}
        for event in self.alice.timeline(talk.room):
            if is_question("", talk.agent)(event):
                found[str(event["content"].get("m.relates_to", {}).get("event_id"))] = event
        return found
