"""Looking on while a study works: a table on standard error that is drawn anew, and Ctrl-C.

The first Ctrl-C asks every run to stop at its next tick, the second one stops the program. Where nobody sees a table, a line
is said now and then.
"""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pitboss.bootstrap.machine import stopwatch
from pitboss.bootstrap.workspace import Workspace
from pitboss.cli import screen
from pitboss.jobs.plan import Member, words_of
from pitboss.jobs.study import Onlooker
from pitboss.sim.study.choice import figure

MOST_WORKING, MOST_BEST = 8, 5
BAR = 60
LINE_S = 20.0
"""How often a line is said where there is no table."""


class Scoreboard:
    """What is known of a study while it works: how far each run is, and the best so far."""

    def __init__(self, workspace: Workspace, label: str, by: str) -> None:
        self.interrupted = False
        self._workspace, self._label, self._by = workspace, label, by
        self._members: dict[str, Member] = {}
        self._status: dict[str, tuple[str, float]] = {}
        self._scores: dict[str, float | None] = {}
        self._said_s = stopwatch()

    def onlooker(self) -> Onlooker:
        """For the study to talk to."""
        return Onlooker(self.began, self.moved, screen.note, lambda: self.interrupted)

    def began(self, wanted: Sequence[Member], ids: Sequence[str]) -> None:
        """These runs are wanted."""
        self._members |= dict(zip(ids, wanted, strict=True))

    def moved(self, run_id: str, status: str, done: float) -> None:
        """One run has come so far."""
        self._status[run_id] = status, done
        if status == "complete" and run_id not in self._scores:
            metrics = self._workspace.runs.get(run_id).metrics or {}
            self._scores[run_id] = figure(metrics, self._by)
        if not screen.ERR.is_terminal and stopwatch() - self._said_s >= LINE_S:
            self._said_s = stopwatch()
            screen.note(self._line())

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """The handler of Ctrl-C. It only leaves a mark, so it can come at any moment."""
        del number, frame
        self.interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def _line(self) -> str:
        counts: dict[str, int] = {}
        for status, _ in self._status.copy().values():
            counts[status] = counts.get(status, 0) + 1
        told = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        return f"{self._label}: {len(self._members)} runs, {told or 'none begun'}"

    def __rich__(self) -> Group:
        """The table as it is now."""
        now = self._status.copy()
        whole = len(self._members) or 1
        done = sum(1.0 if status == "complete" else share for status, share in now.values())
        table = Table(box=None, show_edge=False, pad_edge=False, header_style="bold")
        for heading in ("run", "point", "repeat", "state", self._by):
            table.add_column(heading, justify="right" if heading == self._by else "left", no_wrap=True)
        working = [(run_id, *now[run_id]) for run_id in now if now[run_id][0] in ("loading", "running")]
        scored = [(run_id, value) for run_id, value in self._scores.copy().items() if value is not None]
        best = sorted(scored, key=lambda one: -one[1])[:MOST_BEST]
        for run_id, status, share in working[:MOST_WORKING]:
            table.add_row(*self._cells(run_id), f"{status} {share:.0%}", "")
        for run_id, value in best:
            table.add_row(*self._cells(run_id), "complete", f"{value:,.3f}", style="green")
        filled = int(BAR * done / whole)
        bar = Text.assemble(("━" * filled, "green"), ("━" * (BAR - filled), "dim"), f" {done / whole:.0%}")
        return Group(Text(self._line()), bar, table)

    def _cells(self, run_id: str) -> tuple[str, str, str]:
        member = self._members.get(run_id)
        if member is None:
            return run_id, "", ""
        place = "" if member.trial.window is None else f"window {member.trial.window + 1}: "
        return run_id, place + words_of(dict(member.trial.point)), str(member.repeat + 1)


@contextmanager
def following(workspace: Workspace, label: str, by: str) -> Iterator[Scoreboard]:
    """A scoreboard that is shown, if there is somebody to see it, and with Ctrl-C caught."""
    board = Scoreboard(workspace, label, by)
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, board.interrupt) if main else None
    try:
        if screen.ERR.is_terminal:
            with Live(board, console=screen.ERR, refresh_per_second=4, transient=True):
                yield board
        else:
            yield board
    finally:
        if main:
            signal.signal(signal.SIGINT, before)
