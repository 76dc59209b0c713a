"""Files of the signing process belong to its user alone."""

import os
import stat
from pathlib import Path

from pitboss.core.errors import UserError


def check_private(path: Path, write_only: bool = False) -> None:
    """Refuse a file that another user owns, can change or, unless `write_only`, can read."""
    try:
        status = path.stat()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", "`pitboss signer init` makes the files") from None
    forbidden_bits = stat.S_IWGRP | stat.S_IWOTH if write_only else stat.S_IRWXG | stat.S_IRWXO
    if status.st_uid != os.getuid():
        hint = f"run the signer as the user with the id {status.st_uid}, or give that file to its user"
        raise UserError(f"{path} belongs to another user", hint)
    if status.st_mode & forbidden_bits:
        mode = "go-w" if write_only else "go-rwx"
        raise UserError(f"{path} is open to other users", f"run: chmod {mode} {path}")
