"""Whether the homeserver is there, is one, and has the same time."""

import time
from urllib.parse import urlsplit

from mindbridge.doctor.findings import Finding, Status
from mindbridge.matrix.errors import Unreachable
from mindbridge.matrix.probe import VERSIONS, Answering, NotMatrix, named_by_domain, probe

PROBE_SECONDS = 5.0
MOST_CLOCK_SECONDS = 60


async def homeserver_checks(url: str) -> tuple[Finding, ...]:
    """Asks the homeserver who it is, without an account.

    Args:
        url: its address as it is configured.

    Returns:
        The findings; the first one says whether it can be talked to at all.
    """
    try:
        answering = await probe(url, PROBE_SECONDS, time.time)
    except NotMatrix as error:
        named = await named_by_domain(url, PROBE_SECONDS)
        advice = (
            f"set `homeserver: {named}`, which {urlsplit(url).netloc} itself names as its homeserver"
            if named is not None and named != url
            else f"set `homeserver` to the address at which `curl ADDRESS{VERSIONS}` shows versions"
        )
        return (Finding("homeserver", None, Status.FAIL, str(error), advice),)
    except Unreachable as error:
        advice = f"look whether it runs, and whether `homeserver` and the network are right: `curl {url}{VERSIONS}`"
        return (Finding("homeserver", None, Status.FAIL, str(error), advice),)
    newest = answering.versions[-1]
    found = f"{url} speaks Matrix up to {newest}, answered in {answering.seconds * 1000:.0f} ms"
    return (Finding("homeserver", None, Status.OK, found), *clock_checks(answering))


def clock_checks(answering: Answering) -> tuple[Finding, ...]:
    """Compares the server's clock with ours, where it tells its own."""
    ahead = answering.ahead_seconds
    if ahead is None:
        return ()
    if abs(ahead) <= MOST_CLOCK_SECONDS:
        return (Finding("clock", None, Status.OK, "the same as the homeserver's, to a minute"),)
    found = f"{abs(ahead):.0f} s {'behind' if ahead > 0 else 'ahead of'} the homeserver's"
    advice = "set the clock of the machine that is wrong, such as with `timedatectl set-ntp true`"
    return (Finding("clock", None, Status.WARN, found, advice),)
