"""The virtual environments of the peers: one each, created by the suite and reused by the next run.

They are separate because some peers have licences that must not mix with our dependencies, and because their pinned
versions must not constrain ours.
"""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

REQUIREMENTS = {"backtesting": "backtesting", "vectorbt": "vectorbt", "backtrader": "backtrader pandas numpy"}
"""What is installed for each peer."""

INSTALL_S = 600
DEFAULT_FOLDER = Path(__file__).resolve().parents[4] / ".bench-venv"
"""In the root of the repository."""


@dataclass(frozen=True, slots=True)
class UnavailablePeer:
    """A peer that cannot be measured on this machine, with the reason."""

    peer: str
    reason: str


def install(peer: str, folder: Path, progress: Callable[[str], None]) -> Path | UnavailablePeer:
    """The interpreter of a peer's environment, which is created if needed."""
    home = folder / peer
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    marker = home / "installed"
    if marker.is_file() and python.exists():
        return python
    progress(f"installing {peer} into {home} (once)")
    requirements = REQUIREMENTS[peer].split()
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(home)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements],
        [str(python), "-c", f"import {peer}"],
    ):
        problem = _run(command)
        if problem:
            return UnavailablePeer(peer, f"{peer} does not install here: {problem}")
    marker.write_text("complete\n", encoding="utf-8")
    return python


def _run(command: list[str]) -> str:
    """Empty on success, else the last line of the output that names an error."""
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if process.returncode == 0:
        return ""
    lines = [line.strip() for line in (process.stderr or process.stdout).splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or [f"exit {process.returncode}"])[-1][:300]
