"""The wheel as a container would run it: no source tree, an unprivileged user, nothing writable but the journal folder.

An image can't be built in every place where the tests run; this shows what its final stage depends on. As root, the
tests run the wheel as another user, to whom everything but the journal folder is owned by root and without write bits.
As any other user they run it as that user, and only the write bits stand in its way.
"""

import asyncio
import json
import os
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mindbridge.demo.homeserver import Homeserver
from tests.live.bridge import STARTED
from tests.live.conftest import ROOT, NewPerson
from tests.live.conversation import ask, is_edit_of, is_message

USER = 10001  # as in the Dockerfile
SHARED_FOLDERS = [Path("/tmp"), Path("/var/tmp"), Path("/dev/shm")]  # noqa: S108 -- where anyone can write

AGENT = '''
"""Asks, and says what was chosen."""

ASK = """
```interactive
{"question": "What approach would you prefer?",
 "options": [{"emoji": "🚀", "label": "Fast and automated", "value": "fast"},
             {"emoji": "🔍", "label": "Careful and manual", "value": "careful"}]}
```
"""

def reply(turn):
    return ASK if turn.selection is None else f"You chose {turn.selection.selected_option.value}."
'''


@dataclass(frozen=True)
class Machine:
    """A folder with all that the wheel needs to run, and who runs it."""

    folder: Path
    environment: Path
    as_user: dict[str, Any]
    variables: dict[str, str]

    @property
    def config(self) -> Path:
        return self.folder / "config"

    @property
    def journal(self) -> Path:
        return self.folder / "journal"

    def program(self, name: str) -> str:
        return str(self.environment / "bin" / name)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 -- programs of the environment that was made here
            command,
            cwd=self.config,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            **self.as_user,
        )

    def contents(self) -> dict[Path, float]:
        """All files and folders but the journal's, each with its time of change."""
        return {
            path: path.lstat().st_mtime for path in self.folder.rglob("*") if self.journal not in (path, *path.parents)
        }


