"""The methods of a study: which trials to run next, given the results so far.

A method is called repeatedly with all results and returns the trials that are still missing; when it returns none the study is
complete. It has no state beyond what it can derive from the same results, so an interrupted study continues with another
call. Running a trial (its repeats, its runs) is not done here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pitboss.core.instant import Instant
from pitboss.sim.study.axis import Point
from pitboss.sim.study.choice import Metrics, best
from pitboss.sim.study.walk import Window

Role = Literal["", "in", "out"]


@dataclass(frozen=True, slots=True)
class Trial:
    """One point over one period. In a walk-forward, `role` says whether it is in sample or out of sample."""

    number: int
    point: tuple[tuple[str, str], ...]
    from_at: Instant
    to_at: Instant
    role: Role = ""
    window: int | None = None


Results = Mapping[Trial, Sequence[Metrics]]
"""The metrics of each trial's repeats; empty for a failed trial."""


class Method(Protocol):
    """The method by which a study selects its trials."""

    def ask(self, results: Results) -> list[Trial]:
        """The trials that have no result yet; none when the study is complete."""
        ...


@dataclass(frozen=True, slots=True)
class FixedTrials:
    """A fixed set of trials: a grid, a random sample, an arena."""

    trials: tuple[Trial, ...]

    def ask(self, results: Results) -> list[Trial]:
        """The trials without a result."""
        return [trial for trial in self.trials if trial not in results]


@dataclass(frozen=True, slots=True)
class WalkForward:
    """A walk-forward: every point over every in-sample period, then the best one over the period that follows."""

    points: tuple[Point, ...]
    windows: tuple[Window, ...]
    metric: str

    def ask(self, results: Results) -> list[Trial]:
        """The in-sample trials without a result, and the out-of-sample trials of windows whose choice is known."""
        trials = [trial for window in self.in_sample_trials() for trial in window]
        choices = (self.out_of_sample_trial(index, results) for index in range(len(self.windows)))
        trials += [trial for trial in choices if trial is not None]
        return [trial for trial in trials if trial not in results]

    def in_sample_trials(self) -> list[list[Trial]]:
        """The in-sample trials by window."""
        return [self._in_sample_trials_of(index) for index in range(len(self.windows))]

    def _in_sample_trials_of(self, index: int) -> list[Trial]:
        window, first = self.windows[index], index * len(self.points)
        return [
            Trial(number, _pairs(point), window.train_from, window.train_to, "in", index)
            for number, point in enumerate(self.points, first)
        ]

    def out_of_sample_trial(self, index: int, results: Results) -> Trial | None:
        """The trial that tests a window's choice; None while results are missing, or if no trial has the metric.

        The choice uses only results of this window's in-sample period.
        """
        window, trials = self.windows[index], self._in_sample_trials_of(index)
        if any(trial not in results for trial in trials):
            return None
        best_index = best([results[trial] for trial in trials], self.metric)
        if best_index is None:
            return None
        number = len(self.points) * len(self.windows) + index
        return Trial(number, trials[best_index].point, window.test_from, window.test_to, "out", index)


def numbered_trials(points: Sequence[Point], from_at: Instant, to_at: Instant) -> tuple[Trial, ...]:
    """One trial per point, all over the same range."""
    return tuple(Trial(number, _pairs(point), from_at, to_at) for number, point in enumerate(points))


def _pairs(point: Point) -> tuple[tuple[str, str], ...]:
    return tuple(point.items())
