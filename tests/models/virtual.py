"""An event loop whose time passes only while everybody waits, so that an hour of waiting takes no time at all.

A loop in which everybody waits for nothing that could ever come is reported as what it is: a deadlock.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

START_MS = 1_790_000_000_000
"""Some instant of 2026: limits are told in absolute times too."""


class _Selector(selectors.SelectSelector):
    passed = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise AssertionError("deadlock: everybody waits and nothing is due")
        self.passed += max(timeout, 1e-6)  # less than the clock can tell would never pass
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Sleeps are instant, and in the right order."""

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