def install(*command: object) -> None:
    done = subprocess.run(  # noqa: S603 -- Python itself
        [*map(str, command)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this source tree, made as `make wheel` makes it."""
    folder = tmp_path_factory.mktemp("wheel")
    made_with = ("--no-deps", "--build-constraint", "constraints.txt")
    install(sys.executable, "-m", "pip", "wheel", "-q", *made_with, "--wheel-dir", folder, ".")
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def machine(wheel: Path) -> Iterator[Machine]:
    """The wheel and what it declares, installed into an environment that holds nothing else, and made read-only."""
    as_user: dict[str, Any] = {} if os.geteuid() else {"user": USER, "group": USER, "extra_groups": []}
    # Not pytest's own folder, which lets no other user in.
    with tempfile.TemporaryDirectory(prefix="mindbridge-wheel-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        environment = folder / "environment"
        python, variables = python_for(as_user, folder / "python")
        install(python, "-m", "venv", "--without-pip", environment)
        pip = (sys.executable, "-m", "pip", "--python", environment / "bin" / "python")
        install(*pip, "install", "-q", "--constraint", "constraints.txt", wheel)
        machine = Machine(folder, environment, as_user, variables)
        machine.config.mkdir()
        machine.journal.mkdir(mode=0o700)
        if as_user:
            os.chown(machine.journal, USER, USER)
        yield machine
        set_write_bits(folder, writable=True)


def python_for(as_user: dict[str, Any], copy: Path) -> tuple[Path, dict[str, str]]:
    """A Python that the user can run, and the environment variables to run it with.

    That of these tests, or a copy of it where it lies in a folder that is closed to other users, such as root's home.
    """
    prefix = Path(sys.base_prefix)
    python = Path("bin") / f"python{sys.version_info.major}.{sys.version_info.minor}"
    try:
        subprocess.run([prefix / python, "-c", "import encodings, ssl"], check=True, capture_output=True, **as_user)  # noqa: S603 -- Python itself
    except (PermissionError, subprocess.CalledProcessError):
        unneeded = ("site-packages", "test", "config-*", "idlelib", "ensurepip", "lib2to3", "tkinter")
        shutil.copytree(prefix / "lib", copy / "lib", symlinks=True, ignore=shutil.ignore_patterns(*unneeded))
        (copy / "bin").mkdir()
        shutil.copy(prefix / python, copy / python)
        return copy / python, {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(copy / "lib")}
    return prefix / python, {"PATH": "/usr/bin:/bin"}


def set_write_bits(folder: Path, *, writable: bool) -> None:
    """Gives or takes everyone's leave to write in the folder, except for its journal."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink() and folder / "journal" not in (path, *path.parents):
            mode = stat.S_IMODE(path.stat().st_mode)
            path.chmod(mode | 0o200 if writable else mode & ~0o222)


def of_user(folders: list[Path]) -> set[Path]:
    return {path for folder in folders if folder.is_dir() for path in folder.iterdir() if path.lstat().st_uid == USER}


def test_wheel_holds_the_package_whole_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {name for name in names if name.startswith("mindbridge/")}
    source = {path for path in (ROOT / "mindbridge").rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert package == {str(path.relative_to(ROOT)) for path in source}
    assert {"mindbridge/py.typed", "mindbridge/journal/queries.sql"} <= package
    assert "mindbridge/journal/migrations/0001_initial.sql" in package

    [info] = {name.partition("/")[0] for name in names - package}
    assert info == f"{wheel.name.rsplit('-', 3)[0]}.dist-info"
    licence = zipfile.ZipFile(wheel).read(f"{info}/licenses/LICENSE")
    assert licence == (ROOT / "LICENSE").read_bytes()


async def test_installed_wheel_checks_and_converses_as_a_user_who_can_write_to_the_journal_folder_alone(
    machine: Machine, homeserver: Homeserver, new_person: NewPerson
) -> None:
    password = secrets.token_hex(8)
    account = await homeserver.register(f"assistant-{secrets.token_hex(4)}", password)
    machine.variables["ASSISTANT_PASSWORD"] = password
    config = {
        "homeserver": homeserver.url,
        "journal": "../journal",
        "access": {"users": ["*"]},
        "agents": {
            "assistant": {
                "account": {"user_id": account.user_id, "password": "${ASSISTANT_PASSWORD}"},
                "backend": {"type": "python", "python": "agent:reply"},
            }
        },
    }
    (machine.config / "config.yaml").write_text(json.dumps(config), "utf-8")
    (machine.config / "agent.py").write_text(AGENT, "utf-8")
    set_write_bits(machine.folder, writable=False)
    before, shared_before = machine.contents(), of_user(SHARED_FOLDERS)

    assert writable_for_the_user(machine) == {str(machine.journal)}
    imported = machine.run(machine.program("python"), "-c", "import mindbridge; print(mindbridge.__file__)")
    assert Path(imported.stdout.strip()).is_relative_to(machine.environment), imported.stderr

    checked = machine.run(machine.program("mindbridge"), "check", "-c", "config.yaml")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "good" in checked.stdout

    bridge = await asyncio.create_subprocess_exec(
        *(machine.program("mindbridge"), "run", "-c", "config.yaml"),
        cwd=machine.config,
        env=machine.variables,
        stderr=asyncio.subprocess.PIPE,
        **machine.as_user,
    )
    assert bridge.stderr is not None
    try:
        log = await lines_until(bridge.stderr, STARTED)
        reading = asyncio.create_task(bridge.stderr.read())
        alice = await new_person("Alice")
        room = await alice.create_room(invite=[account.user_id])
        question = await ask(alice, room)
        await alice.react(room, question["event_id"], "🚀")
        await alice.wait_for(room, is_message("You chose fast."))
        await alice.wait_for(room, is_edit_of(question["event_id"]))
        bridge.send_signal(signal.SIGTERM)
        async with asyncio.timeout(15):
            assert await bridge.wait() == 0, log + (await reading).decode()
    finally:
        if bridge.returncode is None:
            bridge.kill()
            await bridge.wait()

    assert machine.contents() == before
    assert of_user(SHARED_FOLDERS) == shared_before
    kept = list(machine.journal.rglob("*"))
    assert machine.journal / "journal.sqlite3" in kept
    assert [path for path in kept if path.stat().st_mode & 0o077] == []


def writable_for_the_user(machine: Machine) -> set[str]:
    """What of the machine's folder the user may write to, asked as that user."""
    script = (
        "import os\n"
        f"for place, folders, files in os.walk({str(machine.folder)!r}):\n"
        "    for path in (place, *(os.path.join(place, file) for file in files)):\n"
        "        if os.access(path, os.W_OK) and not os.path.islink(path):\n"
        "            print(path)\n"
    )
    return set(machine.run(machine.program("python"), "-c", script).stdout.splitlines())


async def lines_until(stream: asyncio.StreamReader, wanted: str) -> str:
    """What the stream gives, up to the line that holds what is wanted."""
    seen = ""
    async with asyncio.timeout(30):
        while line := (await stream.readline()).decode():
            seen += line
            if wanted in line:
                return seen
    raise AssertionError(f"ended without {wanted!r}:\n{seen}")
