"""The probability of backtest overfitting (PBO), by combinatorially symmetric cross-validation.

Bailey, Borwein, López de Prado and Zhu (2015): the days are divided into an even number of blocks. For every choice of half
of the blocks, the best trial in that half is ranked among all trials in the other half. The share of choices in which it
ranks in the lower half is the probability that selecting the best trial selects noise. Works on daily returns and knows
nothing of runs. Sums are elementwise in one fixed order, so the same returns give the same digits on every machine.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pitboss.core.market import Floats, Ints
from pitboss.sim.statistics.returns import DAYS_A_YEAR, NO_DEVIATION

MAX_BLOCKS = 16
MIN_BLOCKS = 4
MIN_DAYS_PER_BLOCK = 3
"""With fewer days in a block its Sharpe means nothing."""
MAX_CELLS = 2_000_000
"""Splits times trials computed in one batch: enough to spread the cost of a call, few enough to stay in memory."""


@dataclass(frozen=True, slots=True)
class Overfit:
    """The result over all splits.

    `probability` is the share of splits in which the trial chosen in one half was no better than the median in the other.
    `loss` is the share in which the chosen trial lost money in the other half. `inside` and `outside` are the mean
    annualised Sharpe of the chosen trials, in sample and out of sample.
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
    """The number of blocks that this many days are divided into; None if there are too few days."""
    blocks = min(MAX_BLOCKS, days // MIN_DAYS_PER_BLOCK)
    blocks -= blocks % 2
    return blocks if blocks >= MIN_BLOCKS else None


def overfitting(returns: Sequence[Sequence[float]], blocks: int | None = None) -> Overfit | None:
    """PBO from the daily returns of each trial, all over the same days. None with one trial or too few days.

    If the days do not divide evenly the oldest are omitted. A trial with constant equity in a half has a Sharpe of 0
    there. Of equally good trials the first is chosen, and equal trials share the mean of their ranks.
    """
    if len(returns) < 2:
        return None
    blocks = blocks_for(len(returns[0])) if blocks is None else blocks
    if blocks is None:
        return None
    values = np.array(returns, dtype=np.float64).T
    length = len(values) // blocks
    values = values[len(values) - length * blocks :]
    # Moments about each trial's own mean: a difference of large sums would otherwise be mostly rounding error.
    mean = _ordered_sum(values) / len(values)
    centred = (values - mean).reshape(blocks, length, -1)
    sums = _ordered_sum(centred.swapaxes(0, 1))
    squares = _ordered_sum((centred * centred).swapaxes(0, 1))
    halves = np.array(list(combinations(range(blocks), blocks // 2)), dtype=np.int64)
    complements = halves[::-1]  # combinations are ordered so that the last is the complement of the first, and so on
    batch = max(1, MAX_CELLS // values.shape[1])
    logits: list[float] = []
    inside: list[float] = []
    outside: list[float] = []
    losses = 0
    for first in range(0, len(halves), batch):
        rows = np.arange(len(halves[first : first + batch]))
        in_sample, _ = _sharpe(sums, squares, mean, halves[first : first + batch], length)
        out_of_sample, drift = _sharpe(sums, squares, mean, complements[first : first + batch], length)
        best = in_sample.argmax(axis=1)
        own = out_of_sample[rows, best][:, None]
        # From 1, the worst, to the number of trials; equal trials share the mean of their ranks.
        rank = (out_of_sample < own).sum(axis=1) + ((out_of_sample == own).sum(axis=1) + 1) / 2
        share = rank / (values.shape[1] + 1)
        logits += [math.log(value / (1 - value)) for value in share.tolist()]
        inside += in_sample[rows, best].tolist()
        outside += out_of_sample[rows, best].tolist()
        losses += int((drift[rows, best] < 0).sum())
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


def _sharpe(sums: Floats, squares: Floats, mean: Floats, halves: Ints, length: int) -> tuple[Floats, Floats]:
    """The daily Sharpe and mean return of every trial over each set of blocks."""
    total, square = np.zeros((len(halves), sums.shape[1])), np.zeros((len(halves), sums.shape[1]))
    for column in range(halves.shape[1]):
        total += sums[halves[:, column]]
        square += squares[halves[:, column]]
    count = length * halves.shape[1]
    drift = mean + total / count
    deviation = np.sqrt(np.maximum(square - total * total / count, 0) / (count - 1))
    moved = deviation > NO_DEVIATION
    return np.where(moved, drift / np.where(moved, deviation, 1.0), 0.0), drift


def _ordered_sum(values: Floats) -> Floats:
    """The sum along the first axis, added in order."""
    total = np.zeros(values.shape[1:])
    for row in values:
        total += row
    return total
