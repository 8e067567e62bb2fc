"""Whether an agent's device can be read, and is trusted, in encrypted rooms."""

from dataclasses import replace
from pathlib import Path

from mindbridge.doctor.findings import Finding, Status, told
from mindbridge.ids import AgentName
from mindbridge.matrix.errors import MatrixError
from mindbridge.matrix.identity import Outcome
from mindbridge.matrix.key_store import KeyFolder
from mindbridge.matrix.session import Session
from mindbridge.matrix.signing_keys import SigningKeyFolder, SigningKeysDamaged


async def encryption_check(agent: AgentName, session: Session, home: Path) -> Finding:
    """Looks at the keys in the data home, and at what the homeserver knows of them; changes neither.

    Args:
        agent: whose account it is.
        session: a session of the account, open and without encryption: a bridge may run with the same keys.
        home: the data home.
    """
    try:
        signing = await session.cross_signing(SigningKeyFolder(home)).check()
    except SigningKeysDamaged as error:
        return replace(told("encryption", agent, error), status=Status.WARN)
    except MatrixError as error:
        return Finding("encryption", agent, Status.WARN, str(error), "try again, and look into the homeserver's log")
    path = KeyFolder(home).path(session.user_id, session.standing.device_id)
    is_new = signing.outcome is Outcome.DEVICE_UNKNOWN
    if not path.exists():
        if is_new:
            return Finding("encryption", agent, Status.OK, "the first start makes the device's keys")
        found = f"the keys of the device are not in {path.parent}, but the homeserver knows it by them"
        advice = "put back a copy of them; else the next start makes a new device, for which it needs the password"
        return Finding("encryption", agent, Status.FAIL, found, advice)
    if signing.is_signed:
        return Finding("encryption", agent, Status.OK, "the device has its keys, and its owner's signature")
    found = "the device is not signed by its owner: some clients warn of what it says, and some hide it"
    return Finding("encryption", agent, Status.WARN, found, signing.what_to_do)
