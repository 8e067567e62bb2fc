"""The devices in the data home."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindbridge.ids import AgentName, UserId
from mindbridge.matrix.devices import Device, DeviceFolder
from mindbridge.matrix.errors import MatrixError

AGENT = AgentName("assistant")
USER = UserId("@assistant:example.org")
DEVICE = Device(user_id=USER, device_id="ABC", access_token="syt_secret")


@pytest.fixture
def _lax_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_agent_without_a_device_has_none(tmp_path: Path) -> None:
    assert DeviceFolder(tmp_path).load(AGENT, USER) is None


def test_saved_device_is_loaded_again(tmp_path: Path) -> None:
    DeviceFolder(tmp_path).save(AGENT, DEVICE)
    assert DeviceFolder(tmp_path).load(AGENT, USER) == DEVICE


def test_new_device_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    folder = DeviceFolder(tmp_path)
    folder.save(AGENT, DEVICE)
    newer = Device(user_id=USER, device_id="DEF", access_token="syt_other")
    folder.save(AGENT, newer)
    assert folder.load(AGENT, USER) == newer
    assert [path.name for path in (tmp_path / "devices").iterdir()] == ["assistant.json"]


def test_device_of_another_account_does_not_count(tmp_path: Path) -> None:
    folder = DeviceFolder(tmp_path)
    folder.save(AGENT, DEVICE)
    assert folder.load(AGENT, UserId("@other:example.org")) is None


def test_agents_have_devices_of_their_own(tmp_path: Path) -> None:
    folder = DeviceFolder(tmp_path)
    folder.save(AGENT, DEVICE)
    assert folder.load(AgentName("assistant.two"), USER) is None


@pytest.mark.usefixtures("_lax_umask")
def test_folder_and_files_are_their_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    DeviceFolder(tmp_path).save(AGENT, DEVICE)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes == {"devices": 0o700, "assistant.json": 0o600}


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b'{"user_id": "@assistant:example.org"}', b"\xff\xfe"], ids=repr)
def test_damaged_file_is_refused_and_its_name_told(tmp_path: Path, damaged: bytes) -> None:
    DeviceFolder(tmp_path).save(AGENT, DEVICE)
    (tmp_path / "devices" / "assistant.json").write_bytes(damaged)
    with pytest.raises(MatrixError, match=r"devices/assistant\.json"):
        DeviceFolder(tmp_path).load(AGENT, USER)


def test_damaged_files_token_is_in_no_part_of_the_error(tmp_path: Path) -> None:
    DeviceFolder(tmp_path).save(AGENT, DEVICE)
    damaged = b'{"user_id": "@assistant:example.org", "device_id": 7, "access_token": "syt_secret"}'
    (tmp_path / "devices" / "assistant.json").write_bytes(damaged)
    with pytest.raises(MatrixError) as caught:
        DeviceFolder(tmp_path).load(AGENT, USER)
    assert "syt_secret" not in f"{caught.value!r} {caught.value} {caught.value.__cause__!r} {caught.value.__cause__}"


def test_what_lies_where_the_file_should_be_is_refused_and_its_name_told(tmp_path: Path) -> None:
    (tmp_path / "devices" / "assistant.json").mkdir(parents=True)
    with pytest.raises(MatrixError, match=r"devices/assistant\.json"):
        DeviceFolder(tmp_path).load(AGENT, USER)
    with pytest.raises(MatrixError, match=r"devices/assistant\.json"):
        DeviceFolder(tmp_path).save(AGENT, DEVICE)


def test_token_is_in_no_form_of_a_device_that_could_be_logged() -> None:
    assert "syt_secret" not in f"{DEVICE} {DEVICE!r} {[DEVICE]} {DEVICE!s:>80}"
    assert "@assistant:example.org" in repr(DEVICE)
