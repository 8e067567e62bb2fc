"""Good configurations."""

from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from mindbridge.config.load import load_config
from mindbridge.config.schema import (
    Access,
    Account,
    AgentConfig,
    CommandBackend,
    Config,
    DemoBackend,
    PythonBackend,
    Questions,
)
from tests.unit.config_files import SMALL, load_agent, load_text, with_account, with_agent_key, with_backend, write

CONTRACT = """\
homeserver: https://matrix.example.org
journal: ./journal                     # folder: SQLite journal, devices, encryption keys
access:
  users: ["@alice:example.org", "@*:example.org"]   # who may talk to agents and answer; required; "*" = anyone
  bots: ["@*bot:example.org"]          # never trigger and never answer; configured agents are bots anyway
agents:
  assistant:
    account:
      user_id: "@assistant:example.org"
      password: ${ASSISTANT_PASSWORD}  # or password_file, or access_token (+ device_id), or access_token_file
    display_name: Assistant
    role: A helpful assistant
    instructions:
      - When the user must choose between options, ask with an interactive block.
    backend:                           # exactly one
      type: command                    # command | http | python | model | demo
      command: ["python3", "agent.py"]
      timeout: 120s
    rooms: ["#lobby:example.org"]      # joined at start; invites from allowed users are accepted as well
    respond: auto                      # auto | always | mention
    threads: true                      # false: talk in the room's main timeline
    questions:
      max_options: 5
      answerers: anyone                # anyone (allowed) | requester | list of user ids
      expires_in: null                 # e.g. 24h
"""


def test_the_contracts_example_loads_whole(tmp_path: Path) -> None:
    assert load_text(tmp_path, CONTRACT, {"ASSISTANT_PASSWORD": "pw"}) == Config(
        folder=tmp_path,
        homeserver="https://matrix.example.org",
        journal=tmp_path / "journal",
        access=Access(users=("@alice:example.org", "@*:example.org"), bots=("@*bot:example.org",)),
        agents={
            "assistant": AgentConfig(
                account=Account(user_id="@assistant:example.org", password=SecretStr("pw")),
                display_name="Assistant",
                role="A helpful assistant",
                instructions=("When the user must choose between options, ask with an interactive block.",),
                backend=CommandBackend(
                    type="command", command=("python3", "agent.py"), timeout=timedelta(minutes=2), attempts=3
                ),
                rooms=("#lobby:example.org",),
                respond="auto",
                threads=True,
                questions=Questions(max_options=5, answerers="anyone", expires_in=None),
                turns_at_once=4,
            )
        },
    )


def test_keys_left_out_have_their_defaults(tmp_path: Path) -> None:
    assert load_text(tmp_path, SMALL) == Config(
        folder=tmp_path,
        homeserver="https://matrix.example.org",
        journal=tmp_path / "journal",
        access=Access(users=("@alice:example.org",)),
        agents={
            "one": AgentConfig(
                account=Account(user_id="@one:example.org", password=SecretStr("secret-one")),
                backend=DemoBackend(type="demo", timeout=timedelta(seconds=120), attempts=3),
            )
        },
    )


def test_several_agents_keep_the_files_order(tmp_path: Path) -> None:
    second = SMALL.partition("agents:\n")[2].replace("one", "a-second")

    assert list(load_text(tmp_path, SMALL + second).agents) == ["one", "a-second"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("500ms", timedelta(milliseconds=500)),
        ("120s", timedelta(seconds=120)),
        ("5m", timedelta(minutes=5)),
        ("24h", timedelta(hours=24)),
        ("90d", timedelta(days=90)),
        ('"365d"', timedelta(days=365)),
    ],
)
def test_times_are_written_with_a_unit(tmp_path: Path, written: str, meant: timedelta) -> None:
    agent = load_agent(tmp_path, with_backend("type: python", "python: agents.mine:Bot.reply", f"timeout: {written}"))

    assert agent.backend == PythonBackend(type="python", python="agents.mine:Bot.reply", timeout=meant)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("https://matrix.example.org/", "https://matrix.example.org"),
        ("HTTPS://matrix.example.org:8448", "https://matrix.example.org:8448"),
        ("http://synapse:8008", "http://synapse:8008"),
        ("http://[::1]:8008/", "http://[::1]:8008"),
        ("https://example.org/matrix/", "https://example.org/matrix"),
    ],
)
def test_homeserver_is_an_address_without_slash_at_its_end(tmp_path: Path, written: str, meant: str) -> None:
    assert load_text(tmp_path, SMALL.replace("https://matrix.example.org", written)).homeserver == meant


