"""How large an encrypted event can be."""

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nio.crypto.sessions import OutboundGroupSession

from mindbridge.ids import UserId
from mindbridge.matrix.ciphertext import encrypted_size
from mindbridge.matrix.key_store import KeyFolder
from mindbridge.matrix.machine import Machine

BOT, ROOM = "@assistant:example.org", "!" + "r" * 254
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=2_000)
RELATIONS = st.fixed_dictionaries({"rel_type": TEXTS, "event_id": TEXTS})
CONTENTS = st.fixed_dictionaries({"msgtype": st.just("m.text"), "body": TEXTS}, optional={"m.relates_to": RELATIONS})


def really(content: dict[str, Any], machine: Machine, index: int) -> int:
    session = OutboundGroupSession()
    session.shared = True
    for _ in range(index):
        session._session.encrypt(b"")  # noqa: SLF001
    machine.outbound_group_sessions[ROOM] = session
    sent: dict[str, Any] = machine.group_encrypt(ROOM, {"content": content, "type": "m.room.message"})
    if "m.relates_to" in content:
        sent["m.relates_to"] = content["m.relates_to"]
    return len(json.dumps(sent, separators=(",", ":"), ensure_ascii=False).encode())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=CONTENTS, index=st.integers(0, 99))
def test_encrypted_event_is_never_larger_than_was_said_nor_much_smaller(
    tmp_path: Path, content: dict[str, Any], index: int
) -> None:
    machine = Machine(BOT, "D" * 255, KeyFolder(tmp_path).open(UserId(BOT), "D" * 255))
    real = really(content, machine, index)
    machine.store.close()
    assert real <= encrypted_size(content) <= real + 50
