"""`python -m pitboss.signer`: the signing process as a program of its own, with nothing of pitboss but this package and `core`.

`pitboss signer` takes the same words and starts it.
"""

import argparse
import sys
import time
from pathlib import Path

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.signer.installed_schemes import FIRST_SCHEME, installed_schemes
from pitboss.signer.program import describe_files, lift_halts, make_files, printed, serve
from pitboss.signer.scheme_definition import PolicyAnswers


def _now() -> Instant:
    return time.time_ns() // 1_000_000


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pitboss.signer",
        description="Holds a key and signs what its policy allows. For example: python -m pitboss.signer run --folder signer",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("init", "make the key and an example policy"),
        ("run", "serve"),
        ("show", "show what it holds"),
        ("lift", "lift a halt"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--folder", type=Path, required=True)
        if name != "show":
            command.add_argument("--passphrase-fd", type=int, help="read the passphrase from this file descriptor")
        if name == "lift":
            command.add_argument("--reason", required=True, help="why the halt may be lifted; it is recorded")
        if name == "init":
            command.add_argument(
                "--scheme", choices=sorted(installed_schemes()), default=FIRST_SCHEME, help="what it signs"
            )
            command.add_argument(
                "--account", default="", help="the account that the key acts for, where a scheme needs it"
            )
            command.add_argument("--network", choices=("mainnet", "testnet"), default="testnet")
            command.add_argument("--reduce-only", action="store_true", help="sign nothing that opens a position")
            command.add_argument("--import-key", action="store_true", help="take a key instead of making one")
            command.add_argument("--key-fd", type=int, help="read that key from this file descriptor")
        if name == "run":
            command.add_argument("--socket", type=Path, help="where to listen; by default in the folder")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 2 for an error that the user can fix."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "init":
            address = make_files(
                options.folder,
                options.passphrase_fd,
                options.key_fd,
                options.import_key,
                scheme=options.scheme,
                answers=PolicyAnswers(options.account, options.network, options.reduce_only),
            )
            sys.stdout.write(f"the key of {address} is in {options.folder}; edit policy.toml there before `run`\n")
        elif options.command == "run":
            serve(options.folder, options.socket, options.passphrase_fd, _now, _say)
        elif options.command == "lift":
            count = lift_halts(options.folder, options.reason, options.passphrase_fd, _now())
            sys.stdout.write(f"lifted {count} halt{'' if count == 1 else 's'}\n" if count else "it was not halted\n")
        else:
            sys.stdout.write(printed(describe_files(options.folder, _now())))
    except UserError as error:
        sys.stderr.write(f"error: {error.message}\n" + (f"hint: {error.hint}\n" if error.hint else ""))
        return 2
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        sys.stderr.write(f"error: {error.filename or options.folder}: {error.strerror or error}\n")
        return 1
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
