"""An agent's device is signed by its account's identity, and `mindbridge doctor` tells where it is not."""

import json
import shutil
from pathlib import Path

from tests.live.bridge import MINDBRIDGE, Bridge
from tests.live.conftest import NewBridge
from tests.live.js_person import JsPerson


async def encryption(bridge: Bridge) -> tuple[str, str]:
    """What doctor finds: how good it is, and what to do."""
    _, told, _ = await bridge.command("doctor", "--json")
    [check] = [each for each in json.loads(told)["checks"] if each["name"] == "encryption"]
    return check["status"], check["advice"] or ""


async def test_device_is_signed_at_the_first_start_and_doctor_says_so(new_bridge: NewBridge) -> None:
    bridge = await new_bridge()
    assert await encryption(bridge) == ("ok", "")
    await bridge.start()
    assert await encryption(bridge) == ("ok", "")
    assert any("device_signed" in line for line in bridge.log)
    assert await bridge.stop() == 0
    await bridge.start()
    assert len([line for line in bridge.log if "device_signed" in line]) == 1


async def test_identity_of_somebody_else_is_left_alone_until_it_is_to_be_replaced(
    new_bridge: NewBridge, js_person_program: Path
) -> None:
    bridge = await new_bridge()
    password = bridge.config["agents"]["assistant"]["account"]["password"]
    async with JsPerson(js_person_program, bridge.user_id(), password, bridge.config["homeserver"]) as owner:
        await owner.start()
        await owner.sign_device()
        await bridge.start()
        assert any("not_signed" in line and "other_identity" in line for line in bridge.log)
        await owner.wait_for_device(bridge.user_id(), bridge.device_id(), signed=False)
        status, advice = await encryption(bridge)
        assert (status, "--reset-identity" in advice) == ("warn", True)
        assert await bridge.stop() == 0

        await bridge.start((*MINDBRIDGE, "run", "--reset-identity", "assistant"))
        assert await encryption(bridge) == ("ok", "")


async def test_lost_keys_are_a_failure_that_doctor_tells(new_bridge: NewBridge) -> None:
    """A4"""
    bridge = await new_bridge()
    await bridge.start()
    assert await bridge.stop() == 0
    shutil.rmtree(bridge.folder / "journal" / "keys")
    status, advice = await encryption(bridge)
    assert (status, "new device" in advice) == ("fail", True)


async def test_identity_is_replaced_of_a_configured_agent_only(new_bridge: NewBridge) -> None:
    bridge = await new_bridge()
    status, _, errors = await bridge.command("run", "--reset-identity", "nobody")
    assert (status, "has no agent of this name" in errors) == (2, True)
