"""Reads a configuration file, with the variables of the environment put in (contract, section 2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from mindbridge.config.accounts import settle_accounts
from mindbridge.config.faults import ConfigError, Fault, dotted
from mindbridge.config.paths import settle_paths
from mindbridge.config.read import read_tree
from mindbridge.config.schema import Config, Document
from mindbridge.config.sentences import blame_all
from mindbridge.config.tree import Tree

_LARGEST_FILE = 262_144
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A good configuration, and the tree that knows where each of its values stands."""

    config: Config
    tree: Tree


def load_config(path: Path, environ: Mapping[str, str]) -> Config:
    """Reads the file at `path`, the files with secrets that it names, and `environ`; nothing else.

    Raises:
        ConfigError: The file can't be read or is wrong; it tells everything that is.
    """
    return load(path, environ).config


def load(path: Path, environ: Mapping[str, str]) -> Loaded:
    """As `load_config`, for those who have more to say about places in the file."""
    tree = read_tree(path, _text(path), environ)
    folder = path.absolute().parent
    settle_paths(tree, folder, environ)
    settle_accounts(tree)
    document = _document(tree)
    if tree.faults or document is None:
        raise ConfigError(path, tree.faults)
    return Loaded(Config(folder=folder, **dict(document)), tree)


def _document(tree: Tree) -> Document | None:
    try:
        return Document.model_validate(tree.data)
    except ValidationError as error:
        blame_all(tree, error)
        return None


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except FileNotFoundError:
        raise _unreadable(path, "is not there, name the configuration with -c FILE") from None
    except IsADirectoryError:
        raise _unreadable(path, "is a folder, must be a YAML file") from None
    except OSError as error:
        raise _unreadable(path, f"can't be read ({error.strerror}), let this user read it") from None
    if len(content) > _LARGEST_FILE:
        raise _unreadable(path, f"has more than {_LARGEST_FILE} bytes, must be a configuration of mindbridge")
    if content.startswith(_BYTE_ORDER_MARKS):
        raise _unreadable(path, "begins with a byte order mark, save it as UTF-8 without one (BOM)")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        *lines, last = content[: error.start].decode().split("\n")
        message = f"holds the byte 0x{content[error.start]:02X}, which is no UTF-8, save it as UTF-8"
        raise ConfigError(path, [Fault(len(lines) + 1, len(last) + 1, dotted(()), message)]) from None


def _unreadable(path: Path, message: str) -> ConfigError:
    return ConfigError(path, [Fault(1, 1, dotted(()), message)])
