"""What pydantic finds wrong, as sentences for people: what is wrong, what would be right."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mindbridge.config.faults import KeyPath, quoted
from mindbridge.config.schema import SECTIONS, section_at
from mindbridge.config.tree import Tree

_LATER_KEYS = frozenset({"stream", "teach_blocks", "mode", "model", "base_url", "url", "headers"})
_LATER_BACKENDS = frozenset({"http", "model"})
_NEVER_SHOWN = frozenset({"homeserver", "command"})  # where a password or token may stand inside of a text
_NEEDS_MAPPING = frozenset({"model_type", "model_attributes_type", "dict_type"})  # the text may be "password:secret"
_BACKEND_TYPES = "command, python or demo"


def blame_all(tree: Tree, error: ValidationError) -> None:
    """Adds what `error` tells to the faults of the tree that was validated."""
    for detail in error.errors(include_url=False, include_input=False):
        kind = detail["type"]
        path = _path(detail["loc"])
        is_name = kind == "value_error" and path[-1] == "[key]"
        if is_name:
            path = path[:-1]
        if kind.startswith("union_tag"):
            path = (*path, "type")
        if tree.is_unknown(path) or (kind == "too_short" and tree.value(path)):  # of its items none is good
            continue
        if kind == "extra_forbidden":
            tree.blame(path, _unknown_key(tree, path), tree.keys[path])
        elif is_name:
            tree.blame(path, f"can't be the name of an agent, {_reason(detail)}", tree.keys[path])
        else:
            tree.blame(path, _wrong_value(tree, path, kind, detail))


def _path(loc: KeyPath) -> KeyPath:
    """The path in the file: pydantic's own has the tags of unions in between."""
    parts = list(loc)
    match parts:
        case ["agents", _, "backend", _, *_]:
            del parts[3]
        case ["agents", _, "questions", "answerers", _, *_]:
            del parts[4]
    return tuple(parts)


def _reason(detail: Mapping[str, Any]) -> str:
    return str(detail["ctx"]["error"])


def _wrong_value(tree: Tree, path: KeyPath, kind: str, detail: Mapping[str, Any]) -> str:
    value = tree.value(path)
    wrong = "is text" if isinstance(value, str) and kind in _NEEDS_MAPPING else _what_it_is(tree, path, value)
    if kind == "none_required":
        return f"{wrong}, which is not in this version, must be null or left out"
    if kind == "value_error":
        return f"{wrong}, {_reason(detail)}"
    if kind.startswith("union_tag"):
        if isinstance(value, str) and value in _LATER_BACKENDS:
            return f"is {value}, which is not in this version, must be {_BACKEND_TYPES}"
        return f"{wrong}, must be {_BACKEND_TYPES}"
    if isinstance(path[-1], int):
        return f"{wrong}, must be text, in quotes" + "; what begins with # needs them" * (value is None)
    section = section_at(path[:-1], tree.section(path[:-1]).get("type"))
    if section is None:  # the section of an agent
        return f"{wrong}, must be a mapping with account and backend"
    return f"{wrong}, must be {section.model_fields[path[-1]].description}"


def _what_it_is(tree: Tree, path: KeyPath, value: object) -> str:
    if path not in tree.values:
        return "is missing"
    hidden = tree.is_secret(path) or not _NEVER_SHOWN.isdisjoint(path)
    match value:
        case None | "":
            return "is empty"
        case bool():
            return f"is {str(value).lower()}"
        case int() | float():
            return "is a number" if hidden else f"is the number {value}"
        case str() | Path():
            return "is text" if hidden else f"is the text {quoted(str(value))}"
        case dict():
            return "is a mapping" if value else "is an empty mapping"
        case _:
            return "is a list" if value else "is an empty list"


def _unknown_key(tree: Tree, path: KeyPath) -> str:
    key = str(path[-1])
    if key in _LATER_KEYS:
        return "is not in this version, take it out"
    if ":" in key:
        return "is no key here, a blank must follow the colon"
    for place, section in SECTIONS.items():
        if key in section.model_fields:
            return f"is no key here, it belongs to {place}"
    section_here = section_at(path[:-1], tree.section(path[:-1]).get("type"))
    keys = list(section_here.model_fields) if section_here else []
    for guess in difflib.get_close_matches(key.lower(), keys, n=1, cutoff=0.7):
        return f"is no key here, did you mean {guess}?"
    return f"is no key here, must be one of {', '.join(keys)}"
