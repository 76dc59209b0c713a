"""Packages of npm for tests and checks, installed once into a directory outside the repository."""

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

LONGEST_S = 240


class NotInstalled(Exception):
    """Packages are not there and cannot be had; the message says why."""


def installed(*packages: str) -> Path:
    """The `node_modules` with these packages in it. Of several processes that ask at once one installs."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise NotInstalled("node and npm are not on this machine")
    folder = Path(os.environ.get("TEST_PACKAGES_DIR") or tempfile.gettempdir()) / "pitboss-tests-npm"
    key = json.dumps(sorted(packages))
    home = folder / "".join(letter if letter.isalnum() else "-" for letter in key).strip("-")
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = home / "done"
        if not done.exists():
            command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(home), *packages]
            try:
                subprocess.run(command, check=True, capture_output=True, timeout=LONGEST_S)
            except (subprocess.SubprocessError, OSError):
                raise NotInstalled(f"npm could not install {', '.join(packages)}") from None
            done.touch()
    return home / "node_modules"
