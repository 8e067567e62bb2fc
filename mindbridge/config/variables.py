"""`${NAME}` in a configuration's text values (contract, section 2)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_DOLLAR = re.compile(r"(?P<literal>\$\$\{)|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}|(?P<broken>\$\{)")


@dataclass(frozen=True, slots=True)
class Expanded:
    """A text after substitution. `foreign`: some of it came from the environment. `problems`: each a whole message."""

    text: str
    foreign: bool
    problems: tuple[str, ...]


def expand(text: str, environ: Mapping[str, str]) -> Expanded:
    """Puts in the variables of `environ`; what they hold is taken as it is and never looked at again."""
    foreign = False
    problems: list[str] = []

    def put_in(match: re.Match[str]) -> str:
        nonlocal foreign
        if match["literal"]:
            return "${"
        if match["broken"]:
            problems.append("holds a ${ that begins no ${NAME}, a literal ${ is written $${")
            return ""
        foreign = True
        value = environ.get(match["name"])
        if value is None:
            problems.append(
                f"the environment variable {match['name']} is not set, set it or write $${{ for a literal ${{"
            )
        return value or ""

    expanded = _DOLLAR.sub(put_in, text)
    return Expanded(expanded, foreign, tuple(dict.fromkeys(problems)))
