"""The journal agrees with a small model under random histories: two agents, crashes, lost answers, duplicates.

The model knows the room's timeline and which account was shown how much of it. From that alone it says which answer
each question has. The homeserver of the test forgets every transaction id at once.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mindbridge.bridge.admission import decide, interest_of
from mindbridge.bridge.closing import edit_without_buttons
from mindbridge.bridge.replies import outcome_of
from mindbridge.events import Edit, Message, Reaction, Redaction, RoomEvent, SyncBatch
from mindbridge.ids import AgentName, EventId, UserId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Decisions, Delivery, Membership, Snapshot
from mindbridge.journal.turns import TurnStore
from mindbridge.matrix.content import with_target
from tests.journal.sample_rows import CRITIC, HELPER, NOW, ROOM, rows
from tests.unit.sample_questions import batch
from tests.unit.sample_room import ALICE, BOB, CRITIC_USER, HELPER_USER, STRANGER, message, room, roster

ACCOUNTS: dict[AgentName, UserId] = {HELPER: HELPER_USER, CRITIC: CRITIC_USER}
ROSTER = roster(helper={"respond": "always"})
KEYS = ["🚀", "🔍"]
BLOCK = """```interactive
{"question": "Which for %s?", "options": [{"emoji": "🚀", "label": "a"}, {"emoji": "🔍", "label": "b"}]}
```"""
Value = TypeVar("Value")
agents = st.sampled_from(sorted(ACCOUNTS))
people = st.sampled_from([ALICE, BOB])


class PoweredOffError(Exception):
    """The process ends in the middle of a transaction."""


class JournalMachine(RuleBasedStateMachine):
    """People, two accounts and a homeserver around a real journal."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self.home = Path(tempfile.mkdtemp(prefix="mindbridge-machine-"))
        self.timeline: list[RoomEvent] = []
        self.shown = dict.fromkeys(ACCOUNTS, 0)
        self.last: dict[AgentName, SyncBatch] = {}
        self.sent: dict[str, EventId] = {}
        # The model: per question's event the number of options; the answers that count; what each event could answer.
        self.questions: dict[EventId, EventId | None] = {}
        self.taken: dict[EventId, EventId] = {}
        self.tries: dict[EventId, EventId] = {}
        self.judged = 0

    def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        return self.runner.run(work)

    @initialize()
    def start(self) -> None:
        self.database = self.run(Database.open(self.home))
        for agent, user in ACCOUNTS.items():
            store = AdmissionStore(self.database)
            self.run(store.record_account(agent, user, NOW))
            self.run(store.record_membership(agent, Membership(room_id=ROOM, state="joined", invited_ts=None)))
        self.ask(sends=2)
        self.ask(sends=5)

    @rule(sends=st.integers(0, 5))
    def ask(self, sends: int) -> None:
        """Somebody makes the agent ask, and so much of what that leads to is sent."""
        self.say(ALICE, asks=True)
        self.sync(HELPER, len(self.timeline), power_off=False)
        self.work(HELPER)
        for _ in range(sends):
            self.send(HELPER, "taken")

    def teardown(self) -> None:
        try:
            if hasattr(self, "database"):
                self.finish()
        finally:
            if hasattr(self, "database"):
                self.run(self.database.close())
            self.runner.close()
            shutil.rmtree(self.home)

    # The room

    def new_id(self) -> EventId:
        return EventId(f"${len(self.timeline)}")

    def post(self, event: RoomEvent) -> EventId:
        self.timeline.append(event)
        return event.event_id

    @rule(who=people, asks=st.booleans())
    def say(self, who: UserId, asks: bool) -> None:  # noqa: FBT001 - hypothesis gives it by name
        self.post(message("ask" if asks else "hello", self.new_id(), who))

    @precondition(lambda self: self.questions)
    @rule(data=st.data(), who=st.sampled_from([ALICE, BOB, STRANGER]), number=st.integers(1, 3))
    def click(self, data: st.DataObject, who: UserId, number: int) -> None:
        question = data.draw(st.sampled_from(sorted(self.questions)))
        key = KEYS[number - 1] if number <= len(KEYS) else "🙈"
        event = self.new_id()
        self.post(Reaction(event_id=event, sender=who, server_ts=NOW, sender_name="Somebody", target=question, key=key))
        if who != STRANGER and number <= len(KEYS):
            self.tries[event] = question

    @precondition(lambda self: self.questions)
    @rule(data=st.data(), who=people, number=st.integers(1, 3))
    def type_number(self, data: st.DataObject, who: UserId, number: int) -> None:
        question = data.draw(st.sampled_from(sorted(self.questions)))
        event = self.post(message(str(number), self.new_id(), who, thread_id=self.questions[question]))
        if number <= len(KEYS):
            self.tries[event] = question

    @precondition(lambda self: self.tries)
    @rule(data=st.data())
    def take_back(self, data: st.DataObject) -> None:
        target = data.draw(st.sampled_from(sorted(self.tries)))
        self.post(Redaction(event_id=self.new_id(), sender=ALICE, server_ts=NOW, target=target))

    # The accounts

    def response(self, agent: AgentName, until: int) -> SyncBatch:
        """What the account is shown next; what was redacted meanwhile has lost its content."""
        gone = {event.target for event in self.timeline[:until] if isinstance(event, Redaction)}
        redacted_before = {event.target for event in self.timeline[: self.shown[agent]] if isinstance(event, Redaction)}
        events = []
        for event in self.timeline[self.shown[agent] : until]:
            shown = event if event.sender == ACCOUNTS[agent] else replace(event, transaction_id=None)
            if event.event_id in gone - redacted_before and event.event_id in self.tries:
                shown = RoomEvent(event_id=event.event_id, sender=event.sender, server_ts=event.server_ts)
            events.append(shown)
        return batch(joined=(room(*events),), next_batch=f"s{until}")

    def admit(self, agent: AgentName, shown: SyncBatch, *, power_off: bool = False) -> Decisions:
        def decided(known: Snapshot) -> Decisions:
            decisions = decide(agent, shown, ROSTER, known)
            if power_off:
                raise PoweredOffError
            return decisions

        store = AdmissionStore(self.database)
        return self.run(store.admit(agent, interest_of(shown), shown.next_batch, decided, NOW))

    @precondition(lambda self: min(self.shown.values()) < len(self.timeline))
    @rule(agent=agents, most=st.integers(1, 6), power_off=st.booleans())
    def sync(self, agent: AgentName, most: int, power_off: bool) -> None:  # noqa: FBT001 - likewise
        until = min(self.shown[agent] + most, len(self.timeline))
        if until == self.shown[agent]:
            return
        shown = self.response(agent, until)
        if power_off:
            try:
                self.admit(agent, shown, power_off=True)
            except PoweredOffError:
                self.crash()
        self.admit(agent, shown)
        self.last[agent] = shown
        self.shown[agent] = until
        self.judge(until)

    def judge(self, until: int) -> None:
        """The model: whatever one account was shown first is decided then, in the room's order."""
        withdrawn = {event.target for event in self.timeline[:until] if isinstance(event, Redaction)}
        for event in self.timeline[self.judged : until]:
            question = self.tries.get(event.event_id)
            if question is not None and event.event_id not in withdrawn:
                self.taken.setdefault(question, event.event_id)
        self.judged = max(self.judged, until)

    @precondition(lambda self: self.last)
    @rule(data=st.data())
    def sync_again(self, data: st.DataObject) -> None:
        agent = data.draw(st.sampled_from(sorted(self.last)))
        assert self.admit(agent, self.last[agent]) == Decisions()

    @rule(agent=agents)
    def some_work(self, agent: AgentName) -> None:
        self.work(agent)

    @rule(agent=agents, fates=st.lists(st.sampled_from(["taken", "lost", "lost", "limited", "refused"]), max_size=4))
    def some_sending(self, agent: AgentName, fates: list[str]) -> None:
        for fate in fates:
            self.send(agent, fate)

    def work(self, agent: AgentName) -> bool:
        """Runs the agent's next turn, as a crash makes it run: twice, with two replies."""
        turns = TurnStore(self.database)
        runnable = self.run(turns.runnable(agent))
        for turn, _ in runnable[:1]:
            reply = BLOCK % turn.source_event_id if turn.text == "ask" else "Fine."
            assert self.run(turns.end(turn, ACCOUNTS[agent], outcome_of(turn, reply, 5), NOW))
            assert not self.run(turns.end(turn, ACCOUNTS[agent], outcome_of(turn, "Something else.", 5), NOW))
        return bool(runnable)

    def send(self, agent: AgentName, fate: str) -> bool:
        """Sends what is due next, and the homeserver's word is as the fate says."""
        outbox = Outbox(self.database)
        due = self.run(outbox.claim_next(agent, NOW))
        if due is None:
            return False
        if due.tried_before and (found := self.sent.get(due.delivery_id)) is not None:
            self.run(outbox.found(due.delivery_id, found, NOW, NOW))
        elif fate == "limited":
            self.run(outbox.hold(agent, due.delivery_id, 0, "{}", NOW - 1))
        elif fate == "refused" and due.kind == "button":
            self.run(outbox.refuse(due.delivery_id, "403 M_FORBIDDEN", NOW, edit_without_buttons))
        else:
            event = self.take_in(due)
            if fate != "lost":
                self.run(outbox.acknowledge(due.delivery_id, event, NOW))
        return True

    def take_in(self, due: Delivery) -> EventId:
        """The homeserver takes an event; with no memory of transaction ids it would take it twice."""
        assert due.delivery_id not in self.sent
        content = with_target(due.content, due.target_event)
        relation = content.get("m.relates_to", {})
        event_id, sender = self.new_id(), ACCOUNTS[due.agent]
        base: dict[str, Any] = {
            "event_id": event_id,
            "sender": sender,
            "server_ts": NOW,
            "transaction_id": due.delivery_id,
        }
        match due.kind:
            case "button":
                target = EventId(relation["event_id"])
                self.post(Reaction(**base, sender_name="agent", target=target, key=relation["key"]))
            case "redaction":
                self.post(Redaction(**base, target=EventId(str(due.target_event))))
            case "edit":
                self.post(Edit(**base, original=EventId(relation["event_id"]), text=content["body"]))
            case _:
                asked = content.get("dev.mindbridge.question", {}).get("question_id")
                thread = EventId(relation["event_id"])
                notice = content["msgtype"] == "m.notice"
                self.post(
                    Message(
                        **base,
                        sender_name="agent",
                        text=content["body"],
                        thread_id=thread,
                        question_id=asked,
                        is_notice=notice,
                    )
                )
                if asked:
                    self.questions[event_id] = thread
        self.sent[due.delivery_id] = event_id
        return event_id

    @rule()
    def crash(self) -> None:
        """The process ends; all that it had was in the journal."""
        self.run(self.database.close())
        self.database = self.run(Database.open(self.home))

    # What always holds

    @invariant()
    def answers_are_the_models(self) -> None:
        if not hasattr(self, "database"):
            return
        query = "SELECT q.event_id, s.source_event_id FROM selections AS s JOIN questions AS q USING (question_id)"
        assert dict(rows(self.database, query)) == self.taken

    def finish(self) -> None:
        """Everything is shown, done and sent; then each thing is there once."""
        for _ in range(1000):
            for agent in ACCOUNTS:
                self.sync(agent, len(self.timeline), power_off=False)
            busy = [self.work(agent) for agent in ACCOUNTS] + [self.send(agent, "taken") for agent in ACCOUNTS]
            if not any(busy) and min(self.shown.values()) == len(self.timeline):
                break
        self.answers_are_the_models()
        states = rows(self.database, "SELECT DISTINCT state FROM deliveries")
        assert {state for (state,) in states} <= {"sent", "refused", "dropped"}
        assert rows(self.database, "SELECT * FROM turns WHERE state <> 'done'") == []
        chosen = rows(self.database, "SELECT source_event_id FROM turns WHERE kind = 'selection'")
        assert sorted(event for (event,) in chosen) == sorted(self.taken.values())
        asked = [event for event in self.timeline if isinstance(event, Message) and event.text == "ask"]
        assert len(self.questions) == len(asked)
        closed = [event for event in self.timeline if isinstance(event, Edit) and "✔" in event.text]
        assert sorted(event.original for event in closed) == sorted(self.taken)
        verdicts = rows(self.database, "SELECT COUNT(*), COUNT(DISTINCT event_id) FROM verdicts")
        assert verdicts[0][0] == verdicts[0][1]


TestJournal = JournalMachine.TestCase
TestJournal.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
