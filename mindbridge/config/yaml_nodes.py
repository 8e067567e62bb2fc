"""YAML text to plain values, each with its place in the file.

Scalars are read as people mean them, not as YAML 1.1 has it: only true and false are booleans, so `on`, `yes` and `no`
are text; numbers are decimal, so `022` is 22, and `0x1F`, `1_000` and `1:30` are text; dates are text; nothing, `~` and
`null` are None. Quoted scalars are always text.
"""

import re
from typing import Any, TypeAlias

import yaml

from mindbridge.config.yaml_words import YamlFault, in_words, of_bad_character, place_of

DEEPEST = 30

PLAIN = "plain"
TEXT = "tag:yaml.org,2002:str"
LIST = "tag:yaml.org,2002:seq"
MAPPING = "tag:yaml.org,2002:map"
SCALARS = frozenset({PLAIN, TEXT})

Scalar: TypeAlias = "str | int | float | bool | None"

_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_INTEGER = re.compile(r"[-+]?[0-9]{1,1000}")
_DECIMAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


class _Loader(yaml.SafeLoader):
    """Composes nodes, with tag `plain` for what has neither quotes nor tag; builds no Python object."""

    depth = 0

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:  # noqa: ARG002 - PyYAML's signature
        if kind is yaml.ScalarNode:
            return PLAIN if implicit[0] else TEXT
        return LIST if kind is yaml.SequenceNode else MAPPING

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.depth > DEEPEST and parent is not None:
            raise YamlFault(place_of(parent.start_mark), f"is nested deeper than {DEEPEST} levels, write it flatter")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def compose(text: str) -> yaml.Node | None:
    """The one document's nodes; None for a text without any.

    Raises:
        YamlFault: The text is no YAML, or several documents.
    """
    try:
        loader = _Loader(text)
    except yaml.reader.ReaderError as error:
        raise of_bad_character(text, error.position) from None
    try:
        return loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise in_words(error, text) from None
    except (ValueError, OverflowError):  # PyYAML's own, for an escape such as "\UFFFFFFFF"
        raise YamlFault(place_of(loader.get_mark()), "holds a number or an escape that YAML can't read") from None


def scalar(node: yaml.ScalarNode) -> Scalar:
    """The value of a scalar whose tag is `PLAIN` or `TEXT`."""
    text: str = node.value
    if node.tag == TEXT:
        return text
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    return text
