"""The probability of backtest overfitting, by combinatorially symmetric cross-validation.

Bailey, Borwein, López de Prado and Zhu (2015): the days are cut into an even number of blocks; for every way to take half of
the blocks the best trial there is looked up among all trials in the other half. How often it lands in the lower half of
them is the probability that choosing the best has chosen noise. Works on daily returns and knows nothing of runs. Sums are
made elementwise in one fixed order, so the same returns give the same digits on every machine.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pitboss.core.market import Floats, Ints
from pitboss.sim.statistics import DAYS_A_YEAR, NO_DEVIATION

MOST_BLOCKS = 16
LEAST_BLOCKS = 4
LEAST_DAYS = 3
"""Days that a block needs: of fewer, no ratio means anything."""
MOST_CELLS = 2_000_000
"""Splits times trials that are worked on at once: enough to spread the cost of a call, few enough to stay in memory."""


@dataclass(frozen=True, slots=True)
class Overfit:
    """What came of all splits.

    `probability` is the share of them in which the best half of the days chose a trial that was no better than the middle
    one in the other half. `loss` is the share in which the chosen one lost money there. `inside` and `outside` are the
    mean annualised Sharpe of the chosen ones, where they were chosen and where they were judged.
    """

    probability: float
    loss: float
    inside: float
    outside: float
    splits: int
    blocks: int
    trials: int
    days: int


def blocks_for(days: int) -> int | None:
    """How many blocks so many days are cut into; None if there are too few of them."""
    found = min(MOST_BLOCKS, days // LEAST_DAYS)
    found -= found % 2
    return found if found >= LEAST_BLOCKS else None


def overfitting(returns: Sequence[Sequence[float]], blocks: int | None = None) -> Overfit | None:
    """Of the daily returns of each trial, all over the same days. None with one trial, or with too few days.

    Where the days do not divide evenly the oldest are left out. A trial that does not move in a half has a Sharpe of 0
    there. Of trials that are equally good, the first is chosen, and ranks in the middle of its equals.
    """
    if len(returns) < 2:
        return None
    blocks = blocks_for(len(returns[0])) if blocks is None else blocks
    if blocks is None:
        return None
    values = np.array(returns, dtype=np.float64).T
    length = len(values) // blocks
    values = values[len(values) - length * blocks :]
    # Moments about each trial's own mean: what is left of a difference of large sums is otherwise noise.
    middle = _ordered_sum(values) / len(values)
    apart = (values - middle).reshape(blocks, length, -1)
    sums = _ordered_sum(apart.swapaxes(0, 1))
    squares = _ordered_sum((apart * apart).swapaxes(0, 1))
    halves = np.array(list(combinations(range(blocks), blocks // 2)), dtype=np.int64)
    others = halves[::-1]  # in this order the last is what the first leaves out, and so on
    at_once = max(1, MOST_CELLS // values.shape[1])
    logits: list[float] = []
    inside: list[float] = []
    outside: list[float] = []
    losses = 0
    for first in range(0, len(halves), at_once):
        rows = np.arange(len(halves[first : first + at_once]))
        taken, _ = _sharpe(sums, squares, middle, halves[first : first + at_once], length)
        left, drift = _sharpe(sums, squares, middle, others[first : first + at_once], length)
        chosen = taken.argmax(axis=1)
        own = left[rows, chosen][:, None]
        # From 1, the worst, to the number of trials; equals share the middle of their places.
        rank = (left < own).sum(axis=1) + ((left == own).sum(axis=1) + 1) / 2
        share = rank / (values.shape[1] + 1)
        logits += [math.log(value / (1 - value)) for value in share.tolist()]
        inside += taken[rows, chosen].tolist()
        outside += left[rows, chosen].tolist()
        losses += int((drift[rows, chosen] < 0).sum())
    count = len(logits)
    year = math.sqrt(DAYS_A_YEAR)
    return Overfit(
        probability=sum(value <= 0 for value in logits) / count,
        loss=losses / count,
        inside=math.fsum(inside) / count * year,
        outside=math.fsum(outside) / count * year,
        splits=count,
        blocks=blocks,
        trials=values.shape[1],
        days=len(values),
    )


def _sharpe(sums: Floats, squares: Floats, middle: Floats, chosen: Ints, length: int) -> tuple[Floats, Floats]:
    """Daily Sharpe and mean of every trial over each set of blocks."""
    total, square = np.zeros((len(chosen), sums.shape[1])), np.zeros((len(chosen), sums.shape[1]))
    for place in range(chosen.shape[1]):
        total += sums[chosen[:, place]]
        square += squares[chosen[:, place]]
    count = length * chosen.shape[1]
    drift = middle + total / count
    deviation = np.sqrt(np.maximum(square - total * total / count, 0) / (count - 1))
    moved = deviation > NO_DEVIATION
    return np.where(moved, drift / np.where(moved, deviation, 1.0), 0.0), drift


def _ordered_sum(values: Floats) -> Floats:
    """The sum along the first axis, one after the other."""
    total = np.zeros(values.shape[1:])
    for one in values:
        total += one
    return total
