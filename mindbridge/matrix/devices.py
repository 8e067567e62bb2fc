"""The accounts' devices in the data home: logged in once, the same device for ever."""

import json
import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from mindbridge.ids import AgentName, UserId
from mindbridge.matrix.errors import MatrixError


class Device(BaseModel):
    """A logged-in device of an account."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    user_id: UserId
    device_id: str
    access_token: str

    def __repr__(self) -> str:
        """Names the device, never its token."""
        return f"Device({self.user_id}, {self.device_id})"


class DeviceFolder:
    """The folder `devices` of a data home: one file an agent, readable by its owner only."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "devices"

    def load(self, agent: AgentName, user_id: UserId) -> Device | None:
        """The agent's device, None where there is none yet or the agent has another account now.

        Raises:
            MatrixError: the file is damaged.
        """
        path = self._path(agent)
        try:
            device = Device.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise MatrixError(f"{path}: is damaged; remove it to log in as a new device") from error
        return device if device.user_id == user_id else None

    def save(self, agent: AgentName, device: Device) -> None:
        """Keeps the agent's device; the file is there whole or not at all."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(agent)
        draft = path.with_suffix(".new")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(device.model_dump(), file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)

    def _path(self, agent: AgentName) -> Path:
        return self._folder / f"{agent}.json"
