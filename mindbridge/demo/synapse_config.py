"""The configuration of a Synapse that listens on loopback alone, keeps all it has in one folder and talks to nobody."""

import base64
import secrets
from pathlib import Path

import yaml

SERVER_NAME = "localhost"

_LOG = {
    "version": 1,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"level": "INFO", "handlers": ["console"]},
    "disable_existing_loggers": False,
}

_NO_LIMIT = {"per_second": 1_000_000, "burst_count": 1_000_000}
_NO_RATE_LIMITS = {
    "rc_message": _NO_LIMIT,
    "rc_registration": _NO_LIMIT,
    "rc_registration_token_validity": _NO_LIMIT,
    "rc_login": {"address": _NO_LIMIT, "account": _NO_LIMIT, "failed_attempts": _NO_LIMIT},
    "rc_admin_redaction": _NO_LIMIT,
    "rc_joins": {"local": _NO_LIMIT, "remote": _NO_LIMIT},
    "rc_joins_per_room": _NO_LIMIT,
    "rc_key_requests": _NO_LIMIT,
    "rc_invites": {"per_room": _NO_LIMIT, "per_user": _NO_LIMIT, "per_issuer": _NO_LIMIT},
    "rc_media_create": _NO_LIMIT,
    "rc_presence": {"per_user": _NO_LIMIT},
    "rc_delayed_event_mgmt": _NO_LIMIT,
    "rc_room_creation": _NO_LIMIT,
    "rc_reports": _NO_LIMIT,
    "rc_user_directory": _NO_LIMIT,
    "rc_profile": _NO_LIMIT,
}


def write_synapse_config(folder: Path, port: int, registration_secret: str, *, rate_limits: bool) -> Path:
    """Write all that a new Synapse needs into `folder`, its signing key included, and give the file to start it with.

    With `rate_limits` Synapse's own defaults hold, else none.
    """
    # Made here, since a Synapse that makes its own key takes a second longer to start.
    seed = base64.b64encode(secrets.token_bytes(32)).decode().rstrip("=")
    (folder / "signing.key").write_text(f"ed25519 a_{secrets.token_hex(2)} {seed}\n", encoding="utf-8")
    (folder / "log.yaml").write_text(yaml.safe_dump(_LOG), encoding="utf-8")
    config = {
        "server_name": SERVER_NAME,
        "public_baseurl": f"http://127.0.0.1:{port}/",
        "listeners": [
            {"type": "http", "port": port, "bind_addresses": ["127.0.0.1"], "resources": [{"names": ["client"]}]}
        ],
        "database": {"name": "sqlite3", "args": {"database": str(folder / "homeserver.db")}},
        "media_store_path": str(folder / "media"),
        "signing_key_path": str(folder / "signing.key"),
        "log_config": str(folder / "log.yaml"),
        "registration_shared_secret": registration_secret,
        "macaroon_secret_key": secrets.token_hex(32),
        "form_secret": secrets.token_hex(32),
        "bcrypt_rounds": 4,
        "report_stats": False,
        "trusted_key_servers": [],
        "federation_domain_whitelist": [],
        "presence": {"enabled": False},
        **({} if rate_limits else _NO_RATE_LIMITS),
    }
    path = folder / "homeserver.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return path
