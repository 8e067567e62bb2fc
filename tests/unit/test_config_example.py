"""`config.example.yaml` holds every key, explained, with its default."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel, SecretStr

from mindbridge.config import schema
from mindbridge.config.load import load
from mindbridge.config.schema import SECTIONS, Config
from tests.unit.config_files import load_text

EXAMPLE = Path(__file__).parents[2] / "config.example.yaml"
ENVIRON = {"ASSISTANT_PASSWORD": "pw", "ASSISTANT_TOKEN": "token"}

PATHS: dict[str, tuple[str, ...]] = {
    "the top level": (),
    "access": ("access",),
    "agents.NAME": ("agents", "assistant"),
    "agents.NAME.account": ("agents", "assistant", "account"),
    "agents.NAME.questions": ("agents", "assistant", "questions"),
    "a backend of type command": ("agents", "assistant", "backend"),
    "a backend of type python": ("agents", "assistant", "backend"),
    "a backend of type demo": ("agents", "assistant", "backend"),
}


KEYS = [(place, key) for place, section in SECTIONS.items() for key in section.model_fields]


def test_every_section_of_the_schema_has_its_place() -> None:
    models = {value for name, value in vars(schema).items() if isinstance(value, type) and not name.startswith("_")}

    assert {model for model in models if issubclass(model, BaseModel)} - {BaseModel, Config} == set(SECTIONS.values())
    assert set(PATHS) == set(SECTIONS)


@pytest.mark.parametrize(("place", "key"), KEYS)
def test_example_explains_every_key(place: str, key: str) -> None:
    lines = EXAMPLE.read_text().splitlines()
    column = load(EXAMPLE, ENVIRON).tree.keys[*PATHS[place], first_key(place)].column
    indent = " " * (column - 1)

    found = [number for number, line in enumerate(lines) if re.match(rf"{indent}(# )?{key}:( |$)", line)]

    assert found, f"{key} is missing"
    assert lines[found[0] - 1].startswith(f"{indent}# "), f"{key} is not explained"


@pytest.mark.parametrize(("place", "key"), KEYS)
def test_example_shows_defaults(place: str, key: str) -> None:
    loaded = load(EXAMPLE, ENVIRON)
    shown: object = loaded.config
    for name in PATHS[place]:
        shown = shown[name] if isinstance(shown, dict) else getattr(shown, name)
    field = SECTIONS[place].model_fields[key]

    if (*PATHS[place], key) not in loaded.tree.keys or field.is_required():
        assert field.is_required() or field.default is None, "a default is shown as a key, not as a comment"
    elif key == "password":
        assert getattr(shown, key) == SecretStr("pw")
    elif key == "journal":
        assert getattr(shown, key) == EXAMPLE.parent / field.default
    else:
        assert getattr(shown, key) == field.default


@pytest.mark.parametrize(
    ("out", "into"),
    [
        (["password"], ["password_file"]),
        (["password"], ["access_token"]),
        (["password"], ["access_token", "device_id"]),
        (["password"], ["access_token_file"]),
        (["command"], ["python"]),
    ],
)
def test_examples_alternatives_are_good_as_they_stand(tmp_path: Path, out: list[str], into: list[str]) -> None:
    text = EXAMPLE.read_text()
    for key in into:
        text, count = re.subn(rf"(?m)^( +)# {key}: ", rf"\1{key}: ", text)
        assert count == 1
    for key in out:
        text, count = re.subn(rf"(?m)^ +{key}: .*\n", "", text)
        assert count == 1
    text = text.replace("type: command", f"type: {into[0]}") if into == ["python"] else text
    (tmp_path / "assistant.password").write_text("pw\n")
    (tmp_path / "assistant.token").write_text("token\n")

    agent = load_text(tmp_path, text, ENVIRON).agents["assistant"]

    assert (agent.account.password, agent.account.access_token) in [
        (SecretStr("pw"), None),
        (None, SecretStr("token")),
    ]


def first_key(place: str) -> str:
    return next(iter(SECTIONS[place].model_fields)) if "backend" not in place else "type"
