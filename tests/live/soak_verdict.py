"""What came of a soak, read from the homeserver as a person sees it and compared with what people did.

The bridge's journal is not asked: only the room, and the turns that the agents' own program noted.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tests.live.conversation import is_edit_of
from tests.live.person import Event, Person
from tests.live.soak_people import CLICKS, Answer, Asked, Talk

QUESTION = "dev.mindbridge.question"


@dataclass(frozen=True)
class Case:
    """Something that was lost or doubled; `event_id` is what to ask the journal about."""

    what: str
    event_id: str


@dataclass
class Verdict:
    """What was lost and what was doubled; `counted`: what came about."""

    lost: list[Case] = field(default_factory=list)
    doubled: list[Case] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)

    def exactly(self, wanted: int, number: int, what: str, event_id: str) -> None:
        """Notes it where there are fewer or more."""
        if number < wanted:
            self.lost.append(Case(f"{number} of {wanted}: {what}", event_id))
        self.at_most(wanted, number, what, event_id)

    def at_most(self, wanted: int, number: int, what: str, event_id: str) -> None:
        """Notes it where there are more."""
        if number > wanted:
            self.doubled.append(Case(f"{number} instead of {wanted}: {what}", event_id))


async def whole_timeline(person: Person, room: str) -> list[Event]:
    """All events of the room, in the homeserver's order; what was redacted as the person saw it before."""
    events: list[Event] = []
    query = {"dir": "b", "limit": "500"}
    while True:
        page = await person.call("GET", "rooms", room, "messages", params=query)
        events += page["chunk"]
        if not page["chunk"] or "end" not in page:
            break
        query["from"] = page["end"]
    before = {event["event_id"]: event["content"] for event in person.timeline(room)}
    return [
        event | {"content": event["content"] or before.get(event["event_id"], {}), "standing": bool(event["content"])}
        for event in reversed(events)
    ]


def relation(event: Event) -> Event:
    found: Event = event["content"].get("m.relates_to", {})
    return found


def target(event: Event) -> str:
    return str(relation(event).get("event_id"))


@dataclass
class Judge:
    """Compares what people did with what came of it. `turns`: all that the agents were asked."""

    person: Person
    turns: list[Event]
    verdict: Verdict

    async def judge(self, talk: Talk) -> None:
        """Compares one room."""
        events = await whole_timeline(self.person, talk.room)
        _Room(talk, events, [turn for turn in self.turns if turn["room_id"] == talk.room], self.verdict).judge()


