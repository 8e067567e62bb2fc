"""Whether what a good configuration names is there: programs, modules, the journal's folder. Runs none of it."""

import importlib
import os
import pkgutil
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mindbridge.config.schema import CommandBackend, Config, PythonBackend
from mindbridge.config.tree import Tree


def blame_what_is_absent(tree: Tree, config: Config, environ: Mapping[str, str]) -> None:
    """Adds to the faults of the configuration's tree what its agents would miss on this machine."""
    if problem := _folder_problem(config.journal):
        tree.blame(("journal",), problem)
    for name, agent in config.agents.items():
        backend = agent.backend
        if isinstance(backend, CommandBackend) and (
            problem := _program_problem(backend.command[0], config.folder, environ)
        ):
            tree.blame(("agents", name, "backend", "command", 0), problem)
        if isinstance(backend, PythonBackend) and (problem := _module_problem(backend.python, config.folder)):
            tree.blame(("agents", name, "backend", "python"), problem)


def _folder_problem(folder: Path) -> str | None:
    try:
        return "is a file, must be a folder" if folder.exists() and not folder.is_dir() else None
    except OSError as error:
        return f"can't be looked at ({error.strerror}), must be a folder that this user may enter"


def _program_problem(program: str, folder: Path, environ: Mapping[str, str]) -> str | None:
    if os.sep not in program:
        if shutil.which(program, path=environ.get("PATH", os.defpath)):
            return None
        return "names a program that is in no folder of PATH, must be installed, or named with its folder (./…)"
    place = folder / program
    try:
        is_file = place.is_file()
    except OSError as error:
        return f"names a program that can't be looked at ({error.strerror}), must be one that this user may run"
    if not is_file:
        return "names a program that is not there, must be one relative to the configuration's folder"
    if not os.access(place, os.X_OK):
        return "names a file that is no program, must be executable (chmod +x)"
    return None


def _module_problem(reference: str, folder: Path) -> str | None:
    """Looks where importing would, without importing the packages around the module, which runs them."""
    importlib.invalidate_caches()
    places: Sequence[str] = [str(folder), *sys.path]
    parts = reference.partition(":")[0].split(".")
    is_module = False
    for count in range(1, len(parts) + 1):
        is_module, places = _find(".".join(parts[:count]), places)
    return None if is_module else "names a module that is not there, must be one beside the configuration or installed"


def _find(name: str, places: Sequence[str]) -> tuple[bool, Sequence[str]]:
    """Whether there is a module or package of that name (a folder alone is none), and where what it contains is."""
    portions: list[str] = []
    for place in places:
        finder = pkgutil.get_importer(place)
        spec = finder.find_spec(name) if finder else None
        if spec and spec.loader:
            return True, spec.submodule_search_locations or ()
        portions += spec.submodule_search_locations or () if spec else ()
    if not portions and "." not in name:  # built in, or installed in a way of its own
        for spec in (finder.find_spec(name, None) for finder in sys.meta_path):
            if spec and spec.loader:
                return True, spec.submodule_search_locations or ()
    return False, portions
