"""What the program of the signing process does: make its files, serve, and show what it holds. No command prints a key."""

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eth_account import Account

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.signer.evm_transaction import EvmScheme, address_of
from pitboss.signer.journal import SigningJournal
from pitboss.signer.keystore import (
    SCRYPT_N,
    create_keystore,
    key_of_text,
    keystore_address,
    open_keystore,
    read_secret,
)
from pitboss.signer.policy import read_policy
from pitboss.signer.process_protection import protect_process
from pitboss.signer.protocol import SOCKET
from pitboss.signer.request_handler import RequestHandler
from pitboss.signer.server import serving_signer

KEYSTORE, POLICY, JOURNAL = "keystore.json", "policy.toml", "journal.db"
EXAMPLE_POLICY = """\
# What this signer may sign. It is read once, when the signer starts. Amounts are in wei.
version = 1
scheme = "evm_transaction"
chain_id = 11155111                              # Sepolia

[caps]
value_wei = 10_000_000_000_000_000               # of one transaction: 0.01 ether
gas = 500_000
max_fee_per_gas_wei = 100_000_000_000            # 100 gwei
max_priority_fee_per_gas_wei = 5_000_000_000     # 5 gwei
spend_per_day_wei = 100_000_000_000_000_000      # value and fees of a UTC day: 0.1 ether
transactions_per_day = 50
replacements = 10                                # of one transaction, each with higher fees

[[contracts]]
address = "0x0000000000000000000000000000000000000000"
functions = ["deposit()", "withdraw(uint256)"]   # full signatures; nothing else can be called
payable = ["deposit()"]                          # only these may be sent value
"""


def make_files(
    folder: Path, passphrase_fd: int | None, key_fd: int | None, import_key: bool, scrypt_n: int = SCRYPT_N
) -> str:
    """Make the keystore with a new or a given key and an example policy. Return the address."""
    protect_process()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_folder(folder)
    if (folder / KEYSTORE).exists():
        raise UserError(f"{folder / KEYSTORE} exists", "a keystore is never replaced; choose another --folder")
    is_given = import_key or key_fd is not None
    key = key_of_text(read_secret("key", key_fd)) if is_given else bytes(Account.create().key)
    passphrase = read_secret("passphrase", passphrase_fd)
    if passphrase_fd is None and read_secret("passphrase again", None) != passphrase:
        raise UserError("the passphrases differ", "type the same one twice")
    create_keystore(folder / KEYSTORE, key, passphrase, scrypt_n)
    if not (folder / POLICY).exists():
        (folder / POLICY).write_text(EXAMPLE_POLICY, "utf-8")
        (folder / POLICY).chmod(0o600)
    return address_of(key)


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
    scheme = EvmScheme(read_policy(folder / POLICY))
    journal = SigningJournal(folder / JOURNAL)
    try:
        handler = RequestHandler(
            open_keystore(folder / KEYSTORE, read_secret("passphrase", passphrase_fd)), scheme, journal, now
        )
        path = socket_path or folder / SOCKET
        asyncio.run(_serve(handler, path, ready))
    finally:
        journal.close()


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
    """Address, policy and use of the day, without opening the key."""
    policy = read_policy(folder / POLICY)
    journal = SigningJournal(folder / JOURNAL)
    try:
        use = journal.use_of_day(now)
        recent = [
            {"request_id": request_id, "slot": slot, "number": number, "hash": tx_hash}
            for request_id, slot, number, tx_hash in journal.recent(20)
        ]
    finally:
        journal.close()
    return {
        "address": keystore_address(folder / KEYSTORE),
        "chain_id": policy.chain_id,
        "caps": policy.caps.model_dump(),
        "contracts": [contract.model_dump() for contract in policy.contracts],
        "today": {"spend_wei": use.spend_wei, "transactions": use.count},
        "recent": recent,
    }


def printed(value: object) -> str:
    """JSON text for a terminal."""
    return json.dumps(value, indent=2) + "\n"
