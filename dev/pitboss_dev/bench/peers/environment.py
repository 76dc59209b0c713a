"""Environments of peers: one virtual environment each, made by the bench itself and used again the next time.

Separate on purpose. Some peers are under licences that we do not want anywhere near our own dependencies, and their
pinned versions must never decide ours.
"""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

REQUIREMENTS = {"backtesting": "backtesting", "vectorbt": "vectorbt", "backtrader": "backtrader pandas numpy"}
"""What is installed for each peer."""

INSTALL_S = 600
FOLDER = ".bench-venv"


@dataclass(frozen=True, slots=True)
class Missing:
    """A peer that cannot be measured here, and why."""

    peer: str
    reason: str


def default_folder() -> Path:
    """`.bench-venv` in the project, or in the user's cache where pitboss is installed without its sources."""
    root = Path(__file__).resolve().parents[4]
    return root / FOLDER if (root / "pyproject.toml").is_file() else Path.home() / ".cache" / "pitboss" / FOLDER


def prepare(peer: str, folder: Path, say: Callable[[str], None]) -> Path | Missing:
    """The interpreter of a peer's environment, which is made if needed."""
    home = folder / peer
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    done = home / "installed"
    if done.is_file() and python.exists():
        return python
    say(f"installing {peer} into {home} (once)")
    wanted = REQUIREMENTS[peer].split()
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(home)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted],
        [str(python), "-c", f"import {peer}"],
    ):
        problem = _run(command)
        if problem:
            return Missing(peer, f"{peer} does not install here: {problem}")
    done.write_text("complete\n", encoding="utf-8")
    return python


def _run(command: list[str]) -> str:
    """Empty if it worked, else the last line of what it said."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if ended.returncode == 0:
        return ""
    lines = [line.strip() for line in (ended.stderr or ended.stdout).splitlines() if line.strip()]
    wrong = [line for line in lines if "error" in line.lower()]
    return (wrong or lines or [f"exit {ended.returncode}"])[-1][:300]
