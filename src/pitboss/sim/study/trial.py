"""Which trials a study makes next, given what is known of those it has made.

A method is asked again and again with all results so far and names the trials that are still wanted; when it names none the
study is over. It remembers nothing that it could not work out again from the same results, so a study that was broken off
goes on by being asked anew. Making a trial (its repeats, its runs) is not done here.
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
    """One point over one stretch of time. `role` says whether a walk-forward chooses by it or judges by it."""

    number: int
    point: tuple[tuple[str, str], ...]
    from_at: Instant
    to_at: Instant
    role: Role = ""
    window: int | None = None


Results = Mapping[Trial, Sequence[Metrics]]
"""The metrics of a trial's repeats; none of them where it failed."""


class Method(Protocol):
    """How a study finds its trials."""

    def ask(self, results: Results) -> list[Trial]:
        """The trials that are wanted and not among the results yet; none when the study is over."""
        ...


@dataclass(frozen=True, slots=True)
class FixedTrials:
    """Trials that are all known from the start: a grid, a draw, an arena."""

    trials: tuple[Trial, ...]

    def ask(self, results: Results) -> list[Trial]:
        """Those that are missing."""
        return [trial for trial in self.trials if trial not in results]


@dataclass(frozen=True, slots=True)
class Forward:
    """A walk-forward: every point over every stretch to choose on, then the chosen one over the stretch that follows."""

    points: tuple[Point, ...]
    windows: tuple[Window, ...]
    metric: str

    def ask(self, results: Results) -> list[Trial]:
        """What is missing to choose on, and for windows that are chosen, what is missing to judge."""
        wanted = [trial for trials in self.inside() for trial in trials]
        wanted += [trial for place in range(len(self.windows)) if (trial := self.chosen(place, results)) is not None]
        return [trial for trial in wanted if trial not in results]

    def inside(self) -> list[list[Trial]]:
        """The trials that are chosen among, by window."""
        count = len(self.points)
        return [
            [
                Trial(place * count + number, _pairs(point), window.train_from, window.train_to, "in", place)
                for number, point in enumerate(self.points)
            ]
            for place, window in enumerate(self.windows)
        ]

    def chosen(self, place: int, results: Results) -> Trial | None:
        """The trial that judges a window's choice; None while it is open, or if nothing there has the metric.

        Only results of this window's own stretch to choose on are looked at.
        """
        window, trials = self.windows[place], self.inside()[place]
        if any(trial not in results for trial in trials):
            return None
        found = best([results[trial] for trial in trials], self.metric)
        if found is None:
            return None
        number = len(self.points) * len(self.windows) + place
        return Trial(number, trials[found].point, window.test_from, window.test_to, "out", place)


def trials_of(points: Sequence[Point], from_at: Instant, to_at: Instant) -> tuple[Trial, ...]:
    """Points over one range, numbered."""
    return tuple(Trial(number, _pairs(point), from_at, to_at) for number, point in enumerate(points))


def _pairs(point: Point) -> tuple[tuple[str, str], ...]:
    return tuple(point.items())
