"""Looking on while a run works: a bar on standard error, Ctrl-C, and a cancel that came from another process.

The first Ctrl-C asks the run to stop at the next tick, with everything done so far kept; the second stops the program
at once, and still loses nothing that was committed.
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
"""How often the database is asked whether somebody cancelled the run."""

LEAST_STEP = 0.002
"""A smaller step of the bar would not be seen, and a quick run makes very many of them."""


class StopRequest:
    """Whether the run is to stop, and who asked."""

    def __init__(self, cancelled: Callable[[str], bool]) -> None:
        self.run_id = ""
        self.interrupted = False
        self.cancelled = False
        self._ask = cancelled
        self._asked_s = stopwatch()

    def began(self, run_id: str) -> None:
        """From now on this run may be cancelled from outside."""
        self.run_id = run_id

    def asked(self) -> bool:
        """Made to be called at every tick: the database is asked only now and then."""
        if self.interrupted or self.cancelled:
            return True
        if self.run_id and stopwatch() - self._asked_s >= POLL_S:
            self.cancelled = self._ask(self.run_id)
            self._asked_s = stopwatch()
        return self.cancelled

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """The handler of Ctrl-C. It only leaves a mark, so it can come at any moment."""
        del number, frame
        self.interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def watching(label: str, cancelled: Callable[[str], bool]) -> Iterator[tuple[Watch, StopRequest]]:
    """A watch with a bar, if there is somebody to see it, and with Ctrl-C caught."""
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
