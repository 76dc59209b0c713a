"""Packages of npm for the tests, installed once into a directory outside the repository. Skips where that is impossible."""

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("TEST_PACKAGES_DIR") or tempfile.gettempdir()) / "pitboss-tests-npm"
EVERYTHING = "@modelcontextprotocol/server-everything@2026.8.31"
CONFORMANCE = "@modelcontextprotocol/conformance@0.1.16"
NODE = "node@22"
"""The suite needs a newer Node than many machines have; npm has it as a package."""


def installed(*packages: str) -> Path:
    """The `node_modules` with these packages in it. Only one process of a test run installs."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not on this machine")
    key = json.dumps(sorted(packages))
    home = FOLDER / "".join(letter if letter.isalnum() else "-" for letter in key).strip("-")
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = home / "done"
        if not done.exists():
            command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(home), *packages]
            try:
                subprocess.run(command, check=True, capture_output=True, timeout=240)
            except (subprocess.SubprocessError, OSError):
                pytest.skip(f"npm could not install {', '.join(packages)}")
            done.touch()
    return home / "node_modules"
