"""The comparison of open and blind runs: the effect of names, dates and scales on results, with its uncertainty.

A pair is two runs with the same seed and the same repeat, one open and one blind (anonymised). The runs of a pair share
their days, so days are resampled for both at once. Two sources of randomness are kept apart: the days (a stationary
bootstrap over days, repeats resampled with them) and the model's replies (Student's interval over the repeats). This
module runs nothing; it reads the results of runs.
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

Figure = Literal["daily_return_bp", "total_return_pct", "sharpe"]
FIGURES: tuple[Figure, ...] = ("daily_return_bp", "total_return_pct", "sharpe")
MAIN: Figure = "daily_return_bp"
"""The figure that decides: a mean of daily differences has the best statistical behaviour."""
BASIS_POINTS = 10_000.0
FAR = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class DailyResults:
    """The daily returns of one run, and the outcomes of its round trips."""

    run_id: str
    day: Ints
    """UTC days, counted from 1970; a point at midnight belongs to the day that ends."""
    returns: Floats
    trades: tuple[tuple[Instant, bool], ...] = ()
    """When each was closed, and whether it made a profit."""

    def between(self, first: int, stop: int) -> "DailyResults":
        """The results of the days from `first` to before `stop`."""
        inside = (self.day >= first) & (self.day < stop)
        trades = tuple(trade for trade in self.trades if first <= (trade[0] - 1) // DAY_MS < stop)
        return DailyResults(self.run_id, self.day[inside], self.returns[inside], trades)


def daily_results(run_id: str, outcome: Outcome, closed: Sequence[tuple[Instant, bool]] = ()) -> DailyResults:
    """The daily results of a run with these closed trades."""
    at, equity = columns(outcome.equity_at, outcome.equity_usd)
    returns = daily_returns(float(outcome.initial_usd), at, equity)
    return DailyResults(run_id, np.unique((at - 1) // DAY_MS), np.asarray(returns, np.float64), tuple(closed))


@noun
class ComparedFigure:
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
    """The comparison over a part of the range."""

    days: int
    repeats: int
    figures: Mapping[Figure, ComparedFigure]
    open_wins: HitRate
    blind_wins: HitRate
    identical: bool
    """Whether every open run had exactly the returns of its blind counterpart."""
    idle: bool = False
    """Whether no run ever gained or lost anything, so that there are no results to compare."""

    @property
    def direction(self) -> int:
        """1: open runs are better, −1: worse, significant in both tests; 0: undecided, as it always is with one pair."""
        main = self.figures[MAIN]
        sides = {main.difference.side, main.repeats.side}
        return sides.pop() if len(sides) == 1 else 0


def compare(opened: Sequence[DailyResults], blinded: Sequence[DailyResults], seed: int = 0) -> ComparedDays | None:
    """Compare pairs of runs over the same days. None if there is no complete day or no pair."""
    if not opened or len(opened) != len(blinded) or not len(opened[0].day):
        return None
    for results in (*opened, *blinded):
        if not np.array_equal(results.day, opened[0].day):
            raise ValueError("runs of a pair must cover the same days")
    open_returns, blind_returns = (np.stack([results.returns for results in side]) for side in (opened, blinded))
    repeats, days = open_returns.shape
    open_exact, blind_exact = figures_of(open_returns), figures_of(blind_returns)
    resampled = _resample(open_returns, blind_returns, seed) if days >= MIN_BOOTSTRAP_RETURNS else None
    level = _level(days)
    figures: dict[Figure, ComparedFigure] = {}
    for name in FIGURES:
        difference = open_exact[name] - blind_exact[name]
        open_draws, blind_draws = (None, None) if resampled is None else (resampled[0][name], resampled[1][name])
        draws = None if open_draws is None or blind_draws is None else open_draws - blind_draws
        figures[name] = ComparedFigure(
            open=_spread(open_exact[name], open_draws, level),
            blind=_spread(blind_exact[name], blind_draws, level),
            difference=_spread(difference, draws, level),
            repeats=_over_repeats(difference),
        )
    return ComparedDays(
        days=days,
        repeats=repeats,
        figures=figures,
        open_wins=_wins(opened),
        blind_wins=_wins(blinded),
        identical=bool(np.array_equal(open_returns, blind_returns)),
        idle=not open_returns.any() and not blind_returns.any(),
    )


def figures_of(returns: Floats) -> dict[Figure, Floats]:
    """The figures of several runs: rows are runs, columns are days. NaN where a figure is undefined."""
    mean = returns.mean(axis=1)
    totals = np.prod(1 + returns, axis=1) - 1
    sharpes = [sharpe(row.tolist()) for row in returns]
    return {
        "daily_return_bp": mean * BASIS_POINTS,
        "total_return_pct": totals * 100,
        "sharpe": np.asarray([np.nan if sharpe is None else sharpe for sharpe in sharpes]),
    }


ResampledFigures = Mapping[Figure, Floats]


def _resample(open_returns: Floats, blind_returns: Floats, seed: int) -> tuple[ResampledFigures, ResampledFigures]:
    """Resampled figures of both sides, averaged over resampled repeats. Both use the same days and repeats."""
    repeats, days = open_returns.shape
    day_draws = np.stack([day % days for day in stationary_days(days, DRAWS, seed)])
    random = Generator(PCG64([seed, repeats, days]))
    repeat_draws = random.integers(repeats, size=(repeats, DRAWS))
    return _averaged(open_returns, day_draws, repeat_draws), _averaged(blind_returns, day_draws, repeat_draws)


def _averaged(returns: Floats, day_draws: Ints, repeat_draws: Ints) -> ResampledFigures:
    each: dict[Figure, list[Floats]] = {name: [] for name in FIGURES}
    for row in returns:
        drawn = row[day_draws]
        mean, deviation = drawn.mean(axis=0), drawn.std(axis=0, ddof=1)
        with np.errstate(all="ignore"):
            ratio = mean / deviation * np.sqrt(DAYS_A_YEAR)
        each["daily_return_bp"].append(mean * BASIS_POINTS)
        each["total_return_pct"].append((np.prod(1 + drawn, axis=0) - 1) * 100)
        each["sharpe"].append(np.where(deviation > NO_DEVIATION, ratio, 0.0))
    column = np.arange(day_draws.shape[1])
    return {name: np.stack(rows)[repeat_draws, column].mean(axis=0) for name, rows in each.items()}


def _level(days: int) -> float:
    """Slightly above 95 %: percentiles of few days are too narrow by the ratio of Student's t to the normal."""
    if days < 2:
        return 0.95
    reach = student_quantile(days - 1) * np.sqrt(days / (days - 1))
    return 2 * NormalDist().cdf(float(reach)) - 1


