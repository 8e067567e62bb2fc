"""The people of the soak: they ask, click, type, take back and talk, and remember what they did."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.live.conversation import is_question
from tests.live.person import Person

CLICKS = ["🍎", "🍌", "🍒", "🍇", "🍐"]
KEYCAP = "\ufe0f\u20e3"
PAUSE_SECONDS = (2.0, 8.0)
LOOK_SECONDS = 0.3

IsOn = Callable[[], bool]


@dataclass
class Answer:
    """A try of `person` to answer: option `number`, clicked with `key` or typed; `withdrawn` a while later."""

    event_id: str
    person: str
    number: int
    key: str | None
    withdrawn: bool = False

    @property
    def typed(self) -> bool:
        return self.key is None


@dataclass
class Asked:
    """A message that makes the agent ask, in its own thread, and the tries to answer."""

    root: str
    name: str
    options: int
    answers: list[Answer] = field(default_factory=list)


@dataclass
class Talk:
    """All that people said in one room. `words`: messages for the agent by event id, with their thread and text."""

    room: str
    agent: str
    asked: list[Asked] = field(default_factory=list)
    words: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass
class People:
    """Several people in all rooms; with the same `seed` they do the same, as far as questions come in time."""

    crowd: list[Person]
    talks: list[Talk]
    seed: int
    done: Counter[str] = field(default_factory=Counter)

    async def look(self) -> None:
        """The first of them sees everything at once, for ever: also what is redacted soon."""
        while True:
            await self.crowd[0].catch_up()
            await asyncio.sleep(LOOK_SECONDS)

    async def talk(self, is_on: IsOn) -> None:
        """They talk in all rooms at once; what was begun is ended."""
        async with asyncio.TaskGroup() as tasks:
            for number, talk in enumerate(self.talks):
                tasks.create_task(_Voices(self, talk, number).talk(is_on))


class _Voices:
    """The people in one room."""

    def __init__(self, people: People, talk: Talk, number: int) -> None:
        self._people = people
        self._talk = talk
        self._name = f"n{number}x"
        self._said = 0
        self._chance = random.Random(f"{people.seed} {number}")  # noqa: S311 - reproducible, protects nothing

    async def talk(self, is_on: IsOn) -> None:
        acts = [self._ask, self._answer, self._answer, self._answer, self._say]
        while True:
            await asyncio.sleep(self._chance.uniform(*PAUSE_SECONDS))
            if not is_on():
                return
            act, person = self._chance.choice(acts), self._chance.choice(self._people.crowd)
            await act(person)

    def _new_name(self) -> str:
        self._said += 1
        return f"{self._name}{self._said}"

    async def _ask(self, person: Person) -> None:
        name, options = self._new_name(), self._chance.randint(2, 5)
        root = await person.send_text(self._talk.room, f"ask {options} {name}")
        self._talk.asked.append(Asked(root, name, options))
        self._people.done["people: questions caused"] += 1

    async def _say(self, person: Person) -> None:
        text = f"word {self._new_name()}"
        root = self._chance.choice([None, *(asked.root for asked in self._talk.asked[-3:])])
        event_id = await person.send_text(self._talk.room, text, thread=root)
        self._talk.words[event_id] = (root or event_id, text)
        self._people.done["people: messages"] += 1

    async def _answer(self, person: Person) -> None:
        seen = self._questions_seen()
        known = [asked for asked in self._talk.asked if asked.root in seen][-4:]
        if not known:
            return
        asked = self._chance.choice(known)
        number = self._chance.randint(1, asked.options)
        if self._chance.random() < 0.4:
            event_id = await person.send_text(self._talk.room, str(number), thread=asked.root)
            asked.answers.append(Answer(event_id, person.user_id, number, key=None))
            self._people.done["people: numbers typed"] += 1
            return
        key = self._chance.choice([CLICKS[number - 1]] * 3 + [f"{number}{KEYCAP}"])
        if any((each.person, each.key, each.withdrawn) == (person.user_id, key, False) for each in asked.answers):
            return  # the homeserver takes a reaction of a person once
        event_id = await person.react(self._talk.room, seen[asked.root], key)
        answer = Answer(event_id, person.user_id, number, key)
        asked.answers.append(answer)
        self._people.done["people: clicks"] += 1
        if self._chance.random() < 0.25:
            await asyncio.sleep(self._chance.choice([0, 0.2, 2]))
            answer.withdrawn = True
            await person.redact(self._talk.room, event_id)
            self._people.done["people: clicks withdrawn"] += 1

    def _questions_seen(self) -> dict[str, str]:
        """The event of each question that was seen, by the root of its thread."""
        timeline, asks = self._people.crowd[0].timeline(self._talk.room), is_question("", self._talk.agent)
        return {event["content"]["m.relates_to"]["event_id"]: event["event_id"] for event in timeline if asks(event)}
