"""The folders in `examples/`: each is listed, its configuration is good, its agent asks and takes the answer."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindbridge.agents.backend import make_backend
from mindbridge.cli import check
from mindbridge.config.load import load_config
from mindbridge.questions.read import read_reply
from tests.unit.doc_pages import ROOT, modules_forgotten, page
from tests.unit.sample_turn import selection, turn

EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/config.yaml"))
every_example = pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)


@pytest.fixture(autouse=True)
def as_on_a_users_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ASSISTANT_PASSWORD", "pw")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    with modules_forgotten():
        yield


def test_every_example_is_listed() -> None:
    assert EXAMPLES
    assert [link for link in page("examples/README.md").links() if not link.startswith("..")] == [
        f"{folder.name}/" for folder in EXAMPLES
    ]


@every_example
def test_configuration_is_good(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check.run(folder / "config.yaml") == 0
    assert capsys.readouterr().err == ""


@every_example
async def test_agents_ask_and_say_what_was_chosen(folder: Path) -> None:
    config = load_config(folder / "config.yaml", os.environ)
    for agent in config.agents.values():
        backend = make_backend(agent, folder)

        asked = read_reply(await backend.reply(turn()), max_options=agent.questions.max_options)
        assert asked.problems == ()
        assert asked.question is not None

        chosen = asked.question.options[0]
        option = {"number": 1, "key": chosen.button, "label": chosen.label, "value": chosen.value}
        answered = await backend.reply(turn(kind="selection", selection=selection(selected_option=option)))
        assert str(chosen.value) in answered