@pytest.mark.parametrize(
    "room", ["#lobby:example.org", "!abc:example.org:8448", "!9Vd-hash_of_version12", "#größe:b.org"]
)
def test_rooms_are_aliases_or_ids_with_or_without_server(tmp_path: Path, room: str) -> None:
    assert load_agent(tmp_path, with_agent_key(f'rooms: ["{room}"]')).rooms == (room,)


@pytest.mark.parametrize("answerers", [("@alice:example.org",), ("@alice:example.org", "@bob:[::1]:8008")])
def test_answerers_can_be_a_list_of_people(tmp_path: Path, answerers: tuple[str, ...]) -> None:
    written = ", ".join(f'"{user}"' for user in answerers)

    agent = load_agent(tmp_path, with_agent_key(f"questions: {{answerers: [{written}]}}"))

    assert agent.questions.answerers == answerers


@pytest.mark.parametrize(
    ("pattern", "user", "named"),
    [
        ("*", "@anyone:anywhere", True),
        ("@alice:example.org", "@alice:example.org", True),
        ("@alice:example.org", "@Alice:example.org", False),
        ("@alice:example.org", "@alice:example.org.evil", False),
        ("@*:example.org", "@alice:example.org", True),
        ("@*:example.org", "@alice:evil.org", False),
        ("@*:example.org", "@alice:exampleXorg", False),
        ("@*bot:example.org", "@bot:example.org", True),
        ("@*bot:example.org", "@robot:example.org", True),
        ("@*bot:example.org", "@bots:example.org", False),
        ("@a*a:x", "@a:x", False),
        ("@a*b*c:x", "@a-b-c:x", True),
        ("@a*b*c:x", "@a-c:x", False),
        ("@a*:*.org", "@al:example.org", True),
        ("@a**:x", "@al:x", True),
        ("@[a-z]:x", "@b:x", False),
    ],
)
def test_only_a_star_is_special_in_a_pattern(pattern: str, user: str, *, named: bool) -> None:
    access = Access(users=(pattern,), bots=(pattern,) if pattern != "*" else ())

    assert access.allows(user) is named
    assert access.is_bot(user) is (named and pattern != "*")


def test_paths_are_relative_to_the_files_folder_and_a_tilde_is_home(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "pw").write_text("from home")
    (tmp_path / "config").mkdir()
    text = "journal: ../data\n" + with_account("password_file: ~/pw")

    config = load_text(tmp_path / "config", text, {"HOME": str(tmp_path / "home")})

    assert config.folder == tmp_path / "config"
    assert config.journal == tmp_path / "config" / ".." / "data"
    assert config.agents["one"].account.password_file == tmp_path / "home" / "pw"
    assert load_text(tmp_path, "journal: /var/lib/bridge\n" + SMALL).journal == Path("/var/lib/bridge")


def test_folder_is_absolute_where_the_file_is_named_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, SMALL)
    monkeypatch.chdir(tmp_path)

    config = load_config(Path("config.yaml"), {})

    assert (config.folder, config.journal) == (tmp_path, tmp_path / "journal")


def test_nothing_but_the_given_environment_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGE_ROLE", "of the process")

    agent = load_agent(tmp_path, with_agent_key("role: ${BRIDGE_ROLE}"), {"BRIDGE_ROLE": "of the caller"})

    assert agent.role == "of the caller"
