"""The machine's clock, environment and source of ids, behind the ports that everything else uses."""

import os
import random
import secrets
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import which

from pitboss.core.instant import Instant


class SystemClock:
    """The wall clock."""

    def now(self) -> Instant:
        """Milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000


def new_id() -> str:
    """A new random id: twelve characters, usually unique by its first few."""
    return secrets.token_hex(6)


def random_hex(size: int) -> str:
    """`size` unpredictable bytes in hex, for tokens and nonces."""
    return secrets.token_hex(size)


def unit_random() -> Callable[[], float]:
    """Unseeded random numbers from 0 to 1, for the jitter of retries."""
    return random.SystemRandom().random


def stopwatch() -> float:
    """Monotonic seconds, for measuring durations."""
    return time.perf_counter()


SWITCH_S = 0.0005
"""How long a thread that computes may keep another waiting. Python's own 5 ms are waited again after every read and every hash."""


def let_threads_alternate() -> None:
    """Let the threads of this process take turns more often: for processes in which some threads compute and others answer."""
    sys.setswitchinterval(SWITCH_S)


def open_in_browser(path: Path) -> bool:
    """Open a file in the user's browser; whether there is one."""
    import webbrowser

    return webbrowser.open(path.absolute().as_uri())


def program_name() -> str:
    """How this program is called from a shell in the current folder: `pitboss` if the shell finds this one, else its path."""
    typed = Path(sys.argv[0])
    if typed.name == "__main__.py":
        typed = Path(sys.executable).with_name("pitboss")
    if typed.name != "pitboss" or not typed.is_file():
        return "pitboss"
    installed = which("pitboss")
    if installed is not None and Path(installed).samefile(typed):
        return "pitboss"
    path, here = typed.absolute(), Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


def environment(name: str) -> str | None:
    """An environment variable, or the credential lent to this process under that name."""
    return os.environ.get(name) or _LENT.get(name)


_LENT: dict[str, str] = {}


def lend(values: Mapping[str, str]) -> None:
    """Accept credentials lent by another process.

    They stay in this process: its child processes do not inherit them.
    """
    _LENT.update(values)


def lent_credentials() -> dict[str, str]:
    """The credentials lent to this process."""
    return dict(_LENT)
