"""PyYAML's complaints as sentences for people. None of them repeats text of the file: it may be a secret."""

import re

import yaml

from mindbridge.config.faults import Place

_OPEN = re.compile(r"(quoted scalar|flow (sequence|mapping)): .*(end of stream|<stream end>)")

_SENTENCES = (
    (r"found character '[@`%]'", "begins with @, % or `, put the value in quotes"),
    (r"found character '\\t'", "has a tab, use spaces"),
    (r"alias", "begins with * but names no anchor before it, put text that begins with * in quotes"),
    (r"anchor|occurrence", "begins with & and so names an anchor, put text in quotes, name each anchor once"),
    (r"parsing a tag|tag handle", "begins with ! and so is a tag, put text that begins with ! in quotes"),
    (r"^\$.*but got '\{'", "has a ${NAME} inside of braces or brackets, put it in quotes"),
    (r"flow (sequence|mapping)", "does not fit into the [ ] or { } that is open, close it; text with # needs quotes"),
    (r"another document", "begins a second document, keep one and take the --- away"),
    (r"mapping values", 'has a colon where no key can be, mend the indentation or put text that holds ": " in quotes'),
    (r"could not find expected ':'", 'is neither key nor value, write it as "key: value" or mend the indentation'),
    (r"<block end>", "does not fit to the lines before, mend the indentation or the quotes"),
    (r"<stream end>", "ends in the middle, close what is open; text that begins with # needs quotes"),
)


class YamlFault(Exception):
    """What keeps a text from being read as YAML, and where."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.place = place
        self.message = message


def place_of(mark: yaml.Mark | None) -> Place:
    """The place of a PyYAML mark, which counts from 0."""
    return Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)


def of_bad_character(text: str, index: int) -> YamlFault:
    """The fault of a character that YAML does not allow, such as NUL."""
    *lines, last = text[:index].split("\n")
    message = f"holds the character U+{ord(text[index]):04X}, which YAML does not allow, take it out"
    return YamlFault(Place(len(lines) + 1, len(last) + 1), message)


def in_words(error: yaml.MarkedYAMLError, text: str) -> YamlFault:
    """The fault that `error` tells of, at PyYAML's position; what is opened and never closed, where it is opened."""
    complaint = f"{error.context}: {error.problem}"
    if _OPEN.search(complaint):
        return YamlFault(
            place_of(error.context_mark),
            "is opened here and never closed, close it; text that begins with # needs quotes",
        )
    mark = error.problem_mark or error.context_mark
    before = text[mark.index - 1 : mark.index] if mark else ""
    for pattern, sentence in _SENTENCES:
        if re.search(pattern, f"{before} {complaint}"):
            return YamlFault(place_of(mark), sentence)
    return YamlFault(place_of(mark), f"is no YAML ({error.problem}), mend it or put the value in quotes")
