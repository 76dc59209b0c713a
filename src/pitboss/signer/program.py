"""What the program of the signing process does: make its files, serve, and show what it holds. No command prints a key."""

import asyncio
import json
import signal
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.signer.installed_schemes import FIRST_SCHEME, scheme_named
from pitboss.signer.journal import SigningJournal
from pitboss.signer.keystore import (
    SCRYPT_N,
    create_keystore,
    keystore_address,
    open_keystore,
    read_secret,
)
from pitboss.signer.policy_file import read_policy
from pitboss.signer.process_protection import protect_process
from pitboss.signer.protocol import SOCKET
from pitboss.signer.request_handler import RequestHandler
from pitboss.signer.scheme_definition import PolicyAnswers
from pitboss.signer.server import serving_signer

KEYSTORE, POLICY, JOURNAL = "keystore.json", "policy.toml", "journal.db"
NO_ANSWERS = PolicyAnswers()
KEPT = "a keystore is never replaced; choose another --folder"
"""The hint where a keystore is there already."""


def make_files(
    folder: Path,
    passphrase_fd: int | None,
    key_fd: int | None,
    import_key: bool,
    scrypt_n: int = SCRYPT_N,
    scheme: str = FIRST_SCHEME,
    answers: PolicyAnswers = NO_ANSWERS,
) -> str:
    """Make the keystore with a new or a given key and an example policy of a scheme. Return the address.

    A keystore without a policy is one of a call that was killed in between: its key stays, and the policy is added.
    """
    protect_process()
    definition = scheme_named(scheme)
    example = definition.example_policy(answers)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_folder(folder)
    path = folder / KEYSTORE
    has_keystore = path.exists()
    if has_keystore and not path.stat().st_size:
        hint = f"an earlier `init` was interrupted: remove {path} and run it again"
        raise UserError(f"{path} is empty", hint)
    if has_keystore and (folder / POLICY).exists():
        raise UserError(f"{path} exists", KEPT)
    keys = definition.keys
    given_key = keys.read(read_secret("key", key_fd)) if import_key or key_fd is not None else None
    if has_keystore:
        key = open_keystore(path, read_secret("passphrase", passphrase_fd))
        if given_key not in (None, key):
            raise UserError(f"{path} holds another key", KEPT)
        _check_scheme(path, keys.address(key), definition.name)
    else:
        key = given_key or keys.make()
    address = keys.address(key)
    policy = definition.policy_type.model_validate(tomllib.loads(example))
    definition.open(policy).check_key(address)
    if not has_keystore:
        passphrase = read_secret("passphrase", passphrase_fd)
        if passphrase_fd is None and read_secret("passphrase again", None) != passphrase:
            raise UserError("the passphrases differ", "type the same one twice")
        create_keystore(path, key, passphrase, scrypt_n, address)
    if not (folder / POLICY).exists():
        unfinished = folder / f"{POLICY}.new"
        unfinished.write_text(example, "utf-8")
        unfinished.chmod(0o600)
        unfinished.replace(folder / POLICY)
    return address


def serve(
    folder: Path,
    socket_path: Path | None,
    passphrase_fd: int | None,
    now: Callable[[], Instant],
    ready: Callable[[str], object],
) -> None:
    """Open the key and serve until the process is told to end. `ready` gets one line when the socket listens."""
    protect_process()
    _check_folder(folder)
    definition, policy = read_policy(folder / POLICY)
    journal = SigningJournal(folder / JOURNAL)
    try:
        key = open_keystore(folder / KEYSTORE, read_secret("passphrase", passphrase_fd))
        handler = RequestHandler(key, definition.open(policy), journal, now)
        _check_scheme(folder / KEYSTORE, handler.address, definition.name)
        path = socket_path or folder / SOCKET
        asyncio.run(_serve(handler, path, ready))
    finally:
        journal.close()


def _check_scheme(path: Path, address: str, scheme: str) -> None:
    """Refuse a keystore that names another address than its key has under a scheme."""
    if address != keystore_address(path):
        raise UserError(
            f"{path} holds a key of another scheme than {scheme}",
            "each scheme needs a folder of its own: `pitboss signer init --scheme`",
        )


def _check_folder(folder: Path) -> None:
    if folder.stat().st_mode & 0o077:
        raise UserError(f"{folder} is open to other users", f"run: chmod 700 {folder}")


async def _serve(handler: RequestHandler, path: Path, ready: Callable[[str], object]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving_signer(handler, path):
        ready(f"signing for {handler.address} on {path}")
        await stop.wait()


def describe_files(folder: Path, now: Instant) -> dict[str, Any]:
    """Address, policy, use of the day and halts, without opening the key."""
    definition, policy = read_policy(folder / POLICY)
    scheme = definition.open(policy)
    journal = SigningJournal(folder / JOURNAL)
    try:
        journal.make_tables(scheme.tables)
        facts = scheme.show(journal, now)
        halts = [
            {"at": halt.at, "reason": halt.reason, "request_id": halt.request_id}
            | {"lifted_at": halt.lifted_at, "lift_reason": halt.lift_reason}
            for halt in journal.halts()
        ]
    finally:
        journal.close()
    return {"address": keystore_address(folder / KEYSTORE), "scheme": definition.name, **facts, "halts": halts}


def lift_halts(folder: Path, reason: str, passphrase_fd: int | None, now: Instant) -> int:
    """Lift every halt; the passphrase of the key is needed. Return how many there were."""
    protect_process()
    _check_folder(folder)
    read_policy(folder / POLICY)
    open_keystore(folder / KEYSTORE, read_secret("passphrase", passphrase_fd))
    journal = SigningJournal(folder / JOURNAL)
    try:
        return journal.lift(reason, now)
    finally:
        journal.close()


def printed(value: object) -> str:
    """JSON text for a terminal."""
    return json.dumps(value, indent=2) + "\n"
