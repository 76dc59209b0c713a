"""An event loop in virtual time: time advances only while all tasks wait, so that sleeps take no real time.

A loop whose tasks all wait without a timer raises an error: a deadlock.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from pitboss.models.lane import Lane

T = TypeVar("T")

START_MS = 1_790_000_000_000
"""An instant in 2026, because some rate limits are given in absolute times."""


class _Selector(selectors.SelectSelector):
    passed = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise AssertionError("deadlock: all tasks wait and no timer is set")
        self.passed += max(timeout, 1e-6)  # a smaller step could be lost in rounding
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with instant sleeps in the right order."""

    def __init__(self) -> None:
        self.selector = _Selector()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.passed


def now_ms() -> int:
    """The loop's own time as an instant."""
    return START_MS + round(asyncio.get_running_loop().time() * 1000)


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def virtual_lane(**limits: int) -> Lane:
    """A lane of the rate limiter whose clock is that of the loop."""
    return Lane("api.example.com", now_ms, asyncio.sleep, **limits)
