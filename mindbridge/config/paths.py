"""Names of files and folders in the configuration, made absolute (contract, section 2)."""

from collections.abc import Mapping
from pathlib import Path

from mindbridge.config.faults import KeyPath
from mindbridge.config.schema import Document
from mindbridge.config.tree import SECRETS, Tree


def settle_paths(tree: Tree, folder: Path, environ: Mapping[str, str]) -> None:
    """Puts absolute paths in place of names: relative to `folder`, with `~` for `HOME` of `environ`.

    Names that can't be read so are added to the faults; values of other types are left for the schema to refuse.
    """
    tree.data.setdefault("journal", str(Document.model_fields["journal"].default))
    accounts = [("agents", name, "account") for name in tree.section(("agents",))]
    files: list[KeyPath] = [(*account, f"{secret}_file") for account in accounts for secret in sorted(SECRETS)]
    for path in [("journal",), *files]:
        name = tree.value(path)
        if isinstance(name, str) and not tree.is_unknown(path):
            tree.section(path[:-1])[str(path[-1])] = _absolute(tree, path, name, folder, environ)


def _absolute(tree: Tree, path: KeyPath, name: str, folder: Path, environ: Mapping[str, str]) -> Path | None:
    problem = None
    place = folder / name
    if not name.strip():
        problem = "is empty, must be the name of a file or folder"
    elif name.startswith("~"):
        user, _, rest = name.partition("/")
        home = environ.get("HOME", "")
        place = Path(home, rest)
        if user != "~":
            problem = "begins with a ~ and a user's name, must begin with ~/ or be written out"
        elif not Path(home).is_absolute():
            problem = "begins with ~ and the environment variable HOME names no folder, write the path out"
    if problem is None:
        return place
    tree.blame(path, problem)
    tree.unknown.add(path)
    return None
