"""The accounts that deployments trade on, by name, in `accounts.toml` of the workspace. It holds addresses and no secret.

The key of an account is with its signing process; the entry says where that listens. `owner` is the user whose deployments
may use the account.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.suggestion import suggestion

FILE = "accounts.toml"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


class TradingAccount(BaseModel):
    """One account of a venue. `address` is the account itself, never the address of the key that signs for it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    venue: str = "perp"
    address: Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")]
    network: Literal["mainnet", "testnet"]
    signer: str = "signer/signer.sock"
    """The socket of its signing process, relative to the workspace unless absolute."""
    watchdog_signer: str = "watchdog/signer.sock"
    """The socket of the watchdog's own signing process, which holds another agent's key and opens nothing."""
    owner: str = "local"

    def signer_socket(self, home: Path) -> Path:
        """Where its signing process listens."""
        return home / self.signer

    def watchdog_socket(self, home: Path) -> Path:
        """Where the watchdog's signing process listens."""
        return home / self.watchdog_signer


def read_accounts(home: Path) -> dict[str, TradingAccount]:
    """All accounts by name; empty if there is no file."""
    return _read(home / FILE)


def _read(path: Path) -> dict[str, TradingAccount]:
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}", "each account is a table, such as [main]") from None
    accounts: dict[str, TradingAccount] = {}
    for name, entry in content.items():
        try:
            accounts[name] = TradingAccount.model_validate(entry)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, (name, *first["loc"])))
            raise UserError(f"{path}: {where}: {first['msg']}", "`pitboss live accounts add` writes entries") from None
    return accounts


def account_named(home: Path, name: str, venue: str, owner: str | None) -> TradingAccount:
    """The account of a name, if it is on the venue and belongs to the owner; None: any owner."""
    accounts = {
        each: account
        for each, account in read_accounts(home).items()
        if account.venue == venue and owner in (None, account.owner)
    }
    if name not in accounts:
        hint = suggestion(name, sorted(accounts), "accounts:") or "`pitboss live accounts add` makes one"
        raise UserError(f"there is no account {name!r} of venue {venue}", hint)
    return accounts[name]


def names_of_account(home: Path, name: str) -> tuple[str, ...]:
    """All names under which the account of a name is listed, itself included: they have its venue, network and address."""
    identities = {
        each: (account.venue, account.network, account.address.lower()) for each, account in read_accounts(home).items()
    }
    return tuple(each for each, identity in identities.items() if identity == identities.get(name))


def add_account(home: Path, name: str, account: TradingAccount) -> None:
    """Add an account to the file. An existing name is refused."""
    if not _NAME.fullmatch(name):
        raise UserError(f"{name[:40]!r} is not a name", "use small letters, digits, - and _, at most 32")
    accounts = read_accounts(home)
    if name in accounts:
        raise UserError(f"account {name} exists", f"edit {home / FILE}, or choose another name")
    # A JSON string is a TOML string too.
    lines = [
        f"[{name}]",
        *(f"{field} = {codec.dumps(value).decode()}" for field, value in account.model_dump().items()),
    ]
    home.mkdir(parents=True, exist_ok=True)
    before = _text(home)
    _write(home, before + ("\n" if before else "") + "\n".join(lines) + "\n", {**accounts, name: account})


def remove_account(home: Path, name: str) -> None:
    """Remove an account from the file; everything else in it stays as it is, comments included."""
    accounts = read_accounts(home)
    if name not in accounts:
        raise UserError(
            f"there is no account {name!r}", suggestion(name, sorted(accounts), "accounts:") or "there are none"
        )
    parts = re.split(r"(?m)^(?=[ \t]*\[)", _text(home))
    header = re.compile(rf"[ \t]*\[[ \t]*[\"']?{re.escape(name)}[\"']?[ \t]*\]")
    left = "".join(part for part in parts if not header.match(part))
    _write(home, left, {each: account for each, account in accounts.items() if each != name})


def _text(home: Path) -> str:
    path = home / FILE
    return path.read_text("utf-8") if path.exists() else ""


def _write(home: Path, text: str, expected: Mapping[str, TradingAccount]) -> None:
    """Replace the file in one step. What is written must read back as expected, or nothing is changed."""
    path, new = home / FILE, home / f"{FILE}.new"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    if _read(new) != expected:
        new.unlink()
        raise UserError(f"{path} has a form that cannot be changed safely", "edit it yourself")
    new.replace(path)