class _Room:
    def __init__(self, talk: Talk, events: list[Event], turns: list[Event], verdict: Verdict) -> None:
        self._talk = talk
        self._turns = turns
        self._verdict = verdict
        self._place = {event["event_id"]: place for place, event in enumerate(events)}
        self._own = [event for event in events if event["sender"] == talk.agent]
        self._said: defaultdict[str, list[Event]] = defaultdict(list)  # by the root of the thread, without notices
        for event in self._own:
            is_text = event["type"] == "m.room.message" and event["content"].get("msgtype") == "m.text"
            if is_text and relation(event).get("rel_type") != "m.replace":
                self._said[target(event)].append(event)

    def judge(self) -> None:
        expected: Counter[str] = Counter()  # turns by the event that causes them
        for event_id, (root, text) in self._talk.words.items():
            expected[event_id] += 1
            replies = [each for each in self._said[root] if each["content"]["body"] == f"You said: {text}"]
            self._verdict.exactly(1, len(replies), f"reply to {text!r}", event_id)
            self._verdict.counted["replies to messages"] += len(replies)
        for asked in self._talk.asked:
            expected[asked.root] += 1
            expected.update(self._question(asked))
        turns = {turn["turn_id"]: turn["event_id"] for turn in self._turns}
        for event_id, number in Counter(turns.values()).items():
            self._verdict.at_most(expected[event_id], number, "turns for one event", event_id)
        self._nothing_twice()

    def _nothing_twice(self) -> None:
        """The same to the same target, and messages that belong to nothing that people did."""
        roots = {asked.root for asked in self._talk.asked} | {root for root, _ in self._talk.words.values()}
        same: defaultdict[tuple[str, ...], list[Event]] = defaultdict(list)
        for event in self._own:
            content = event["content"]
            if event["type"] == "m.room.redaction":
                redacted = event.get("redacts") or content.get("redacts")
                same["redaction of", str(redacted)].append(event)
            elif event["type"] == "m.reaction" and relation(event):
                same["button", str(relation(event)["key"]), target(event)].append(event)
            elif relation(event).get("rel_type") == "m.replace":
                same["edit of", target(event)].append(event)
            elif content.get("msgtype") == "m.notice":
                told = ",".join(content["m.mentions"].get("user_ids", []))
                same["notice", told, relation(event)["m.in_reply_to"]["event_id"]].append(event)
                self._verdict.counted["notices"] += 1
            elif event["type"] == "m.room.message" and target(event) not in roots:
                self._verdict.doubled.append(Case("a message of an agent to nothing that was said", event["event_id"]))
        for what, events in same.items():
            self._verdict.at_most(1, len(events), " ".join(what), events[-1]["event_id"])
        buttons = sum(event["type"] == "m.reaction" for event in self._own)
        self._verdict.at_most(sum(each.options for each in self._talk.asked), buttons, "buttons", self._talk.room)

    def _question(self, asked: Asked) -> list[str]:
        """Compares one question, its answers and what they led to; gives the tries that have turns of their own."""
        verdict, said = self._verdict, self._said[asked.root]
        questions = [event for event in said if QUESTION in event["content"]]
        verdict.exactly(1, len(questions), "question", asked.root)
        verdict.counted["questions"] += len(questions)
        tries = sorted(asked.answers, key=lambda each: self._place[each.event_id])
        allowed = may_be_taken(tries)
        chosen = {
            turn["turn_id"]: turn["event_id"]
            for turn in self._turns
            if (turn["kind"], turn["thread_id"]) == ("selection", asked.root)
        }
        replies = [event for event in said if event["content"]["body"].startswith("You chose ")]
        verdict.at_most(1, len(replies), "reply to a selection", asked.root)
        taken = next((each for each in tries if each.event_id in chosen.values()), None)
        if allowed and not allowed[-1].withdrawn:
            verdict.exactly(1, len(chosen), "selection of the first answer", allowed[-1].event_id)
        else:
            verdict.at_most(1, len(chosen), "selection", asked.root)
        if taken is not None and taken not in allowed:
            verdict.lost.append(Case(f"{allowed[-1]}: {taken} was taken instead", allowed[-1].event_id))
        messages = [] if taken is None else self._ordinary(tries, taken, said)
        expected = Counter(f"You said: {each.number}" for each in messages)
        for number in range(1, asked.options + 1):
            body = f"You said: {number}"
            found = sum(event["content"]["body"] == body for event in said)
            verdict.exactly(expected[body], found, f"{body!r} in the thread", asked.root)
        if questions:
            self._closing(asked, questions[0], taken, replies)
        late = [each for each in tries if each not in messages and each is not taken]
        verdict.counted["answers: first"] += taken is not None
        verdict.counted["answers: late"] += sum(not each.withdrawn for each in late)
        verdict.counted["answers: withdrawn"] += sum(each.withdrawn for each in late)
        verdict.counted["numbers that were messages"] += len(messages)
        return [*(each.event_id for each in messages), *([taken.event_id] if taken else [])]

    def _ordinary(self, tries: list[Answer], taken: Answer, said: list[Event]) -> list[Answer]:
        """The numbers that were typed after the agent's next message in the thread: messages, not late answers."""
        first = self._place[taken.event_id]
        spoke = min((place for each in said if (place := self._place[each["event_id"]]) > first), default=None)
        return [] if spoke is None else [each for each in tries if each.typed and self._place[each.event_id] > spoke]

    def _closing(self, asked: Asked, question: Event, taken: Answer | None, replies: list[Event]) -> None:
        verdict, event_id = self._verdict, question["event_id"]
        edits = [event["content"]["m.new_content"] for event in self._own if is_edit_of(event_id)(event)]
        buttons = [event for event in self._own if event["type"] == "m.reaction" and target(event) == event_id]
        standing = sorted(relation(event)["key"] for event in buttons if event["standing"])
        if taken is None:
            verdict.exactly(0, len(edits), "closing edit of an open question", event_id)
            for key in CLICKS[: asked.options]:
                verdict.exactly(1, standing.count(key), f"button {key} of an open question", event_id)
            return
        body = f"You chose {taken.number} of Which for {asked.name}?"
        verdict.exactly(1, sum(each["content"]["body"] == body for each in replies), f"reply {body!r}", taken.event_id)
        verdict.counted["selections"] += 1
        line = f"✔ {taken.number}. "
        closing = [each for each in edits if each[QUESTION]["state"] == "answered" and line in each["body"]]
        verdict.exactly(1, len(closing), f"closing edit {line!r}", event_id)
        # An account that was limited leaves the buttons of its answered questions.
        verdict.counted["answered questions with buttons left"] += bool(standing)


def may_be_taken(tries: list[Answer]) -> list[Answer]:
    """The first try that stands, and those before it that were withdrawn: in time or not."""
    allowed: list[Answer] = []
    for each in tries:
        allowed.append(each)
        if not each.withdrawn:
            break
    return allowed
