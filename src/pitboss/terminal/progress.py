"""Progress bars on standard error, and stopping a run by Ctrl-C or by a cancel request from another process.

The first Ctrl-C requests a stop at the next tick and keeps everything done so far; the second stops the program at once
and loses nothing that was committed.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from pitboss.bootstrap.machine import stopwatch
from pitboss.sim.watch import Watch
from pitboss.terminal import screen

POLL_S = 0.5
"""How often the database is checked for a cancel request."""

MIN_STEP = 0.002
"""Least progress before the bar is redrawn: smaller steps are invisible, and a fast run makes many of them."""


class StopRequest:
    """Whether the run is to stop, and what requested it."""

    def __init__(self, cancelled: Callable[[str], bool]) -> None:
        self.run_id = ""
        self.interrupted = False
        self.cancelled = False
        self._read_cancelled = cancelled
        self._polled_s = stopwatch()

    def set_run(self, run_id: str) -> None:
        """Start checking for a cancel of this run."""
        self.run_id = run_id

    def is_requested(self) -> bool:
        """Whether to stop. Cheap enough for every tick: the database is read only every `POLL_S` seconds."""
        if self.interrupted or self.cancelled:
            return True
        if self.run_id and stopwatch() - self._polled_s >= POLL_S:
            self.cancelled = self._read_cancelled(self.run_id)
            self._polled_s = stopwatch()
        return self.cancelled

    def interrupt(self) -> None:
        """Request a stop because of Ctrl-C."""
        self.interrupted = True


class ProgressUpdate(Protocol):
    """Updates a progress bar: the share that is done, and a text after the label."""

    def __call__(self, share: float, text: str = "") -> None: ...


@contextmanager
def watching(label: str, cancelled: Callable[[str], bool]) -> Iterator[tuple[Watch, StopRequest]]:
    """Provide a watch inside a block, with a progress bar if standard error is a terminal, and catch Ctrl-C."""
    stop = StopRequest(cancelled)
    with catching_interrupt(stop.interrupt), progress_bar(label) as bar:
        cost_text = ""

        def set_cost(text: str) -> None:
            nonlocal cost_text
            cost_text = text

        yield Watch(lambda share: bar(share, cost_text), stop.is_requested, screen.note, set_cost), stop


@contextmanager
def catching_interrupt(on_interrupt: Callable[[], None]) -> Iterator[None]:
    """Call a function at the first Ctrl-C inside a block; the second raises `KeyboardInterrupt`.

    The function may run at any moment, so it must only set a flag.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may catch signals
        return

    def handle(number: int, frame: FrameType | None) -> None:
        del number, frame
        on_interrupt()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    previous = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def progress_bar(label: str) -> Iterator[ProgressUpdate]:
    """Show a progress bar inside a block if standard error is a terminal."""
    if not screen.ERR.is_terminal:
        yield lambda share, text="": None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=screen.ERR, transient=True) as progress:
        task = progress.add_task(label, total=1.0)
        drawn = 0.0, ""

        def update(share: float, text: str = "") -> None:
            nonlocal drawn
            if share - drawn[0] >= MIN_STEP or share >= 1.0 or text != drawn[1]:
                drawn = share, text
                progress.update(task, completed=share, description=f"{label}: {text}" if text else label)

        yield update
