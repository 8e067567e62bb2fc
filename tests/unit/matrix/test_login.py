"""Logging in where the new device can't be kept at once."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from mindbridge.config.schema import Account
from mindbridge.ids import AgentName, UserId
from mindbridge.matrix.devices import DeviceFolder
from mindbridge.matrix.errors import Unreachable
from mindbridge.matrix.session import Session
from tests.live.proxy import Proxy, answer

USER = UserId("@assistant:example.org")
ANSWER = {"user_id": USER, "device_id": "DEVICE", "access_token": "token"}


async def test_device_that_could_not_be_written_is_no_reason_to_log_in_as_one_more(tmp_path: Path) -> None:
    devices, agent = DeviceFolder(tmp_path), AgentName("assistant")
    in_the_way = tmp_path / "devices" / "assistant.new"
    in_the_way.mkdir(parents=True)
    async with Proxy("http://127.0.0.1:9") as server:
        server.rule(answer(200, ANSWER), path="/login$")
        session = Session(server.url, agent, Account(user_id=USER, password=SecretStr("a password")), devices)
        try:
            for _ in range(3):
                with pytest.raises(Unreachable):
                    await session.open()
            in_the_way.rmdir()
            await session.open()
        finally:
            await session.close()
        assert len(server.seen("POST", "/login$")) == 1

    kept = devices.load(agent, USER)
    assert kept is not None
    assert (kept.device_id, kept.access_token) == ("DEVICE", "token")
