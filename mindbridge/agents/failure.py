"""What can go wrong with an agent's backend, each told in one line."""

_LINE_LIMIT = 500


class AgentFailed(Exception):
    """A turn gave no reply.

    `str()` is one line for the log and the journal: what failed and why. The turn is tried again (contract, section 5).
    """


class BackendUnusable(Exception):
    """A backend can't work at all, found out at start. `str()` is one line: what is wrong and what to do."""


def one_line(text: str) -> str:
    """Gives foreign text as one printable line of at most 500 characters; `…` stands where it was cut."""
    line = "".join(char if char.isprintable() else "�" for char in " ".join(text.split()))
    return line if len(line) <= _LINE_LIMIT else line[: _LINE_LIMIT - 1] + "…"
