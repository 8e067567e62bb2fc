"""What came of a soak, read from the homeserver as a person sees it and compared with what people did."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tests.live.bridge import Bridge
from tests.live.person import Event, Person
from tests.live.soak_people import Answer, Asked, Talk


@dataclass
class Verdict:
    """What was lost and what was doubled, each case in a line; `counted`: what came about."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)

    def exactly_one(self, number: int, what: str) -> None:
        """Notes it where there are none, or several."""
        if number == 0:
            self.lost.append(f"lost: {what}")
        if number > 1:
            self.doubled.append(f"{number} times: {what}")

    def at_most_one(self, number: int, what: str) -> None:
        """Notes it where there are several."""
        if number > 1:
            self.doubled.append(f"{number} times: {what}")


async def whole_timeline(person: Person, room: str) -> list[Event]:
    """All events of the room, oldest first."""
    events: list[Event] = []
    query = {"dir": "b", "limit": "500"}
    while True:
        page = await person.call("GET", "rooms", room, "messages", params=query)
        events += page["chunk"]
        if not page["chunk"] or "end" not in page:
            return events[::-1]
        query["from"] = page["end"]


def relation(event: Event) -> Event:
    found = event["content"].get("m.relates_to", {})
    return found if isinstance(found, dict) else {}


@dataclass
class Judge:
    """Compares what people did with what came of it. `turns`: all that the agents were asked."""

    person: Person
    bridge: Bridge
    turns: list[Event]
    verdict: Verdict

    async def room(self, talk: Talk) -> None:
        """Compares one room."""
        verdict = self.verdict
        events = await whole_timeline(self.person, talk.room)
        order = {event["event_id"]: place for place, event in enumerate(events)}
        own = [event for event in events if event["sender"] == talk.agent]
        said: defaultdict[str, list[Event]] = defaultdict(list)
        edits: Counter[str] = Counter()
        reactions: Counter[tuple[str, str]] = Counter()
        for event in own:
            related = str(relation(event).get("event_id"))
            if relation(event).get("rel_type") == "m.replace":
                edits[related] += 1
            elif event["type"] == "m.room.message":
                said[related].append(event)
            elif event["type"] == "m.reaction" and relation(event):
                reactions[related, str(relation(event)["key"])] += 1
        for (target, key), number in reactions.items():
            verdict.at_most_one(number, f"button {key} of {target}")
        for target, number in edits.items():
            verdict.at_most_one(number, f"edit of {target}")
        buttons = sum(event["type"] == "m.reaction" for event in own)
        if buttons > (most := sum(asked.options for asked in talk.asked)):
            verdict.doubled.append(f"{buttons} buttons were sent in {talk.room}, of {most}")
        for event_id, (root, text) in talk.words.items():
            replies = [each for each in said[root] if each["content"]["body"] == f"You said: {text}"]
            verdict.exactly_one(len(replies), f"reply to {text} {event_id} in {talk.room}")
            verdict.counted["replies"] += len(replies)
        for asked in talk.asked:
            self.question(asked, said[asked.root], order, edits)

    def question(self, asked: Asked, said: list[Event], order: dict[str, int], edits: Counter[str]) -> None:
        """Compares one question, its answers and what they led to. `said`: what the agent said in its thread."""
        verdict = self.verdict
        questions = [event for event in said if "dev.mindbridge.question" in event["content"]]
        verdict.exactly_one(len(questions), f"question for {asked.root}")
        verdict.counted["questions"] += len(questions)
        chosen = [event for event in said if event["content"].get("body", "").startswith("You chose ")]
        tries = sorted(asked.answers, key=lambda each: order[each.event_id])
        messages = [each for each in tries if each.typed and self.bridge.verdict(each.event_id) is None]
        for each in messages:
            # Typed when the question was answered and the agent had said something since: an ordinary message.
            turns = [turn for turn in self.turns if turn["event_id"] == each.event_id]
            verdict.exactly_one(len({turn["turn_id"] for turn in turns}), f"what became of the number {each.event_id}")
        allowed = may_be_taken([each for each in tries if each not in messages])
        verdict.at_most_one(len(chosen), f"selection of {asked.root}")
        verdict.counted["selections"] += len(chosen)
        if allowed and not any(each.withdrawn for each in allowed) and not chosen:
            verdict.lost.append(f"lost: the answer {allowed[-1].event_id} of {asked.root}")
        for event in chosen[:1]:
            taken = [each for each in tries if self.bridge.verdict(each.event_id) == "selected"]
            verdict.exactly_one(len(taken), f"answer that was taken of {asked.root}")
            if taken and taken[0] not in allowed:
                verdict.lost.append(f"lost: {allowed[-1:]} of {asked.root}, {taken[0]} was taken instead")
            if taken and not event["content"]["body"].startswith(f"You chose {taken[0].number} of"):
                verdict.lost.append(f"lost: {taken[0]} of {asked.root}, the agent said {event['content']['body']}")
            for question in questions[:1]:
                verdict.exactly_one(edits[question["event_id"]], f"closing edit of {question['event_id']}")
        names = [
            turn["turn_id"] for turn in self.turns if turn["kind"] == "selection" and turn["thread_id"] == asked.root
        ]
        verdict.at_most_one(len(set(names)), f"selection turn of {asked.root}")


def may_be_taken(tries: list[Answer]) -> list[Answer]:
    """The first try that stands, and those before it that were withdrawn: in time or not."""
    allowed: list[Answer] = []
    for each in tries:
        allowed.append(each)
        if not each.withdrawn:
            break
    return allowed
