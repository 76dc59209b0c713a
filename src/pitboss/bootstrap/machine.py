"""The machine's clock and source of new ids, behind the ports everything else uses."""

import os
import random
import secrets
import time
from collections.abc import Callable, Mapping

from pitboss.core.instant import Instant


class SystemClock:
    """The wall clock."""

    def now(self) -> Instant:
        """Milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000


def new_id() -> str:
    """A fresh id: twelve characters, easy to type the start of."""
    return secrets.token_hex(6)


def unit_random() -> Callable[[], float]:
    """Random numbers from 0 to 1 that no seed determines, for the jitter of retries."""
    return random.SystemRandom().random


def stopwatch() -> float:
    """Seconds that only go forward, for measuring how long something took."""
    return time.perf_counter()


def environment(name: str) -> str | None:
    """One variable of the environment, or what was lent to this process under its name."""
    return os.environ.get(name) or _LENT.get(name)


_LENT: dict[str, str] = {}


def lend(values: Mapping[str, str]) -> None:
    """Take what somebody else has in his environment, for this process alone: nothing that it starts inherits it."""
    _LENT.update(values)


def lent() -> dict[str, str]:
    """What this process was lent."""
    return dict(_LENT)
