"""Dependencies, constraints and Dockerfile agree with the code and with each other."""

import ast
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([0-9][A-Za-z0-9.+!]*)")


def canonical(requirement: str) -> str:
    """The name of a package, from a requirement or another spelling of it."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def declared() -> set[str]:
    return {canonical(each) for each in PROJECT["project"]["dependencies"]}


def imported_modules() -> set[str]:
    """The top-level names of all modules that mindbridge imports, wherever in a file."""
    found: set[str] = set()
    for path in (ROOT / "mindbridge").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"), path)):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - {"mindbridge"}


def pins(file: str) -> dict[str, str]:
    """The versions of a constraints file by package."""
    lines = (ROOT / file).read_text("utf-8").splitlines()
    matches = [PIN.fullmatch(line) for line in lines if not line.startswith("#")]
    return {canonical(match[1]): match[2] for match in matches if match}


def with_what_they_need(packages: set[str]) -> set[str]:
    """These packages and all that are installed since they need them."""
    found: set[str] = set()
    left = set(packages)
    while left:
        found.add(name := left.pop())
        try:
            needed = requires(name) or []
        except PackageNotFoundError:  # it is for another platform or Python
            found.discard(name)
            continue
        left |= {canonical(each) for each in needed if "extra ==" not in each} - found
    return found


def test_what_is_imported_is_what_is_declared() -> None:
    of_module = packages_distributions()
    outside = imported_modules() - sys.stdlib_module_names
    assert {canonical(name) for module in outside for name in of_module.get(module, [module])} == declared()


def test_no_tool_and_no_homeserver_is_needed_at_run_time() -> None:
    tools = {canonical(each) for each in PROJECT["dependency-groups"]["dev"]}
    assert with_what_they_need(declared()).isdisjoint(tools | {"matrix-synapse"})


def test_everything_that_setup_installs_is_pinned() -> None:
    asked_for = [*PROJECT["dependency-groups"]["dev"], *PROJECT["build-system"]["requires"], "pip"]
    pinned = pins("constraints.txt")
    assert {canonical(each) for each in asked_for} | declared() <= pinned.keys()
    assert with_what_they_need(declared() | {canonical(each) for each in asked_for}) <= pinned.keys()
    assert "matrix-synapse" in pins("constraints-synapse.txt")


@pytest.mark.parametrize("file", ["constraints.txt", "constraints-synapse.txt"])
def test_constraints_hold_exact_versions_and_nothing_else(file: str) -> None:
    # So no host name either: which registry the packages come from is for the machine to say.
    lines = [line for line in (ROOT / file).read_text("utf-8").splitlines() if not line.startswith("#")]
    assert [line for line in lines if not PIN.fullmatch(line)] == []
    assert len(pins(file)) == len(lines)


class Instruction(NamedTuple):
    name: str
    text: str


def dockerfile() -> list[list[Instruction]]:
    """The Dockerfile's stages, each from its FROM on, continued lines joined."""
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    stages: list[list[Instruction]] = []
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if not line.strip():
            continue
        name, _, rest = line.partition(" ")
        if name == "FROM":
            stages.append([])
        stages[-1].append(Instruction(name, rest.strip()))
    return stages


def said(stage: list[Instruction], name: str) -> list[str]:
    return [text for each, text in stage if each == name]


def test_image_runs_as_a_user_with_a_number_that_is_not_root() -> None:
    *_, final = dockerfile()
    [user] = said(final, "USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert "RUN" not in [name for name, _ in final[final.index(Instruction("USER", user)) :]]


def test_image_has_the_journal_as_its_only_volume() -> None:
    assert [text for stage in dockerfile() for text in said(stage, "VOLUME")] == ["/journal"]


def test_image_is_stopped_by_the_signal_that_the_bridge_heeds_and_runs_it_without_a_shell() -> None:
    *_, final = dockerfile()
    assert said(final, "STOPSIGNAL") == ["SIGTERM"]
    assert said(final, "ENTRYPOINT") == ['["mindbridge"]']
    assert said(final, "CMD") == ['["run", "-c", "/config/config.yaml"]']


def test_final_stage_installs_wheels_of_the_stage_before_and_gets_nothing_else() -> None:
    *_, build, final = dockerfile()
    assert said(final, "COPY") + said(final, "ADD") == []
    [name] = re.findall(r" AS (\w+)$", build[0].text)
    installs = [text for text in said(final, "RUN") if "pip" in text]
    assert len(installs) == 1
    assert f"from={name}" in installs[0]
    assert re.search(r"pip install (--[\w-]+ )*--no-index (--[\w-]+ )*/wheels/\*\.whl$", installs[0])


def test_build_stage_gets_all_that_the_wheel_is_made_of_and_dockerignore_lets_it_through() -> None:
    *_, build, _ = dockerfile()
    copied = {source for text in said(build, "COPY") for source in text.split()[:-1]}
    assert copied >= {
        "pyproject.toml",
        PROJECT["project"]["readme"],
        *PROJECT["project"]["license-files"],
        *PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"],
    }
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert "*" in ignored
    assert {f"!{source}" for source in copied} <= set(ignored)


def test_build_stage_installs_nothing_that_is_not_pinned() -> None:
    *_, build, _ = dockerfile()
    for command in said(build, "RUN"):
        assert "--constraint constraints.txt" in command
        assert "pip wheel" not in command or "--build-constraint constraints.txt" in command