def _spread(exact: Floats, drawn: Floats | None, level: float) -> MeanEstimate:
    mean = None if np.isnan(exact).any() else float(exact.mean())
    bounds = None if drawn is None or mean is None else interval(drawn, level)
    return MeanEstimate(mean, None if bounds is None else (bounds[0], bounds[1]))


def _over_repeats(differences: Floats) -> MeanEstimate:
    return MeanEstimate(None, None) if np.isnan(differences).any() else mean_of_repeats(differences.tolist())


def _wins(side: Sequence[DailyResults]) -> HitRate:
    wins = [won for results in side for _, won in results.trades]
    return hit_rate(sum(wins), len(wins))


# Before and after -----------------------------------------------------------------------------------------------------


@noun
class Split:
    """The same comparison on each side of an instant."""

    before: ComparedDays | None
    after: ComparedDays | None


def split(opened: Sequence[DailyResults], blinded: Sequence[DailyResults], at: Instant, seed: int = 0) -> Split:
    """Compare the days that end by `at` and those that begin at or after it. `at` is a midnight."""
    day = at // DAY_MS

    def part(first: int, stop: int) -> ComparedDays | None:
        sides = ([results.between(first, stop) for results in side] for side in (opened, blinded))
        return compare(*sides, seed=seed)

    return Split(part(-FAR, day), part(day, FAR))
