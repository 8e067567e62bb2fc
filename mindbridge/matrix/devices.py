"""The accounts' devices in the data home: logged in once, the same device for ever."""

import json
import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mindbridge.ids import AgentName, UserId
from mindbridge.matrix.errors import AccountUnusable, Unreachable


class Device(BaseModel):
    """A logged-in device of an account; its token is in no `repr` or `str`."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    user_id: UserId
    device_id: str
    access_token: str = Field(repr=False)


class DeviceFolder:
    """The folder `devices` of a data home: one file an agent, readable by its owner only."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "devices"

    def load(self, agent: AgentName, user_id: UserId) -> Device | None:
        """The agent's device, None where there is none yet or the agent has another account now.

        Raises:
            AccountUnusable: the file is damaged or can't be read.
        """
        path = self._path(agent)
        try:
            device = Device.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise AccountUnusable(f"{path}: is damaged; remove it to log in as a new device") from error
        except OSError as error:
            raise AccountUnusable(
                f"{path}: can't be read: {error.strerror}; is it a file that this user may read?"
            ) from error
        return device if device.user_id == user_id else None

    def save(self, agent: AgentName, device: Device) -> None:
        """Keeps the agent's device; the file is there whole or not at all.

        Raises:
            Unreachable: the file can't be written now; to be tried again.
        """
        write_private(self._path(agent), json.dumps(device.model_dump()))

    def _path(self, agent: AgentName) -> Path:
        return self._folder / f"{agent}.json"


def write_private(path: Path, content: str) -> None:
    """Writes a file that its owner alone may read; it is there whole or not at all, also after a loss of power.

    Raises:
        Unreachable: the file can't be written now; to be tried again.
    """
    draft = path.with_suffix(".new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise Unreachable(f"{path}: can't be written: {error.strerror}; is the folder writable?") from error
