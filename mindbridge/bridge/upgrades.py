"""Upgraded rooms: the replacement is told of questions that were closed, once it says itself which room it replaces.

Anyone with power in a room can name any other room as its replacement (`m.room.tombstone`); only the replacement's
creator can say that it was made from that room (`predecessor` in `m.room.create`).
"""

import logging
from collections.abc import Callable

from mindbridge import ids
from mindbridge.bridge import wording
from mindbridge.ids import AgentName
from mindbridge.journal.admissions import AdmissionStore
from mindbridge.journal.records import NewDelivery, RecordedUpgrade
from mindbridge.matrix import content
from mindbridge.matrix.errors import MatrixError, Refused, TokenRejected
from mindbridge.matrix.session import Session

log = logging.getLogger(__name__)


class Upgrades:
    """Settles the upgrades of one account's rooms, as the journal holds them."""

    def __init__(
        self, session: Session, store: AdmissionStore, now: Callable[[], int], on_queued: Callable[[], None]
    ) -> None:
        self._session = session
        self._store = store
        self._now = now
        self._on_queued = on_queued

    async def settle(self) -> bool:
        """Settles what can be settled now; whether the server was there for all of it.

        One whose replacement is still to be joined stays: the sync response that shows the room joined settles it. So
        does one that may not be joined, while there is something to be told: an invitation may follow, as it does where
        a private room is upgraded.

        Raises:
            TokenRejected: the account was logged out.
        """
        was_there = True
        for upgrade in await self._store.upgrades(self._session.agent):
            try:
                await self._settle(upgrade)
            except TokenRejected:
                raise
            except MatrixError as error:
                log.warning("failed agent=%s what='check the upgrade' error=%s", self._session.agent, error)
                was_there = False
        return was_there

    async def _settle(self, upgrade: RecordedUpgrade) -> None:
        is_joined = upgrade.membership == "joined"
        if upgrade.membership == "accepted" or (upgrade.had_questions and not is_joined):
            return
        deliveries = []
        if is_joined:
            if not await self._is_true(upgrade):
                await self._disbelieve(upgrade)
            elif upgrade.had_questions:
                deliveries.append(_notice(self._session.agent, upgrade))
        await self._store.settle_upgrade(self._session.agent, upgrade, deliveries, self._now())
        if deliveries:
            self._on_queued()

    async def _is_true(self, upgrade: RecordedUpgrade) -> bool:
        try:
            return await self._session.past.predecessor(upgrade.replacement) == upgrade.room_id
        except Refused:
            # The account isn't in it any more, or it has no create event.
            return False

    async def _disbelieve(self, upgrade: RecordedUpgrade) -> None:
        if upgrade.joined_for_it:
            try:
                await self._session.leave(upgrade.replacement)
            except Refused:
                log.debug("left_already agent=%s room_id=%s", self._session.agent, upgrade.replacement)
        log.warning(
            "upgrade_not_true agent=%s room_id=%s replacement=%s left=%s; the replacement says otherwise",
            self._session.agent,
            upgrade.room_id,
            upgrade.replacement,
            upgrade.joined_for_it,
        )


def _notice(agent: AgentName, upgrade: RecordedUpgrade) -> NewDelivery:
    return NewDelivery(
        delivery_id=ids.delivery_id(ids.turn_id(agent, upgrade.event_id), "room upgraded"),
        agent=agent,
        room_id=upgrade.replacement,
        kind="notice",
        content=content.words(wording.room_upgraded()),
    )
