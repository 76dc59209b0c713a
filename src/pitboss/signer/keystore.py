"""The key at rest: an Ethereum keystore file (version 3, scrypt), readable by its owner only.

The passphrase comes from a terminal or a file descriptor, never from an argument or the environment. Messages of the libraries
are not passed on: some repeat their input.
"""

import getpass
import json
import os
from pathlib import Path
from typing import Any

from eth_account import Account

from pitboss.core.errors import UserError
from pitboss.signer.private_files import check_private

SCRYPT_N = 2**18
"""Work factor of new files: about 256 MB and a second for each guess."""
MOST_FILE_BYTES = 64 * 1024
MOST_SECRET_BYTES = 4096
SHORTEST_PASSPHRASE = 8


def create_keystore(path: Path, key: bytes, passphrase: str, scrypt_n: int = SCRYPT_N, address: str = "") -> None:
    """Write a new keystore file. Refuses to replace one. Without an address it is that of the key on Ethereum."""
    if len(passphrase) < SHORTEST_PASSPHRASE:
        raise UserError(f"the passphrase is shorter than {SHORTEST_PASSPHRASE} characters", "choose a longer one")
    keystore = Account.encrypt(key, passphrase, kdf="scrypt", iterations=scrypt_n)
    content = json.dumps({**keystore, "address": address.removeprefix("0x")} if address else keystore)
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise UserError(f"{path} exists", "a keystore is never replaced; choose another folder") from None
    with os.fdopen(descriptor, "w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def keystore_address(path: Path) -> str:
    """Return the address that a keystore file names, in lower case, without opening it."""
    return "0x" + str(_content(path).get("address", "")).lower().removeprefix("0x")


def open_keystore(path: Path, passphrase: str) -> bytes:
    """Return the key of a keystore file."""
    content = _content(path)
    try:
        return bytes(Account.decrypt(content, passphrase))
    except (ValueError, TypeError, KeyError, NotImplementedError):
        pass  # raised below, so that no exception chain holds a message of the library
    raise UserError(f"{path} cannot be opened", "the passphrase is wrong, or the file is damaged")


def _content(path: Path) -> dict[str, Any]:
    check_private(path)
    try:
        if path.stat().st_size > MOST_FILE_BYTES:
            raise ValueError
        content = json.loads(path.read_text("utf-8"))
        if not isinstance(content, dict) or content.get("version") != 3:
            raise ValueError
    except (ValueError, OSError):
        raise UserError(f"{path} is no keystore file of version 3", "`pitboss signer init` makes one") from None
    return content


def read_secret(name: str, descriptor: int | None) -> str:
    """Read a passphrase or key from a file descriptor, or from a hidden prompt on the terminal."""
    if descriptor is None:
        try:
            return getpass.getpass(f"{name}: ").strip()
        except (EOFError, OSError):
            option = "--key-fd" if name == "key" else "--passphrase-fd"
            raise UserError(f"there is no terminal to read the {name} from", f"use {option}") from None
    try:
        with os.fdopen(descriptor, "rb", closefd=True) as file:
            data = file.read(MOST_SECRET_BYTES + 1)
        if len(data) > MOST_SECRET_BYTES:
            raise ValueError
        return data.decode("utf-8").strip("\r\n")
    except (OSError, ValueError):
        pass
    raise UserError(f"the {name} cannot be read from descriptor {descriptor}", "write one line to it and close it")
