"""What a person sees while a study works, and what Ctrl-C leaves behind."""

import signal
from dataclasses import dataclass, field
from typing import Any

import pytest
from rich.console import Console
from study_market import request

from pitboss.cli import study_table as scoreboard
from pitboss.cli.study_table import Scoreboard, live_scoreboard
from pitboss.jobs.plan import planned_runs
from pitboss.jobs.study_plans import sweep_plan
from pitboss.report.meaning import METRICS
from pitboss.sim.study.axis import parse_axes
from pitboss.terminal import screen


@dataclass
class RunsBySharpe:
    """Finished runs by their Sharpe ratios."""

    sharpes: dict[str, float | None] = field(default_factory=dict[str, float | None])
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])

    @property
    def runs(self) -> "RunsBySharpe":
        return self

    def get(self, run_id: str) -> Any:
        @dataclass
        class FinishedRun:
            metrics: dict[str, Any]

        return FinishedRun({"sharpe": self.sharpes[run_id], "sharpe_ci": self.intervals.get(run_id)})


def board(shelf: RunsBySharpe) -> Scoreboard:
    plan = sweep_plan(request(), parse_axes(["risk.max_position_pct=10,20,30"]))
    found = Scoreboard(shelf, "grid abc", METRICS["sharpe"], "sharpe")  # pyright: ignore[reportArgumentType]
    found.add_runs(planned_runs(plan.plan, plan.expected_trials), ["one", "two", "six"])
    return found


def rendered_board(found: Scoreboard) -> str:
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(found)
    console.file.close()
    return console.export_text()


def test_the_table_shows_how_far_it_is_who_is_at_work_and_who_is_best() -> None:
    found = board(RunsBySharpe({"one": -0.5, "two": 1.25}, {"two": (0.2, 2.0)}))
    found.update("one", "complete", 1.0)
    found.update("two", "complete", 1.0)
    found.update("six", "running", 0.25)
    lines = rendered_board(found).splitlines()
    assert lines[0].rstrip() == "grid abc: 3 runs, 2 complete, 1 active"
    assert "75%" in lines[1]
    assert "running 25%" in lines[3]
    assert lines[4].split()[:2] == ["two", "max_position_pct=20"]
    assert lines[4].rstrip().endswith("1.25")
    assert lines[5].rstrip().endswith("−0.50 (<20 days)"), "it has no interval"


def test_a_run_without_the_figure_is_not_among_the_best() -> None:
    found = board(RunsBySharpe({"one": None}))
    found.update("one", "complete", 1.0)
    assert "33%" in rendered_board(found)
    assert len(rendered_board(found).splitlines()) == 2


def test_without_a_table_a_progress_line_is_printed_periodically(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(scoreboard, "stopwatch", lambda: now[0])
    monkeypatch.setattr(screen, "note", lambda text: print(text))
    found = board(RunsBySharpe({"one": 1.0}))
    found.update("one", "running", 0.1)
    assert capsys.readouterr().out == ""
    now[0] = 21.0
    found.update("one", "running", 0.2)
    found.update("one", "running", 0.3)
    assert capsys.readouterr().out == "grid abc: 3 runs, 1 active, 2 waiting\n"


def test_the_first_ctrl_c_asks_and_the_second_is_the_usual_one() -> None:
    before = signal.getsignal(signal.SIGINT)
    shelf: Any = RunsBySharpe()
    with live_scoreboard(shelf, "grid abc", METRICS["sharpe"], "sharpe") as found:
        watch = found.observer()
        assert not watch.stop()
        signal.raise_signal(signal.SIGINT)
        assert watch.stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_where_less_is_better_the_least_stands_first() -> None:
    plan = sweep_plan(request(), parse_axes(["risk.max_position_pct=10,20"]), by="max_drawdown_pct")
    found = Scoreboard(
        RunsBySharpe({"one": 0.0, "two": 0.0}), "grid abc", METRICS["max_drawdown_pct"], "max_drawdown_pct"
    )  # pyright: ignore[reportArgumentType]
    found.add_runs(planned_runs(plan.plan, plan.expected_trials), ["one", "two"])
    found._scores = {"one": 9.0, "two": 3.0}  # pyright: ignore[reportPrivateUsage]
    lines = rendered_board(found).splitlines()
    assert [line.split()[0] for line in lines[3:]] == ["two", "one"]
    assert lines[3].rstrip().endswith("3.00%")


def test_the_time_that_is_left_counts_only_what_was_done_now(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(scoreboard, "stopwatch", lambda: now[0])
    found = board(RunsBySharpe({"one": 1.0, "two": 1.0}))
    found.update("one", "complete", 1.0)
    assert rendered_board(found).splitlines()[1].rstrip().endswith("33%  0:00"), "known from an earlier time"
    now[0] = 10.0
    found.update("two", "complete", 1.0)
    assert rendered_board(found).splitlines()[1].rstrip().endswith("67%  0:10, about 0:10 left")


def test_before_anything_is_queued_it_prepares_and_after_ctrl_c_it_says_that_it_stops() -> None:
    shelf: Any = RunsBySharpe({"one": 1.0})
    assert rendered_board(Scoreboard(shelf, "grid abc", METRICS["sharpe"], "sharpe")).startswith("grid abc: preparing")
    found = board(shelf)
    found.update("one", "complete", 1.0)
    found.interrupted = True
    assert "stopping: every run ends its tick first" in rendered_board(found)
    assert found.complete == (1, 3)
