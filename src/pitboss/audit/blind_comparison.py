"""Open and blind runs side by side: what names, dates and scales have done for a result, and how sure that is.

A pair is two runs with the same seed and the same repeat, one told everything and one disguised. The runs of a pair share
their days, so days are resampled for both at once. Two kinds of luck are kept apart: which days there were (a stationary
bootstrap over days, repeats drawn with them) and what the model happened to answer (Student's interval over the
repeats). Nothing here runs anything: it reads what runs have left behind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.random import PCG64, Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.market import Floats, Ints
from pitboss.core.noun import noun
from pitboss.sim.metrics import Outcome, columns, daily_returns
from pitboss.sim.statistics.binomial import HitRate, hit_rate
from pitboss.sim.statistics.bootstrap import DRAWS, MIN_BOOTSTRAP_RETURNS, interval, stationary_days
from pitboss.sim.statistics.returns import DAYS_A_YEAR, NO_DEVIATION, sharpe
from pitboss.sim.statistics.student import MeanEstimate, mean_of_repeats, student_quantile
from pitboss.venues.perp.trades import book

Figure = Literal["daily_return_bp", "total_return_pct", "sharpe"]
FIGURES: tuple[Figure, ...] = ("daily_return_bp", "total_return_pct", "sharpe")
MAIN: Figure = "daily_return_bp"
"""What is judged by: a mean of daily differences is the one that behaves best."""
BASIS_POINTS = 10_000.0
FAR = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class DailyResults:
    """How one run went, day by day, and how its round trips ended."""

    run_id: str
    day: Ints
    """UTC days, counted from 1970; a point at midnight belongs to the day that ends."""
    returns: Floats
    trades: tuple[tuple[Instant, bool], ...] = ()
    """When each was closed, and whether it made money."""

    def between(self, first: int, stop: int) -> "DailyResults":
        """The part of it on the days from `first` to before `stop`."""
        kept = (self.day >= first) & (self.day < stop)
        trades = tuple(one for one in self.trades if first <= (one[0] - 1) // DAY_MS < stop)
        return DailyResults(self.run_id, self.day[kept], self.returns[kept], trades)


def course_of(run_id: str, outcome: Outcome) -> DailyResults:
    """The days of a run."""
    at, equity = columns(outcome.equity_at, outcome.equity_usd)
    returns = daily_returns(float(outcome.initial_usd), at, equity)
    closed = tuple((trade.closed_at, trade.pnl_usd > 0) for trade in book(outcome.receipts).closed)
    return DailyResults(run_id, np.unique((at - 1) // DAY_MS), np.asarray(returns, np.float64), closed)


@noun
class Compared:
    """One figure of the open runs, of the blind ones, and open minus blind.

    The intervals of the first three come from resampling days and repeats; `repeats` is open minus blind with Student's
    interval over the repeats alone.
    """

    open: MeanEstimate
    blind: MeanEstimate
    difference: MeanEstimate
    repeats: MeanEstimate


@noun
class ComparedDays:
    """A stretch of the range: its days and what the runs made of them."""

    days: int
    repeats: int
    figures: Mapping[Figure, Compared]
    open_wins: HitRate
    blind_wins: HitRate
    identical: bool
    """Whether every open run had the very returns of its blind twin."""
    idle: bool = False
    """Whether no run ever gained or lost anything: then there are no results to compare."""

    @property
    def found(self) -> int:
        """1: better open, −1: worse, beyond both kinds of luck; 0: it cannot be told. One pair alone cannot tell."""
        main = self.figures[MAIN]
        sides = {main.difference.side, main.repeats.side}
        return sides.pop() if len(sides) == 1 else 0


def compare(opened: Sequence[DailyResults], blinded: Sequence[DailyResults], seed: int = 0) -> ComparedDays | None:
    """Pairs of runs over the same days. None where there is no whole day, or no pair."""
    if not opened or len(opened) != len(blinded) or not len(opened[0].day):
        return None
    for one in (*opened, *blinded):
        if not np.array_equal(one.day, opened[0].day):
            raise ValueError("runs of a pair must cover the same days")
    mine, theirs = (np.stack([one.returns for one in side]) for side in (opened, blinded))
    exact_mine, exact_theirs = figures_of(mine), figures_of(theirs)
    drawn = _draw(mine, theirs, seed) if mine.shape[1] >= MIN_BOOTSTRAP_RETURNS else None
    level = _level(mine.shape[1])
    found: dict[Figure, Compared] = {}
    for name in FIGURES:
        here, there = exact_mine[name], exact_theirs[name]
        ours, others = (None, None) if drawn is None else (drawn[0][name], drawn[1][name])
        found[name] = Compared(
            open=_spread(here, ours, level),
            blind=_spread(there, others, level),
            difference=_spread(here - there, None if ours is None or others is None else ours - others, level),
            repeats=_over_repeats(here - there),
        )
    return ComparedDays(
        days=mine.shape[1],
        repeats=mine.shape[0],
        figures=found,
        open_wins=_wins(opened),
        blind_wins=_wins(blinded),
        identical=bool(np.array_equal(mine, theirs)),
        idle=not mine.any() and not theirs.any(),
    )


def figures_of(returns: Floats) -> dict[Figure, Floats]:
    """The figures of each of several histories: rows are histories, columns are days. NaN where there is none."""
    mean = returns.mean(axis=1)
    totals = np.prod(1 + returns, axis=1) - 1
    sharpes = [sharpe(row.tolist()) for row in returns]
    return {
        "daily_return_bp": mean * BASIS_POINTS,
        "total_return_pct": totals * 100,
        "sharpe": np.asarray([np.nan if one is None else one for one in sharpes]),
    }


Drawn = Mapping[Figure, Floats]


def _draw(mine: Floats, theirs: Floats, seed: int) -> tuple[Drawn, Drawn]:
    """Resampled figures of both sides, averaged over resampled repeats. Both take the same days and repeats."""
    repeats, days = mine.shape
    taken = np.stack([day % days for day in stationary_days(days, DRAWS, seed)])
    random = Generator(PCG64([seed, repeats, days]))
    chosen = random.integers(repeats, size=(repeats, DRAWS))
    return _averaged(mine, taken, chosen), _averaged(theirs, taken, chosen)


def _averaged(returns: Floats, taken: Ints, chosen: Ints) -> Drawn:
    each: dict[Figure, list[Floats]] = {name: [] for name in FIGURES}
    for row in returns:
        drawn = row[taken]
        mean, deviation = drawn.mean(axis=0), drawn.std(axis=0, ddof=1)
        with np.errstate(all="ignore"):
            ratio = mean / deviation * np.sqrt(DAYS_A_YEAR)
        each["daily_return_bp"].append(mean * BASIS_POINTS)
        each["total_return_pct"].append((np.prod(1 + drawn, axis=0) - 1) * 100)
        each["sharpe"].append(np.where(deviation > NO_DEVIATION, ratio, 0.0))
    column = np.arange(taken.shape[1])
    return {name: np.stack(rows)[chosen, column].mean(axis=0) for name, rows in each.items()}


def _level(days: int) -> float:
    """A little more than 95 %: percentiles of few days are too narrow by what Student's t is wider than the normal."""
    if days < 2:
        return 0.95
    reach = student_quantile(days - 1) * np.sqrt(days / (days - 1))
    return 2 * NormalDist().cdf(float(reach)) - 1


