"""Progress of a run: a bar on standard error, and stopping by Ctrl-C or by a cancel from another process.

The first Ctrl-C requests a stop at the next tick, with everything done so far kept; the second stops the program at
once and still loses nothing that was committed.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from pitboss.bootstrap.machine import stopwatch
from pitboss.sim.watch import Watch
from pitboss.terminal import screen

POLL_S = 0.5
"""How often the database is checked for a cancel request."""

LEAST_STEP = 0.002
"""Least progress before the bar is redrawn: smaller steps are invisible, and a fast run makes many of them."""


class StopRequest:
    """Whether the run is to stop, and what requested it."""

    def __init__(self, cancelled: Callable[[str], bool]) -> None:
        self.run_id = ""
        self.interrupted = False
        self.cancelled = False
        self._ask = cancelled
        self._asked_s = stopwatch()

    def began(self, run_id: str) -> None:
        """Start checking for a cancel of this run."""
        self.run_id = run_id

    def asked(self) -> bool:
        """Whether to stop. Cheap enough for every tick: the database is read only every `POLL_S` seconds."""
        if self.interrupted or self.cancelled:
            return True
        if self.run_id and stopwatch() - self._asked_s >= POLL_S:
            self.cancelled = self._ask(self.run_id)
            self._asked_s = stopwatch()
        return self.cancelled

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """The handler of Ctrl-C. It only sets a flag, so it may run at any moment."""
        del number, frame
        self.interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def watching(label: str, cancelled: Callable[[str], bool]) -> Iterator[tuple[Watch, StopRequest]]:
    """Provide a watch inside a block, with a progress bar if standard error is a terminal, and catch Ctrl-C."""
    stop = StopRequest(cancelled)
    with _catching(stop), _bar(label) as progress:
        yield Watch(progress, stop.asked, screen.note), stop


@contextmanager
def _catching(stop: StopRequest) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may catch signals
        return
    before = signal.signal(signal.SIGINT, stop.interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _bar(label: str) -> Iterator[Callable[[float], None]]:
    if not screen.ERR.is_terminal:
        yield lambda done: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=screen.ERR, transient=True) as progress:
        task = progress.add_task(label, total=1.0)
        shown = 0.0

        def show(done: float) -> None:
            nonlocal shown
            if done - shown >= LEAST_STEP or done >= 1.0:
                shown = done
                progress.update(task, completed=done)

        yield show
