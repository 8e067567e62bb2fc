"""The journal agrees with a small model under random histories.

Two agents, people who answer in every way, accounts that are shown the room in any pieces, crashes before and after any
commit, homeserver's words that are lost, refusals, limits, and a backup that is put back. The homeserver of these tests
forgets every transaction id at once: whoever sends twice has posted twice.
"""

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mindbridge import steps
from mindbridge.bridge.admission import decide, interest_of
from mindbridge.bridge.closing import edit_without_buttons
from mindbridge.bridge.replies import outcome_of
from mindbridge.events import Edit, Message, Reaction, Redaction, RoomEvent, SyncBatch
from mindbridge.ids import AgentName, EventId, QuestionId, UserId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.backup import back_up
from mindbridge.journal.database import FILE_NAME, Database
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Acknowledged, Decisions, Delivery, Membership
from mindbridge.journal.turns import TurnStore
from mindbridge.matrix.content import QUESTION_KEY, with_target
from mindbridge.steps import Side, Step
from tests.journal.model import KEYS, Model
from tests.journal.sample_rows import CRITIC, HELPER, NOW, ROOM, rows
from tests.unit.sample_questions import batch, click, edit, redaction
from tests.unit.sample_room import ALICE, BOB, CRITIC_USER, HELPER_USER, STRANGER, message, room, roster

Value = TypeVar("Value")
Fate = Literal["taken", "lost", "unreached", "refused", "limited", "unclear", "before", "after"]

ACCOUNTS: dict[AgentName, UserId] = {HELPER: HELPER_USER, CRITIC: CRITIC_USER}
ROSTER = roster(helper={"respond": "always"}, critic={"respond": "always"})
BLOCK = """```interactive
{"question": "%s", "options": [{"emoji": "🚀", "label": "a"}, {"emoji": "🔍", "label": "b"}]}
```"""
WORDS = ("ask", "same", "hello")
"""What people say: both agents ask then, each time something else, or ask the same again, or reply."""

NEXT_STATES = {
    "pending": {"attempted", "sent", "refused", "dropped", "uncertain"},
    "attempted": {"pending", "sent", "refused", "dropped", "uncertain"},
    "uncertain": {"sent"},
    "dropped": {"pending"},  # its question was uncertain, and is in the room after all
    "posting": {"open", "superseded", "failed", "closed", "answered"},
    "open": {"answered", "superseded", "closed"},
}
"""What deliveries and questions can become within one rule; all other states are final."""

accounts = st.sampled_from(sorted(ACCOUNTS))
people = st.sampled_from([ALICE, ALICE, BOB, STRANGER])
deaths: st.SearchStrategy[Side | None] = st.sampled_from([None, None, None, None, "before", "after"])
fates: st.SearchStrategy[Fate] = st.sampled_from(
    [
        "taken",
        "taken",
        "taken",
        "taken",
        "lost",
        "lost",
        "unreached",
        "refused",
        "limited",
        "unclear",
        "before",
        "after",
    ]
)


class PoweredOffError(Exception):
    """The process ends."""


@contextmanager
def powered_off(side: Side | None) -> Iterator[None]:
    """The next commit is the last: the process ends right before or right after it."""

    def watch(_step: Step, reached: Side) -> None:
        if reached == side:
            raise PoweredOffError

    usual, steps.watcher = steps.watcher, watch
    try:
        yield
    finally:
        steps.watcher = usual


