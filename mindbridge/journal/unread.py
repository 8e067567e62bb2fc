"""Encrypted events that wait for their keys."""

from mindbridge.ids import AgentName, RoomId, UserId
from mindbridge.journal.database import Database
from mindbridge.journal.outbox import record_deliveries
from mindbridge.journal.records import NewDelivery, UnreadNow
from mindbridge.steps import Step


class UnreadStore:
    """The journal as the reading of late events uses it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def unread(self, agent: AgentName) -> list[UnreadNow]:
        """What the agent's account could not read yet, in its order."""
        async with self._database.reading() as transaction:
            rows = await transaction.all("unread_of_agent", {"agent": agent})
        return [UnreadNow(**{**dict(row), "told": bool(row["told"])}) for row in rows]

    async def tell(self, room_id: RoomId, sender: UserId, notice: NewDelivery, now: int) -> None:
        """Records the notice that a sender's events can't be read; one in a room for each sender."""
        place = {"agent": notice.agent, "room_id": room_id, "sender": sender}
        async with self._database.transaction(Step.TELL_UNREAD) as transaction:
            await record_deliveries(transaction, [notice], now)
            await transaction.run("tell_unread", place)
