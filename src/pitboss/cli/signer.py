"""`pitboss signer …`: the process that holds a key. These commands start `python -m pitboss.signer`, which imports little else."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from pitboss.terminal.workspace_options import Location

app = App(name="signer", help="Hold a key in a process of its own, which signs only what its policy file allows.")

Folder = Annotated[Path | None, Parameter(name="--folder")]
PassphraseFd = Annotated[int | None, Parameter(name="--passphrase-fd")]


@app.command
def init(
    *,
    folder: Folder = None,
    scheme: Literal["evm_transaction", "hyperliquid_action", "sui_transaction"] = "evm_transaction",
    account: str | None = None,
    network: Literal["mainnet", "testnet"] | None = None,
    reduce_only: bool = False,
    import_key: bool = False,
    key_fd: int | None = None,
    passphrase_fd: PassphraseFd = None,
    location: Location,
) -> int:
    """Make an encrypted key and an example policy. The key and its passphrase are never arguments.

    For example:

        pitboss signer init
        pitboss signer init --scheme hyperliquid_action --account 0x…
        pitboss signer init --scheme hyperliquid_action --account 0x… --reduce-only --folder .pitboss/watchdog

    Parameters
    ----------
    folder
        Where the files are kept; `signer` in the workspace if left out.
    scheme
        What it will sign: transactions of Ethereum, actions of Hyperliquid, or transactions of Sui.
    account
        For hyperliquid_action: the address of the master account. Its own key is refused.
    network
        Network of the example policy; testnet if left out.
    reduce_only
        For hyperliquid_action: sign reduce-only orders and cancels alone, as the key of a watchdog needs.
    import_key
        Take a key from a hidden prompt instead of making a new one.
    key_fd
        Take the key from this file descriptor.
    passphrase_fd
        Read the passphrase from this file descriptor instead of the terminal.
    """
    return _start(
        "init",
        folder,
        location,
        scheme=scheme,
        account=account,
        network=network,
        reduce_only=reduce_only,
        import_key=import_key,
        key_fd=key_fd,
        passphrase_fd=passphrase_fd,
    )


@app.command
def run(
    *, folder: Folder = None, socket: Path | None = None, passphrase_fd: PassphraseFd = None, location: Location
) -> int:
    """Open the key and sign for processes of this user until it is stopped.

    For example:

        pitboss signer run

    Parameters
    ----------
    folder
        Where the files are kept; `signer` in the workspace if left out.
    socket
        Where to listen; `signer.sock` in the folder if left out.
    passphrase_fd
        Read the passphrase from this file descriptor instead of the terminal.
    """
    return _start("run", folder, location, socket=socket, passphrase_fd=passphrase_fd)


@app.command
def show(*, folder: Folder = None, location: Location) -> int:
    """Show the address, the policy, what is used of the caps, the latest signatures and the halts, as JSON. Never the key.

    For example:

        pitboss signer show

    Parameters
    ----------
    folder
        Where the files are kept; `signer` in the workspace if left out.
    """
    return _start("show", folder, location)


@app.command
def lift(*, reason: str, folder: Folder = None, passphrase_fd: PassphraseFd = None, location: Location) -> int:
    """Lift the halt of a signer, with a reason that is recorded. It asks for the passphrase; the signer may be running.

    For example:

        pitboss signer lift --reason "the broker sent a stale verdict; fixed in 1.4.2"

    Parameters
    ----------
    reason
        Why it may sign again.
    folder
        Where the files are kept; `signer` in the workspace if left out.
    passphrase_fd
        Read the passphrase from this file descriptor instead of the terminal.
    """
    return _start("lift", folder, location, reason=reason, passphrase_fd=passphrase_fd)


def _start(command: str, folder: Path | None, location: Location, **options: object) -> int:
    """Become the program of the signer: the key is never in a process with the rest of pitboss."""
    words = [command, "--folder", str(folder or location.settings().home / "signer")]
    for name, value in options.items():
        if value is True:
            words.append("--" + name.replace("_", "-"))
        elif value is not None and value is not False:
            words += ["--" + name.replace("_", "-"), str(value)]
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.execv(sys.executable, [sys.executable, "-m", "pitboss.signer", *words])