def _spread(exact: Floats, drawn: Floats | None, level: float) -> MeanEstimate:
    known = exact[~np.isnan(exact)]
    mean = float(known.mean()) if len(known) == len(exact) else None
    around = None if drawn is None or mean is None else interval(drawn, level)
    return MeanEstimate(mean, None if around is None else (around[0], around[1]))


def _over_repeats(apart: Floats) -> MeanEstimate:
    return MeanEstimate(None, None) if np.isnan(apart).any() else mean_of_repeats(apart.tolist())


def _wins(side: Sequence[DailyResults]) -> HitRate:
    ended = [won for one in side for _, won in one.trades]
    return hit_rate(sum(ended), len(ended))


# Before and after -----------------------------------------------------------------------------------------------------


@noun
class Split:
    """The same comparison on each side of an instant."""

    before: ComparedDays | None
    after: ComparedDays | None


def split(opened: Sequence[DailyResults], blinded: Sequence[DailyResults], at: Instant, seed: int = 0) -> Split:
    """Days that end by `at`, and days that begin at or after it. `at` is a midnight."""
    day = at // DAY_MS

    def part(first: int, stop: int) -> ComparedDays | None:
        cut = ([one.between(first, stop) for one in side] for side in (opened, blinded))
        return compare(*cut, seed=seed)

    return Split(part(-FAR, day), part(day, FAR))
