"""What the owner of a Synapse may ask of it: accounts, and rate limits for one of them."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp
from pydantic import BaseModel, Field

_TIMEOUT = aiohttp.ClientTimeout(total=30)


class HomeserverError(Exception):
    """The homeserver is missing, did not start or refused something; the message says what to do."""


class Registered(BaseModel, frozen=True):
    """A new account and its first device."""

    user_id: str
    device_id: str
    access_token: str = Field(repr=False)


class _Nonce(BaseModel):
    nonce: str


@dataclass(frozen=True, slots=True)
class Homeserver:
    """A running Synapse: its address, its name in user ids, and the secret that lets its owner make accounts."""

    url: str
    server_name: str
    registration_secret: str = field(repr=False)

    async def register(
        self, localpart: str, password: str, *, admin: bool = False, display_name: str | None = None
    ) -> Registered:
        """Make the account `@localpart:server_name` (Synapse's shared-secret registration).

        Raises:
            HomeserverError: Synapse is out of reach, or refused, for example since the name is taken.
        """
        path = "/_synapse/admin/v1/register"
        nonce = _Nonce.model_validate_json(await self._ask("GET", path)).nonce
        signed = "\0".join((nonce, localpart, password, "admin" if admin else "notadmin"))
        request: dict[str, str | int] = {
            "nonce": nonce,
            "username": localpart,
            "displayname": display_name or localpart,
            "password": password,
            "admin": admin,
            "mac": hmac.new(self.registration_secret.encode(), signed.encode(), hashlib.sha1).hexdigest(),
        }
        return Registered.model_validate_json(await self._ask("POST", path, request))

    async def override_rate_limit(self, user_id: str, messages_per_second: int, burst_count: int) -> None:
        """Give one account a rate limit of its own; zeros mean that it has none (Synapse's `override_ratelimit`).

        Raises:
            HomeserverError: Synapse is out of reach, or refused, for example since there is no such account.
        """
        admin = await self.register(f"admin-{secrets.token_hex(4)}", secrets.token_hex(16), admin=True)
        limit = {"messages_per_second": messages_per_second, "burst_count": burst_count}
        path = f"/_synapse/admin/v1/users/{user_id}/override_ratelimit"
        await self._ask("POST", path, limit, {"Authorization": f"Bearer {admin.access_token}"})

    async def _ask(
        self,
        method: str,
        path: str,
        request: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        try:
            async with (
                aiohttp.ClientSession(self.url, timeout=_TIMEOUT) as session,
                session.request(method, path, json=request, headers=headers) as response,
            ):
                text = await response.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise HomeserverError(f"{method} {path}: Synapse at {self.url} can't be reached: {error}") from error
        if not response.ok:
            raise HomeserverError(f"{method} {path}: Synapse refused with {response.status}: {text}")
        return text
