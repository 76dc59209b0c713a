"""Progress of a study: a live table on standard error, and stopping by Ctrl-C.

The first Ctrl-C requests every run to stop at its next tick, the second stops the program. If standard error is not a
terminal, a line is printed every `LINE_INTERVAL_S` seconds.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pitboss.bootstrap.machine import stopwatch
from pitboss.bootstrap.workspace import Workspace
from pitboss.jobs.plan import PlannedRun
from pitboss.jobs.study_queue import StudyObserver
from pitboss.report.figures import has_few_days, plural
from pitboss.report.meaning import Metric
from pitboss.report.measures import format_named
from pitboss.sim.study.axis import describe_point
from pitboss.sim.study.choice import SMALLER_IS_BETTER, figure
from pitboss.store.lifecycle import ENDED
from pitboss.terminal import screen
from pitboss.terminal.progress import catching_interrupt

MAX_WORKING, MAX_BEST = 8, 5
BAR_WIDTH = 60
LINE_INTERVAL_S = 20.0
"""Seconds between two lines of progress if standard error is not a terminal."""
MIN_SHARE = 0.02
"""Share of the work that must be done before the remaining time is shown."""
COUNTED_STATUSES = ("complete", "running", "loading", "computing_metrics")
"""Statuses that the progress line counts as complete or active; all others are counted by name."""


class Scoreboard:
    """The progress of a study: how far each run is, and the best trial so far."""

    def __init__(self, workspace: Workspace, label: str, metric: Metric, by: str) -> None:
        self.interrupted = False
        self._workspace, self._label, self._by = workspace, label, by
        self._metric, self._smaller_is_better = metric, by in SMALLER_IS_BETTER
        self._members: dict[str, PlannedRun] = {}
        self._status: dict[str, tuple[str, float]] = {}
        self._scores: dict[str, float | None] = {}
        self._short_runs: set[str] = set()
        self._started_s = self._printed_s = stopwatch()
        self._initial_share: float | None = None

    def observer(self) -> StudyObserver:
        """The observer to pass to the study."""
        return StudyObserver(self.add_runs, self.update, screen.note, lambda: self.interrupted)

    def add_runs(self, planned: Sequence[PlannedRun], ids: Sequence[str]) -> None:
        """Add the runs of the study."""
        self._members |= dict(zip(ids, planned, strict=True))

    def update(self, run_id: str, status: str, share: float) -> None:
        """Update the progress of one run."""
        self._status[run_id] = status, share
        if status == "complete" and run_id not in self._scores:
            metrics = self._workspace.runs.get(run_id).metrics or {}
            self._scores[run_id] = figure(metrics, self._by)
            if has_few_days(metrics):
                self._short_runs.add(run_id)
        if not screen.ERR.is_terminal and stopwatch() - self._printed_s >= LINE_INTERVAL_S:
            self._printed_s = stopwatch()
            screen.note(self._line())

    @property
    def complete(self) -> tuple[int, int]:
        """The number of runs with a result, and of all known runs."""
        return sum(status == "complete" for status, _ in self._status.copy().values()), len(self._members)

    def interrupt(self) -> None:
        """Request every run to stop because of Ctrl-C."""
        self.interrupted = True

    def _line(self) -> str:
        if not self._members:
            return f"{self._label}: preparing"
        counts: dict[str, int] = {}
        for status, _ in self._status.copy().values():
            counts[status] = counts.get(status, 0) + 1
        working = sum(counts.get(status, 0) for status in COUNTED_STATUSES[1:])
        other_counts = {
            status: count for status, count in sorted(counts.items()) if status not in (*COUNTED_STATUSES, "queued")
        }
        waiting = len(self._members) - counts.get("complete", 0) - working - sum(other_counts.values())
        counts_by_label = {"complete": counts.get("complete", 0), "active": working, "waiting": waiting, **other_counts}
        text = ", ".join(f"{count:,} {label}" for label, count in counts_by_label.items() if count)
        return f"{self._label}: {plural(len(self._members), 'run')}, {text}"

    def _share(self) -> float:
        """The share of the work that is done, over all known runs."""
        now = self._status.copy().values()
        return sum(1.0 if status in ENDED else share for status, share in now) / (len(self._members) or 1)

    def _time(self, share: float) -> str:
        """Elapsed and estimated remaining time. Runs that were done at the start are not counted."""
        elapsed_s = stopwatch() - self._started_s
        if self._initial_share is None and self._members:
            self._initial_share = share
        new_share = share - (self._initial_share or 0.0)
        remaining = (
            f", about {_clock(elapsed_s * (1 - share) / new_share)} left" if new_share > MIN_SHARE and share < 1 else ""
        )
        return f"{_clock(elapsed_s)}{remaining}"

    def __rich__(self) -> Group:
        """The current table."""
        now, share = self._status.copy(), self._share()
        table = Table(box=None, show_edge=False, pad_edge=False, header_style="bold")
        score = self._metric.label.lower()
        for heading, min_width in (
            ("run", 12),
            ("point", None),
            ("repeat", 6),
            ("status", 12),
            (score, len(score)),
        ):
            # If the window is too narrow, the parameters wrap.
            justify = "right" if heading == score else "left"
            table.add_column(heading, justify=justify, no_wrap=heading != "point", overflow="fold", min_width=min_width)
        working = [(run_id, *now[run_id]) for run_id in now if now[run_id][0] in COUNTED_STATUSES[1:]]
        scored = [(run_id, value) for run_id, value in self._scores.copy().items() if value is not None]
        best = sorted(scored, key=lambda item: item[1] if self._smaller_is_better else -item[1])[:MAX_BEST]
        for run_id, status, progress in working[:MAX_WORKING]:
            table.add_row(*self._cells(run_id), f"{status} {progress:.0%}", "")
        if len(working) > MAX_WORKING:
            table.add_row("", f"… and {len(working) - MAX_WORKING} more active", "", "", "", style="dim")
        for rank, (run_id, value) in enumerate(best):
            table.add_row(
                *self._cells(run_id),
                "complete",
                format_named(self._by, value, self._metric.form, run_id in self._short_runs),
                style="bold green" if not rank else "green",
            )
        width = max(10, min(BAR_WIDTH, screen.ERR.width - 32))
        filled = int(width * share)
        bar = Text.assemble(
            ("━" * filled, "green"), ("━" * (width - filled), "dim"), f" {share:.0%}  ", (self._time(share), "dim")
        )
        lines = [Text(self._line(), overflow="ellipsis", no_wrap=True), bar]
        if self.interrupted:
            lines.append(Text("stopping: every run ends its tick first. Ctrl-C again exits at once.", "yellow"))
        return Group(*lines, *([table] if table.row_count else []))

    def _cells(self, run_id: str) -> tuple[str, str, str]:
        member = self._members.get(run_id)
        if member is None:
            return run_id, "", ""
        window = "" if member.trial.window is None else f"window {member.trial.window + 1}: "
        return run_id, window + describe_point(dict(member.trial.point)), str(member.repeat + 1)


def _clock(seconds: float) -> str:
    minutes, seconds_left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds_left:02}" if hours else f"{minutes}:{seconds_left:02}"


@contextmanager
def live_scoreboard(workspace: Workspace, label: str, metric: Metric, by: str) -> Iterator[Scoreboard]:
    """Provide a scoreboard inside a block, shown if standard error is a terminal, and catch Ctrl-C."""
    board = Scoreboard(workspace, label, metric, by)
    with catching_interrupt(board.interrupt):
        if screen.ERR.is_terminal:
            with Live(board, console=screen.ERR, refresh_per_second=4, transient=True):
                yield board
        else:
            yield board
