"""The process that works on a live run of any venue: it excludes other processes, and stops on a signal or a cancel.

A file lock, which the system releases when the process ends, marks the run as being worked on. Signals and a cancel
requested by another process set a flag that the runner checks between two steps.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from pitboss.bootstrap.machine import stopwatch
from pitboss.core.errors import UserError
from pitboss.core.instant import SECOND_MS

POLL_S = 2.0
"""How often the database is checked for a cancel request."""

BEAT_S = 60.0
"""How often a heartbeat is written: an hour may lie between two ticks."""

StopCause = Literal["complete", "interrupted", "terminated", "cancelled"]
"""Why a process stopped working on a run."""


@contextmanager
def exclusive_run(home: Path, run_id: str) -> Iterator[None]:
    """Hold the lock of a run, so that no other process of this machine works on it."""
    folder = home / "live"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder / f"{run_id}.lock", mode=0o600, blocking=False, fallback_to_soft=False).acquire()
    except Timeout:
        raise UserError(
            f"run {run_id} of this skill is being worked on by another process",
            "stop that one first, or begin another with --new",
        ) from None
    with lock:
        yield


class SignalStop:
    """A stop requested by a signal. The second Ctrl-C does not wait for the current tick."""

    def __init__(self) -> None:
        self.cause: StopCause | None = None
        self._requested = asyncio.Event()
        self._task = asyncio.current_task()

    @property
    def requested(self) -> bool:
        """Whether a signal has arrived."""
        return self.cause is not None

    def handle(self, cause: StopCause) -> None:
        """The handler of a signal."""
        if self.cause is not None and cause == "interrupted" and self._task is not None:
            self._task.cancel()
        self.cause = self.cause or cause
        self._requested.set()

    async def pause(self, wait_ms: int) -> None:
        """Wait for so long, or until a stop is requested."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_ms / SECOND_MS):
                await self._requested.wait()


@asynccontextmanager
async def stop_signals() -> AsyncIterator[SignalStop]:
    """Catch SIGINT and SIGTERM inside a block."""
    stop, loop = SignalStop(), asyncio.get_running_loop()
    signals: dict[signal.Signals, StopCause] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
    handled: list[signal.Signals] = []
    for number, cause in signals.items():
        with suppress(ValueError, RuntimeError, NotImplementedError):  # only the main thread may catch signals
            loop.add_signal_handler(number, stop.handle, cause)
            handled.append(number)
    try:
        yield stop
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


class CancelPoll:
    """Whether another process requested a cancel. Reads the database, and writes a heartbeat to it, at intervals only."""

    def __init__(self, is_requested: Callable[[], bool], beat: Callable[[], None] = lambda: None) -> None:
        self.requested = False
        self._is_requested = is_requested
        self._beat = beat
        self._polled_s = self._beat_s = stopwatch()

    def __call__(self) -> bool:
        now_s = stopwatch()
        if not self.requested and now_s - self._polled_s >= POLL_S:
            self.requested = self._is_requested()
            self._polled_s = now_s
        if now_s - self._beat_s >= BEAT_S:
            self._beat()
            self._beat_s = now_s
        return self.requested
