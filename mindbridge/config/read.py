"""Reads a configuration file's text into a tree: YAML, with the environment's variables put in."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from mindbridge.config.faults import ConfigError, Fault, KeyPath, Place, dotted
from mindbridge.config.tree import Section, Tree
from mindbridge.config.variables import expand
from mindbridge.config.yaml_nodes import DEEPEST, LIST, MAPPING, PLAIN, SCALARS, compose, scalar
from mindbridge.config.yaml_words import YamlFault, place_of

_MOST_VALUES = 20_000


def read_tree(file: Path, text: str, environ: Mapping[str, str]) -> Tree:
    """Reads `text`, the content of `file`, with the variables of `environ` put in.

    Raises:
        ConfigError: It is no YAML, or holds no mapping; anything less is among the tree's `faults`.
    """
    tree = Tree(file)
    try:
        _Planter(tree, environ).plant(compose(text))
    except YamlFault as fault:
        raise ConfigError(file, [Fault(*fault.place, dotted(()), fault.message)]) from None
    return tree


class _Planter:
    """Puts the values of nodes into a tree, each time that an alias names them."""

    def __init__(self, tree: Tree, environ: Mapping[str, str]) -> None:
        self._tree = tree
        self._environ = environ
        self._count = 0
        self._open: list[yaml.Node] = []

    def plant(self, root: yaml.Node | None) -> None:
        needed = "must hold homeserver, access and agents"
        if root is None or (isinstance(root, yaml.ScalarNode) and root.value == ""):
            raise YamlFault(Place(1, 1), f"is empty, {needed}")
        if not isinstance(root, yaml.MappingNode):
            raise YamlFault(_place(root), f'is no mapping, {needed}, each as "key: value"')
        value = self._value(root, ())
        if isinstance(value, dict):
            self._tree.data = value

    def _value(self, node: yaml.Node, path: KeyPath) -> object:
        self._tree.values[path] = _place(node)
        self._count += 1
        if self._count > _MOST_VALUES:
            raise YamlFault(_place(node), f"makes more than {_MOST_VALUES} values, use fewer aliases (*name)")
        if any(node is holder for holder in self._open):
            raise YamlFault(_place(node), "holds itself by an alias (*name), write out what is meant")
        if len(self._open) > DEEPEST:
            raise YamlFault(_place(node), f"is nested deeper than {DEEPEST} levels, use fewer aliases (*name)")
        self._open.append(node)
        value = self._read(node, path)
        self._open.pop()
        return value

    def _read(self, node: yaml.Node, path: KeyPath) -> object:
        if isinstance(node, yaml.ScalarNode) and node.tag in SCALARS:
            return self._scalar(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == LIST:
            return tuple(self._value(item, (*path, index)) for index, item in enumerate(node.value))
        if isinstance(node, yaml.MappingNode) and node.tag == MAPPING:
            return self._mapping(node, path)
        self._tree.blame(path, "begins with ! and so is a tag, put text that begins with ! in quotes")
        self._tree.unknown.add(path)
        return None

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> object:
        value = scalar(node)
        if not isinstance(value, str):
            return value
        expanded = expand(value, self._environ)
        problems = list(expanded.problems)
        if not _is_writable(expanded.text):
            problems.append(
                "holds what can't be sent (NUL, half a surrogate pair, bytes that are no UTF-8), take it out"
            )
        for problem in problems:
            self._tree.blame(path, problem)
            self._tree.unknown.add(path)
        if expanded.foreign:
            self._tree.foreign.add(path)
        return expanded.text

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> Section:
        section: Section = {}
        for key_node, value_node in node.value:
            place = _place(key_node)
            if not _is_key(key_node):
                self._tree.blame(path, "has a key that is no word, write it as text", place)
                continue
            key: str = key_node.value
            here = (*path, key)
            if key == "<<" and key_node.tag == PLAIN:
                self._tree.blame(path, "has a merge key (<<), which is not read, write the keys out", place)
            elif key in section:
                message = f"is there twice, first in line {self._tree.keys[here].line}, take one of them out"
                self._tree.blame(here, message, place)
            else:
                self._tree.keys[here] = place
                section[key] = self._value(value_node, here)
        return section


def _place(node: yaml.Node) -> Place:
    return place_of(node.start_mark)


def _is_key(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag in SCALARS and node.value != "" and _is_writable(node.value)


def _is_writable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)
