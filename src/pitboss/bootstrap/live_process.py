"""The process that works on a live run, whatever its venue: alone at it, and stopped by whoever may.

A lock that the system releases with the process, whatever ends it, says who is at work; signals and a cancel that came from
another process ask for a stop, which the runner heeds between two steps.
"""

import asyncio
import fcntl
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Literal

from pitboss.bootstrap.machine import stopwatch
from pitboss.core.errors import UserError
from pitboss.core.instant import SECOND_MS

POLL_S = 2.0
"""How often the database is asked whether somebody cancelled the run."""

BEAT_S = 60.0
"""How often the run is told that somebody is at work: an hour may lie between two ticks."""

How = Literal["complete", "interrupted", "terminated", "cancelled"]
"""How a process came to be done with a run."""


@contextmanager
def alone(home: Path, run_id: str) -> Iterator[None]:
    """Be the only process of this machine that works on a run. The system lets go of the lock whatever ends us."""
    folder = home / "live"
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / f"{run_id}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(
                f"run {run_id} of this skill is being worked on by another process",
                "stop that one first, or begin another with --new",
            ) from None
        yield
    finally:
        os.close(handle)


class SignalStop:
    """A stop that was asked for by a signal. The second Ctrl-C does not wait for the tick in hand."""

    def __init__(self) -> None:
        self.how: How | None = None
        self._asked = asyncio.Event()
        self._task = asyncio.current_task()

    @property
    def asked(self) -> bool:
        """Whether somebody has asked."""
        return self.how is not None

    def signalled(self, how: How) -> None:
        """The handler of a signal."""
        if self.how is not None and how == "interrupted" and self._task is not None:
            self._task.cancel()
        self.how = self.how or how
        self._asked.set()

    async def pause(self, wait_ms: int) -> None:
        """Wait, but not past a stop."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_ms / SECOND_MS):
                await self._asked.wait()


@asynccontextmanager
async def stopping() -> AsyncIterator[SignalStop]:
    """Catch SIGINT and SIGTERM for the length of a block."""
    stop, loop = SignalStop(), asyncio.get_running_loop()
    signals: dict[signal.Signals, How] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
    caught: list[signal.Signals] = []
    for number, how in signals.items():
        with suppress(ValueError, RuntimeError, NotImplementedError):  # only the main thread may catch signals
            loop.add_signal_handler(number, stop.signalled, how)
            caught.append(number)
    try:
        yield stop
    finally:
        for number in caught:
            loop.remove_signal_handler(number)


class Cancelled:
    """Whether another process asked for the run to stop; the database is asked, and told that we live, only now and then."""

    def __init__(self, ask: Callable[[], bool], beat: Callable[[], None] = lambda: None) -> None:
        self.seen = False
        self._ask = ask
        self._beat = beat
        self._asked_s = self._beaten_s = stopwatch()

    def __call__(self) -> bool:
        now_s = stopwatch()
        if not self.seen and now_s - self._asked_s >= POLL_S:
            self.seen = self._ask()
            self._asked_s = now_s
        if now_s - self._beaten_s >= BEAT_S:
            self._beat()
            self._beaten_s = now_s
        return self.seen
