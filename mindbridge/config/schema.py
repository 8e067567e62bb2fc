"""The configuration's keys, their types and defaults (contract, section 2).

Each field's description finishes the sentence "must be …". Rules over several keys are in `accounts`.
"""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, SecretStr, Tag

from mindbridge.config import shapes
from mindbridge.config.faults import KeyPath

UserId = Annotated[str, AfterValidator(shapes.user_id)]
UserPattern = Annotated[str, AfterValidator(shapes.user_pattern)]
BotPattern = Annotated[str, AfterValidator(shapes.bot_pattern)]
Room = Annotated[str, AfterValidator(shapes.room)]
Duration = Annotated[timedelta, BeforeValidator(shapes.duration)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class Access(_Section):
    """Who may talk to agents and answer, and who is a bot."""

    users: tuple[UserPattern, ...] = Field(
        min_length=1,
        description='a list of who may talk to agents and answer, such as ["@alice:example.org", "@*:example.org"]; '
        '"*" means anyone',
    )
    bots: tuple[BotPattern, ...] = Field(
        default=(), description='a list of user ids or patterns, such as ["@*bot:example.org"]'
    )

    def allows(self, user_id: str) -> bool:
        """Whether the user is among `users`."""
        return any(shapes.matches(pattern, user_id) for pattern in self.users)

    def is_bot(self, user_id: str) -> bool:
        """Whether the user is among `bots`."""
        return any(shapes.matches(pattern, user_id) for pattern in self.bots)


class Account(_Section):
    """An agent's Matrix account with exactly one credential.

    `password` or `access_token` holds it, also where the file gives it by `password_file` or `access_token_file`.
    """

    user_id: UserId = Field(description='a full user id in quotes, such as "@assistant:example.org"')
    password: SecretStr | None = Field(
        default=None, description="text, in quotes, or ${NAME} for an environment variable"
    )
    password_file: Path | None = Field(default=None, description="the name of a file with the password")
    access_token: SecretStr | None = Field(
        default=None, description="text, in quotes, or ${NAME} for an environment variable"
    )
    access_token_file: Path | None = Field(default=None, description="the name of a file with the access token")
    device_id: str | None = Field(
        default=None, min_length=1, description="the id of the access token's device, in quotes"
    )


class Questions(_Section):
    """How an agent's questions are asked. `expires_in` has no function yet."""

    max_options: int = Field(default=5, ge=1, le=10, description="a whole number from 1 to 10")
    answerers: Annotated[
        Annotated[Literal["anyone", "requester"], Tag("word")]
        | Annotated[tuple[UserId, ...], Field(min_length=1), Tag("list")],
        Discriminator(lambda value: "list" if isinstance(value, tuple | list) else "word"),
    ] = Field(default="anyone", description='anyone, requester or a list of user ids, such as ["@alice:example.org"]')
    quiet: bool = Field(default=False, description="true or false")
    expires_in: None = Field(default=None, description="null")


class _Backend(_Section):
    timeout: Duration = Field(default=timedelta(seconds=120), description="a time with a unit, such as 120s")
    attempts: int = Field(default=3, ge=1, le=100, description="a whole number from 1 to 100")


class CommandBackend(_Backend):
    """One process a turn, in the configuration's folder."""

    type: Literal["command"]
    command: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(shapes.command)] = Field(
        repr=False, description='a list of a program and its arguments, such as ["python3", "agent.py"]'
    )


class PythonBackend(_Backend):
    """A function that takes the turn, imported from the configuration's folder."""

    type: Literal["python"]
    python: Annotated[str, AfterValidator(shapes.python_reference)] = Field(
        description="package.module:function, such as agent:reply"
    )


class DemoBackend(_Backend):
    """The agent that is built in."""

    type: Literal["demo"]


Backend: TypeAlias = CommandBackend | PythonBackend | DemoBackend


class AgentConfig(_Section):
    """An agent: a Matrix account and the program that replies."""

    account: Account = Field(description="a mapping with user_id and one credential")
    display_name: Annotated[str, AfterValidator(shapes.display_name)] | None = Field(
        default=None, description="text, in quotes"
    )
    role: str | None = Field(default=None, description="text, in quotes")
    instructions: tuple[str, ...] = Field(default=(), description='a list of texts, such as ["Be brief."]')
    backend: Backend = Field(discriminator="type", description="a mapping with type: command, python or demo")
    rooms: tuple[Room, ...] = Field(default=(), description='a list of rooms, such as ["#lobby:example.org"]')
    respond: Literal["auto", "always", "mention"] = Field(default="auto", description="auto, always or mention")
    threads: bool = Field(default=True, description="true or false")
    questions: Questions = Field(default=Questions(), description="a mapping, such as max_options: 5")
    turns_at_once: int = Field(default=4, ge=1, le=100, description="a whole number from 1 to 100")


class Document(_Section):
    """What the file itself holds."""

    homeserver: Annotated[str, AfterValidator(shapes.homeserver)] = Field(
        description="an http or https address, such as https://matrix.example.org"
    )
    journal: Path = Field(default=Path("journal"), description="the name of a folder, such as ./journal")
    keep: Duration = Field(
        default=timedelta(days=90), ge=timedelta(days=1), description="a time of at least 1d, such as 90d"
    )
    access: Access = Field(
        description='a mapping with users: a list of who may talk to agents and answer; "*" means anyone'
    )
    agents: dict[Annotated[str, AfterValidator(shapes.agent_name)], AgentConfig] = Field(
        min_length=1, description="a mapping with an agent's name and its account and backend"
    )


class Config(Document):
    """A configuration that is good. `folder` is where the file lies; no other path is relative any more."""

    folder: Path


SECTIONS: dict[str, type[BaseModel]] = {
    "the top level": Document,
    "access": Access,
    "agents.NAME": AgentConfig,
    "agents.NAME.account": Account,
    "agents.NAME.questions": Questions,
    "a backend of type command": CommandBackend,
    "a backend of type python": PythonBackend,
    "a backend of type demo": DemoBackend,
}


def section_at(path: KeyPath, backend_type: object) -> type[BaseModel] | None:
    """The model of the section at a path of the file; for a backend it depends on its type."""
    match path:
        case ():
            return Document
        case ("agents", _, "backend"):
            return SECTIONS.get(f"a backend of type {backend_type}")
        case ("agents", _, *rest):
            return SECTIONS.get(".".join(["agents.NAME", *map(str, rest)]))
        case _:
            return SECTIONS.get(".".join(map(str, path)))
