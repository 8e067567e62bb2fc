"""What is found of the account's own events in a history that holds odd ones."""

from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any

import pytest

from mindbridge.ids import DeliveryId, EventId, RoomId, UserId
from mindbridge.matrix.inbound import read_event
from mindbridge.matrix.past import Found, Past

OWN, ROOM, TIME = UserId("@assistant:example.org"), RoomId("!room:example.org"), 1_700_000_000_000
CONTENT = {"msgtype": "m.text", "body": "hello"}
SENT = {
    "event_id": "$sent",
    "sender": OWN,
    "origin_server_ts": TIME,
    "type": "m.room.message",
    "content": CONTENT,
    "unsigned": {"transaction_id": "delivery"},
}
LEFT_OUT = ("event_id", "sender", "origin_server_ts", "content")
ODD: list[Any] = [
    *({**SENT, "event_id": "$odd", "unsigned": {}, "content": content} for content in (None, 5, "x", [CONTENT])),
    *({key: value for key, value in SENT.items() if key not in {missing, "unsigned"}} for missing in LEFT_OUT),
    *({**SENT, "unsigned": {}, name: 5} for name in ("event_id", "sender", "content")),
    {**SENT, "event_id": "$odd", "unsigned": {}, "content": {"body": 5}},
    {},
]


class Client:
    """A client whose server has one page of history."""

    def __init__(self, sources: list[Any]) -> None:
        self._sources = sources

    async def room_messages(self, *_: object) -> Any:
        return SimpleNamespace(chunk=[SimpleNamespace(source=each) for each in self._sources], end=None)


async def ask(_what: str, request: Awaitable[Any]) -> Any:
    return await request


def past_of(sources: list[Any]) -> Past:
    client: Any = Client(sources)
    return Past(
        client, OWN, ask, lambda _, source: read_event(source, OWN, lambda user: user), lambda _, source: source
    )


@pytest.mark.parametrize("odd", ODD, ids=repr)
async def test_odd_event_of_the_accounts_own_hides_no_other(odd: Any) -> None:
    anonymous = {**SENT, "unsigned": {}}
    without_id = await past_of([odd, anonymous]).sent(ROOM, CONTENT, DeliveryId("another"), None)
    with_id = await past_of([odd, SENT]).sent(ROOM, CONTENT, DeliveryId("delivery"), None)

    assert without_id == with_id == [Found(EventId("$sent"), TIME)]
