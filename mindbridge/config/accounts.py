"""Rules over an account as a whole: one credential, its secret, no other agent with it (contract, section 2)."""

from collections.abc import Callable
from pathlib import Path

from mindbridge.config.faults import KeyPath, dotted
from mindbridge.config.tree import Section, Tree

CREDENTIALS = ("password", "password_file", "access_token", "access_token_file")
_LARGEST_SECRET = 65_536


def settle_accounts(tree: Tree) -> None:
    """Adds the faults of accounts to the tree, and puts the secrets that lie in files to where they belong.

    Values with the wrong type are left for the schema to refuse. Paths of files are absolute already.
    """
    owners: dict[str, KeyPath] = {}
    for name in tree.section(("agents",)):
        path = ("agents", name, "account")
        account = tree.value(path)
        if isinstance(account, dict):
            _settle_credential(tree, path, account)
            _claim(tree, path, account, owners)


def _settle_credential(tree: Tree, path: KeyPath, account: Section) -> None:
    given = [key for key in CREDENTIALS if account.get(key) is not None or (*path, key) in tree.unknown]
    if not given:
        tree.blame(path, f"has no credential, must have one of {', '.join(CREDENTIALS[:-1])} or {CREDENTIALS[-1]}")
    given.sort(key=lambda key: tree.keys[*path, key])
    for key in given[1:]:
        tree.blame((*path, key), f"is a second credential beside {given[0]}, keep one of them", tree.keys[*path, key])
    for key in given:
        _settle_secret(tree, (*path, key), account)
    if account.get("device_id") is not None and given and not any(key.startswith("access_token") for key in given):
        tree.blame((*path, "device_id"), "goes only with an access token, a password logs in as a device of its own")


def _settle_secret(tree: Tree, path: KeyPath, account: Section) -> None:
    key = str(path[-1])
    if tree.is_unknown(path):
        return
    secret = account[key]
    if isinstance(secret, Path):
        secret = _content(secret, lambda problem: tree.blame(path, problem))
        account[key.removesuffix("_file")] = secret
    if isinstance(secret, str) and (problem := _problem(key, secret)):
        tree.blame(path, problem)


def _content(file: Path, blame: Callable[[str], None]) -> str | None:
    try:
        with file.open("rb") as opened:
            content = opened.read(_LARGEST_SECRET + 1)
        if len(content) > _LARGEST_SECRET:
            blame(f"names a file of more than {_LARGEST_SECRET} bytes, must name one that holds nothing but the secret")
            return None
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        blame("names a file that is not there, name one relative to the configuration's folder")
    except IsADirectoryError:
        blame("names a folder, must name a file")
    except UnicodeDecodeError:
        blame("names a file that is no UTF-8 text, write the secret as UTF-8")
    except OSError as error:
        blame(f"names a file that can't be read ({error.strerror}), let this user read it")
    else:
        return text.removesuffix("\n").removesuffix("\r")
    return None


def _problem(key: str, secret: str) -> str | None:
    if not secret:
        return "is empty, must hold the secret"
    if "\0" in secret:
        return "holds NUL, must hold nothing but the secret"
    if key.startswith("access_token") and not (secret.isascii() and secret.isprintable() and " " not in secret):
        return "has a blank, a line break or a special character, must be the access token alone"
    return None


def _claim(tree: Tree, path: KeyPath, account: Section, owners: dict[str, KeyPath]) -> None:
    """Servers log an account in under its name in any case, so that two spellings are one account."""
    user_id = account.get("user_id")
    here = (*path, "user_id")
    if not isinstance(user_id, str) or tree.is_unknown(here):
        return
    owner = owners.setdefault(user_id.lower(), path)
    if owner != path:
        tree.blame(here, f"is the account of {dotted(owner[:-1])} too, must be an account that no other agent has")
