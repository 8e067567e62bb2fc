"""Times that were noted before the bridge's clock was set back by a day: nothing waits for them."""

import asyncio
import json
from dataclasses import asdict
from typing import Any

import pytest

from mindbridge.agents.turn import Turn
from mindbridge.bridge.budget import Budget
from mindbridge.bridge.delivery import Deliverer
from mindbridge.bridge.turns import TurnRunner
from mindbridge.ids import TurnId
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.database import Database
from mindbridge.journal.outbox import Outbox
from mindbridge.journal.turns import TurnStore
from mindbridge.matrix.session import LONGEST_HOLD_MS
from tests.journal.sample_rows import HELPER, HELPER_USER, NOW, queue, turn, value
from tests.live.waiting import wait_until
from tests.unit.sample_room import roster

DAY = 24 * 60 * 60 * 1000
LEARNED = json.dumps(asdict(Budget.unknown()))


class Account:
    """The helper's account, of which nothing is asked here."""

    agent = HELPER
    user_id = HELPER_USER


class Echo:
    """An agent that gives back what it is told."""

    async def reply(self, turn: Turn) -> str:
        return turn.text


async def test_account_waits_no_longer_than_a_server_can_ask_for(
    database: Database, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def note_and_stop(_self: Deliverer, seconds: float) -> bool:
        waits.append(seconds)
        return True

    monkeypatch.setattr(Deliverer, "_stops_within", note_and_stop)
    await AdmissionStore(database).record_account(HELPER, HELPER_USER, NOW)
    session: Any = Account()
    for until in (NOW + 5_000, NOW + DAY):
        await outbox.hold(HELPER, None, until, LEARNED, NOW)
        await Deliverer(session, outbox, lambda: NOW).run()

    assert waits == [5, LONGEST_HOLD_MS / 1000]


async def test_turn_that_failed_runs_at_once(database: Database) -> None:
    store = TurnStore(database)
    await queue(database, turn())
    await store.delay(TurnId("turn_one"), "broke", NOW + DAY)
    session: Any = Account()
    agents = roster()
    runner = TurnRunner(agents.config.agents[HELPER], Echo(), session, store, agents, lambda: NOW, lambda: None)
    running = asyncio.create_task(runner.run())
    try:
        await wait_until(lambda: value(database, "SELECT state FROM turns") == "done")
    finally:
        runner.stop()
        await running
    assert value(database, "SELECT reply FROM turns") == "message one"
