"""Progress of a study: a live table on standard error, and stopping by Ctrl-C.

The first Ctrl-C requests every run to stop at its next tick, the second stops the program. If standard error is not a
terminal, a line is printed now and then.
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
from pitboss.jobs.plan import PlannedRun
from pitboss.jobs.study import StudyObserver
from pitboss.report.meaning import Metric
from pitboss.report.measures import format_metric
from pitboss.sim.study.axis import describe_point
from pitboss.sim.study.choice import SMALLER_IS_BETTER, figure
from pitboss.store.lifecycle import ENDED
from pitboss.terminal import screen

MOST_WORKING, MOST_BEST = 8, 5
BAR = 60
LINE_S = 20.0
"""Seconds between two lines where there is no table."""
SURE = 0.02
"""Share that must be done before the remaining time is shown."""
ASIDE = ("complete", "running", "loading", "computing_metrics")
"""States with a count of their own in the line."""


class Scoreboard:
    """The progress of a study: how far each run is, and the best trial so far."""

    def __init__(self, workspace: Workspace, label: str, metric: Metric, by: str) -> None:
        self.interrupted = False
        self._workspace, self._label, self._by = workspace, label, by
        self._metric, self._less = metric, by in SMALLER_IS_BETTER
        self._members: dict[str, PlannedRun] = {}
        self._status: dict[str, tuple[str, float]] = {}
        self._scores: dict[str, float | None] = {}
        self._began_s = self._said_s = stopwatch()
        self._known: float | None = None

    def onlooker(self) -> StudyObserver:
        """The observer to pass to the study."""
        return StudyObserver(self.began, self.moved, screen.note, lambda: self.interrupted)

    def began(self, wanted: Sequence[PlannedRun], ids: Sequence[str]) -> None:
        """Add the runs of the study."""
        self._members |= dict(zip(ids, wanted, strict=True))

    def moved(self, run_id: str, status: str, done: float) -> None:
        """Update the progress of one run."""
        self._status[run_id] = status, done
        if status == "complete" and run_id not in self._scores:
            metrics = self._workspace.runs.get(run_id).metrics or {}
            self._scores[run_id] = figure(metrics, self._by)
        if not screen.ERR.is_terminal and stopwatch() - self._said_s >= LINE_S:
            self._said_s = stopwatch()
            screen.note(self._line())

    @property
    def complete(self) -> tuple[int, int]:
        """The number of runs with a result, and of all known runs."""
        return sum(status == "complete" for status, _ in self._status.copy().values()), len(self._members)

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """The handler of Ctrl-C. It only sets a flag, so it may run at any moment."""
        del number, frame
        self.interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def _line(self) -> str:
        if not self._members:
            return f"{self._label}: preparing"
        counts: dict[str, int] = {}
        for status, _ in self._status.copy().values():
            counts[status] = counts.get(status, 0) + 1
        working = sum(counts.get(status, 0) for status in ASIDE[1:])
        others = {status: count for status, count in sorted(counts.items()) if status not in (*ASIDE, "queued")}
        waiting = len(self._members) - counts.get("complete", 0) - working - sum(others.values())
        told = {"complete": counts.get("complete", 0), "at work": working, "waiting": waiting, **others}
        said = ", ".join(f"{count:,} {words}" for words, count in told.items() if count)
        return f"{self._label}: {len(self._members):,} runs, {said}"

    def _share(self) -> float:
        """The share of the work that is done, over all known runs."""
        now = self._status.copy().values()
        return sum(1.0 if status in ENDED else share for status, share in now) / (len(self._members) or 1)

    def _time(self, share: float) -> str:
        """Elapsed and estimated remaining time. Runs that were done at the start are not counted."""
        passed = stopwatch() - self._began_s
        if self._known is None and self._members:
            self._known = share
        fresh = share - (self._known or 0.0)
        left = f", about {_clock(passed * (1 - share) / fresh)} left" if fresh > SURE and share < 1 else ""
        return f"{_clock(passed)}{left}"

    def __rich__(self) -> Group:
        """The current table."""
        now, share = self._status.copy(), self._share()
        table = Table(box=None, show_edge=False, pad_edge=False, header_style="bold")
        for heading, least in (("run", 12), ("point", None), ("repeat", 6), ("state", 12), (self._by, len(self._by))):
            # If the window is too narrow, the parameters are cut.
            side = "right" if heading == self._by else "left"
            table.add_column(heading, justify=side, no_wrap=True, min_width=least)
        working = [(run_id, *now[run_id]) for run_id in now if now[run_id][0] in ASIDE[1:]]
        scored = [(run_id, value) for run_id, value in self._scores.copy().items() if value is not None]
        best = sorted(scored, key=lambda one: one[1] if self._less else -one[1])[:MOST_BEST]
        for run_id, status, done in working[:MOST_WORKING]:
            table.add_row(*self._cells(run_id), f"{status} {done:.0%}", "")
        if len(working) > MOST_WORKING:
            table.add_row("", f"… and {len(working) - MOST_WORKING} more at work", "", "", "", style="dim")
        for place, (run_id, value) in enumerate(best):
            table.add_row(
                *self._cells(run_id),
                "complete",
                format_metric(value, self._metric.form),
                style="bold green" if not place else "green",
            )
        width = max(10, min(BAR, screen.ERR.width - 32))
        filled = int(width * share)
        bar = Text.assemble(
            ("━" * filled, "green"), ("━" * (width - filled), "dim"), f" {share:.0%}  ", (self._time(share), "dim")
        )
        shown = [Text(self._line(), overflow="ellipsis", no_wrap=True), bar]
        if self.interrupted:
            shown.append(Text("stopping: every run ends its tick first. Ctrl-C again leaves at once.", "yellow"))
        return Group(*shown, *([table] if table.row_count else []))

    def _cells(self, run_id: str) -> tuple[str, str, str]:
        member = self._members.get(run_id)
        if member is None:
            return run_id, "", ""
        place = "" if member.trial.window is None else f"window {member.trial.window + 1}: "
        return run_id, place + describe_point(dict(member.trial.point)), str(member.repeat + 1)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def following(workspace: Workspace, label: str, metric: Metric, by: str) -> Iterator[Scoreboard]:
    """Provide a scoreboard inside a block, shown if standard error is a terminal, and catch Ctrl-C."""
    board = Scoreboard(workspace, label, metric, by)
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