class JournalMachine(RuleBasedStateMachine):
    """People, two accounts and a homeserver around a real journal."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="mindbridge-machine-"))
        self.home, self.copy = self.folder / "home", self.folder / "copy"
        # The homeserver: what the room holds, and which deliveries are among it.
        self.timeline: list[RoomEvent] = []
        self.sent: dict[str, EventId] = {}
        # The process: positions, homeserver's words that are not noted yet, responses that were admitted.
        self.shown = dict.fromkeys(ACCOUNTS, 0)
        self.words: dict[AgentName, Acknowledged] = {}
        self.responses: list[tuple[AgentName, SyncBatch]] = []
        self.now = NOW
        self.states: dict[str, str] = {}
        self.is_restored = False
        self.model = Model({user: agent for agent, user in ACCOUNTS.items()}, (ALICE, BOB))
        self.database = self.run(Database.open(self.home))
        for agent, user in ACCOUNTS.items():
            store = AdmissionStore(self.database)
            self.run(store.record_account(agent, user, NOW))
            self.run(store.record_membership(agent, Membership(room_id=ROOM, state="joined", invited_ts=None)))

    def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        self.now += 1
        return self.runner.run(work)

    def ends_in(self, work: Coroutine[Any, Any, object], side: Side | None) -> bool:
        """Does one commit; whether the process ended right before or after it."""
        try:
            with powered_off(side):
                self.run(work)
        except PoweredOffError:
            self.crash()
            return True
        return False

    def teardown(self) -> None:
        try:
            self.finish()
        finally:
            self.run(self.database.close())
            self.runner.close()
            shutil.rmtree(self.folder)

    @initialize()
    def start(self) -> None:
        self.ask(ALICE, "ask", ["taken"] * 3)
        self.ask(ALICE, "same", ["taken"] * 6)

    @rule(who=st.sampled_from([ALICE, BOB]), text=st.sampled_from(["ask", "same"]), each=st.lists(fates, max_size=8))
    def ask(self, who: UserId, text: str, each: list[Fate]) -> None:
        """A person makes the agents ask, and so much of what that leads to is sent at once."""
        self.timeline.append(message(text, self.new_id(), who, thread_id=(*self.threads(), None)[0]))
        for agent in ACCOUNTS:
            self.sync(agent, len(self.timeline), None)
            self.work(agent, None)
        for number, fate in enumerate(each):
            self.send((HELPER, CRITIC)[number % 2], fate)

    # The room

    def new_id(self) -> EventId:
        return EventId(f"${len(self.timeline)}")

    def threads(self) -> list[EventId]:
        """The newest threads; each begins with a person's message."""
        said = [each for each in self.timeline if isinstance(each, Message) and each.text in WORDS]
        return [each.event_id for each in said if each.thread_id is None][-2:]

    def questions(self) -> list[EventId]:
        """The questions that are in the room."""
        return [each.event_id for each in self.timeline if isinstance(each, Message) and each.question_id]

    @rule(data=st.data(), who=st.sampled_from([ALICE, BOB]), text=st.sampled_from(["ask", *WORDS]))
    def say(self, data: st.DataObject, who: UserId, text: str) -> None:
        thread = data.draw(st.sampled_from([None, *self.threads()]))
        self.timeline.append(message(text, self.new_id(), who, thread_id=thread))

    @precondition(lambda self: self.questions())
    @rule(data=st.data(), who=people, key=st.sampled_from([*KEYS, "🙈", ""]))
    def react(self, data: st.DataObject, who: UserId, key: str) -> None:
        self.timeline.append(click(key, data.draw(st.sampled_from(self.questions())), self.new_id(), who))

    @precondition(lambda self: self.timeline)
    @rule(data=st.data(), who=people)
    def react_to_anything(self, data: st.DataObject, who: UserId) -> None:
        target = data.draw(st.sampled_from([each.event_id for each in self.timeline]))
        self.timeline.append(click("🚀", target, self.new_id(), who))

    @precondition(lambda self: self.threads())
    @rule(data=st.data(), who=people, text=st.sampled_from("123"), way=st.sampled_from(["in", "in", "out", "reply"]))
    def type_number(self, data: st.DataObject, who: UserId, text: str, way: str) -> None:
        """In a thread, outside of threads, or in reply to a question."""
        thread = None if way == "out" else data.draw(st.sampled_from(self.threads()))
        reply = data.draw(st.sampled_from(self.questions())) if way == "reply" and self.questions() else None
        self.timeline.append(message(text, self.new_id(), who, thread_id=thread, reply_to=reply))

    @rule(who=people, text=st.sampled_from(["1", "hello"]))
    def edit(self, who: UserId, text: str) -> None:
        self.timeline.append(edit(text, self.new_id(), who))

    @rule(data=st.data())
    def redact(self, data: st.DataObject) -> None:
        """A person takes back an answer, or a question whose event the journal knows."""
        known = {event for (event,) in rows(self.database, "SELECT event_id FROM questions")}
        targets = [each for each in self.questions() if each in known]
        for each in self.timeline:
            is_click = isinstance(each, Reaction) and each.sender not in ACCOUNTS.values()
            if is_click or (isinstance(each, Message) and each.text in "123"):
                targets.append(each.event_id)
        if targets:
            self.timeline.append(redaction(data.draw(st.sampled_from(targets)), self.new_id()))

    # The accounts

    def response(self, agent: AgentName, until: int) -> SyncBatch:
        """What the account is shown when the room is `until` events long."""
        gone = {event.target for event in self.timeline[:until] if isinstance(event, Redaction)}
        # Some responses show what was withdrawn as it was: the redaction came while they were made.
        strips = until % 3 > 0
        events = []
        for event in self.timeline[self.shown[agent] : until]:
            own = event.transaction_id if event.sender == ACCOUNTS[agent] else None
            bare = RoomEvent(
                event_id=event.event_id, sender=event.sender, server_ts=event.server_ts, transaction_id=own
            )
            events.append(bare if strips and event.event_id in gone else replace(event, transaction_id=own))
        return batch(joined=(room(*events),), next_batch=f"s{until}")

    def admission(self, agent: AgentName, shown: SyncBatch) -> Coroutine[Any, Any, Decisions]:
        store, interest = AdmissionStore(self.database), interest_of(shown)
        return store.admit(
            agent, interest, shown.next_batch, lambda known: decide(agent, shown, ROSTER, known), self.now
        )

    @rule(agent=accounts, most=st.sampled_from([1, 3, 6, 50, 50]), death=deaths)
    def sync(self, agent: AgentName, most: int, death: Side | None) -> None:
        until = min(self.shown[agent] + most, len(self.timeline))
        if until == self.shown[agent]:
            return
        shown = self.response(agent, until)
        if self.ends_in(self.admission(agent, shown), death) and death == "before":
            return
        self.shown[agent] = until
        self.responses.append((agent, shown))
        self.model.judge(shown.joined[0].events)

    @precondition(lambda self: self.responses)
    @rule(data=st.data())
    def sync_again(self, data: st.DataObject) -> None:
        """An older response comes once more; what follows it is then cut in another way."""
        agent, shown = data.draw(st.sampled_from(self.responses[-6:]))
        assert self.run(self.admission(agent, shown)) == Decisions()
        self.shown[agent] = int(shown.next_batch[1:])

    # The agents

    @rule(agent=accounts, death=deaths)
    def some_work(self, agent: AgentName, death: Side | None) -> None:
        self.work(agent, death)

    def work(self, agent: AgentName, death: Side | None) -> bool:
        """Runs the agent's next turn; another reply to it, as after a crash, changes nothing."""
        turns = TurnStore(self.database)
        runnable = self.run(turns.runnable(agent))
        for turn, _ in runnable[:1]:
            self.run(turns.context(turn))
            asks = {"ask": f"{turn.source_event_id}?", "same": "Again?"}.get(turn.text)
            outcome = outcome_of(turn, "Fine." if asks is None else BLOCK % asks, 5)
            if self.ends_in(turns.end(turn, ACCOUNTS[agent], outcome, self.now), death) and death == "before":
                break
            other = outcome_of(turn, "Something else.", 5)
            assert not self.run(TurnStore(self.database).end(turn, ACCOUNTS[agent], other, self.now))
            if outcome.question is not None and not self.is_restored:
                self.model.asks(turn, outcome.question)
        return bool(runnable)

    @rule(agent=accounts, each=st.lists(fates, min_size=3, max_size=9))
    def some_sending(self, agent: AgentName, each: list[Fate]) -> None:
        for fate in each:
            self.send(agent, fate)

    def send(self, agent: AgentName, fate: Fate) -> bool:  # noqa: C901 - one branch a fate
        """Sends what is due next, as `Deliverer` does; the fate says what comes of it."""
        outbox, word = Outbox(self.database), self.words.pop(agent, None)
        if fate in {"before", "after"}:
            return self.ends_in(outbox.claim_next(agent, self.now, word), "before" if fate == "before" else "after")
        due = self.run(outbox.claim_next(agent, self.now, word))
        if due is None:
            return False
        asked = QuestionId(due.question_id) if due.kind == "message" and due.question_id else None
        event_id = self.sent.get(due.delivery_id)
        # What was tried before is looked for first; what is limited is then that, and it may be too far back.
        if fate == "limited":
            self.run(self.hold(outbox, due))
        elif due.tried_before and fate == "unclear":
            self.run(outbox.give_up(due.delivery_id, "too far back", self.now))
        elif due.tried_before and event_id is not None:
            self.run(outbox.found(due.delivery_id, event_id, NOW, self.now))
            if asked and not self.is_restored:
                self.model.found(asked)
        elif fate == "refused":
            self.run(outbox.refuse(due.delivery_id, "403 M_FORBIDDEN", self.now, edit_without_buttons))
            if asked and not self.is_restored:
                self.model.refused(asked)
        elif fate in {"taken", "lost"}:
            taken = self.take_in(due)
            if fate == "taken":
                self.words[agent] = Acknowledged(delivery_id=due.delivery_id, event_id=taken)
        return True

    def hold(self, outbox: Outbox, due: Delivery) -> Coroutine[Any, Any, None]:
        return outbox.hold(due.agent, None if due.tried_before else due.delivery_id, 0, "{}", self.now)

    def take_in(self, due: Delivery) -> EventId:
        """The homeserver takes an event."""
        assert due.delivery_id not in self.sent, f"{due.kind} posted twice"
        content, event_id = with_target(due.content, due.target_event), self.new_id()
        relation = content.get("m.relates_to", {})
        base: dict[str, Any] = {
            "event_id": event_id,
            "sender": ACCOUNTS[due.agent],
            "server_ts": NOW,
            "transaction_id": due.delivery_id,
        }
        event: RoomEvent
        match due.kind:
            case "button":
                event = Reaction(**base, sender_name="", target=relation["event_id"], key=relation["key"])
            case "redaction":
                event = Redaction(**base, target=EventId(str(due.target_event)))
            case "edit":
                event = Edit(**base, original=relation["event_id"], text=content["body"])
            case _:
                asked = content.get(QUESTION_KEY, {}).get("question_id")
                said = {"text": content["body"], "is_notice": due.kind == "notice", "question_id": asked}
                event = Message(**base, **said, sender_name="", thread_id=relation["event_id"])
                if asked in self.model.questions:
                    self.model.questions[asked].event = event_id
        self.timeline.append(event)
        self.sent[due.delivery_id] = event_id
        return event_id

    # The process

    @rule()
    def crash(self) -> None:
        """The process ends, and starts again with what is in the file."""
        self.run(self.database.close())
        self.words.clear()
        self.database = self.run(Database.open(self.home))
        for agent, user in ACCOUNTS.items():
            position = self.run(AdmissionStore(self.database).record_account(agent, user, self.now))
            self.shown[agent] = int(position[1:]) if position else 0

    @precondition(lambda self: self.sent and not self.copy.exists() and not self.is_restored)
    @rule()
    def back_up(self) -> None:
        back_up(self.home, self.copy, datetime(2026, 11, 30, 12, tzinfo=UTC))
        self.copied_at = len(self.timeline)

    @precondition(lambda self: self.copy.exists() and len(self.timeline) > self.copied_at + 10)
    @rule()
    def put_back(self) -> None:
        """The older copy takes the file's place; from then on only that is checked which needs no model."""
        self.is_restored = True
        self.run(self.database.close())
        shutil.rmtree(self.home)
        self.home.mkdir()
        self.copy.rename(self.home / FILE_NAME)
        self.database = self.run(Database.open(self.home))
        self.crash()
        self.states.clear()
        self.responses.clear()
        for agent in ACCOUNTS:
            # A start asks for all that came since the position, before anything is sent.
            self.sync(agent, len(self.timeline), None)

    # What always holds

    @invariant()
    def states_move_along_their_tables(self) -> None:
        found = "SELECT delivery_id, state FROM deliveries UNION ALL SELECT question_id, state FROM questions"
        states = dict(rows(self.database, found))
        assert self.states.keys() <= states.keys()
        moves = {(before, states[name]) for name, before in self.states.items() if states[name] != before}
        assert {move for move in moves if move[1] not in NEXT_STATES.get(move[0], ())} == set()
        self.states = states

    @invariant()
    def journal_says_what_the_model_says(self) -> None:
        if self.is_restored:
            return
        states = rows(self.database, "SELECT question_id, state FROM questions")
        assert dict(states) == {name: each.state for name, each in self.model.questions.items()}
        selected = rows(self.database, "SELECT question_id, source_event_id FROM selections")
        assert dict(selected) == self.model.selected
        verdicts = rows(self.database, "SELECT event_id, verdict FROM verdicts WHERE verdict <> 'edited'")
        assert dict(verdicts) == self.model.verdicts

    @invariant()
    def each_answer_has_one_turn(self) -> None:
        turns = rows(self.database, "SELECT agent, source_event_id, kind FROM turns")
        assert len({turn[:2] for turn in turns}) == len(turns)
        answers = "SELECT agent, source_event_id FROM selections JOIN questions USING (question_id)"
        assert Counter(rows(self.database, answers)) == Counter(turn[:2] for turn in turns if turn[2] == "selection")
        judged = {event for (event,) in rows(self.database, "SELECT event_id FROM verdicts")}
        assert not judged & {event for _, event, kind in turns if kind == "message"}

    def finish(self) -> None:
        """All is shown, run and sent; then nothing is left over, and each thing is there once."""
        busy = True
        while busy:
            for agent in ACCOUNTS:
                self.sync(agent, len(self.timeline), None)
            done = [self.work(agent, None) for agent in ACCOUNTS] + [self.send(agent, "taken") for agent in ACCOUNTS]
            busy = any(done) or min(self.shown.values()) < len(self.timeline)
        self.states_move_along_their_tables()
        self.journal_says_what_the_model_says()
        self.each_answer_has_one_turn()
        assert rows(self.database, "SELECT * FROM turns WHERE state <> 'done'") == []
        said = [each for each in self.timeline if isinstance(each, Message) and each.text in WORDS]
        turns = rows(self.database, "SELECT agent, source_event_id FROM turns WHERE text IN ('ask', 'same', 'hello')")
        assert Counter(turns) == Counter((agent, each.event_id) for agent in ACCOUNTS for each in said)
        deliveries = rows(self.database, "SELECT delivery_id, state, event_id FROM deliveries")
        assert {state for _, state, _ in deliveries} <= {"sent", "refused", "dropped", "uncertain"}
        if not self.is_restored:
            assert {delivery: event for delivery, state, event in deliveries if state == "sent"} == self.sent
        buttons = [each for each in self.timeline if isinstance(each, Reaction) and each.transaction_id]
        assert len({(each.target, each.key) for each in buttons}) == len(buttons)


TestJournal = JournalMachine.TestCase
TestJournal.settings = settings(max_examples=settings().max_examples // 4, stateful_step_count=30, deadline=None)
