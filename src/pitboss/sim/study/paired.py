"""Differences between entries that lived through the same days: how large, and how sure.

Every entry is one or more repeats of daily returns over the same days. What is compared is how much each ends with: the
mean logarithm of the final equity over its repeats, which is told as "ended so many percent above". All entries are
resampled together: each draw takes the same days for all of them (blocks, `sim.statistics`) and the same repeats, so what
moves all alike falls out of the difference.

Intervals hold for all pairs at once: their common reach is the 95 % quantile of the largest of all studentised differences
of a draw (single-step max-t, Westfall and Young 1993, Romano and Wolf 2005), which corrects for the number of comparisons
and knows that they depend on each other. Few days make a resampled deviation too small and its tails too thin; both are
put right (`_Correction`). Knows nothing of models or runs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.random import PCG64, Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.core.errors import InvariantError
from pitboss.core.market import Floats
from pitboss.sim.statistics import DRAWS, MIN_BOOTSTRAP_RETURNS, bootstrap_together

LEVEL = 0.95
NOTHING = 1e-12
"""A deviation of differences this small is rounding: there is no difference, or it is the same in every draw."""
RUIN = 1e-6
"""What counts as left of an account that has lost all: a logarithm needs something."""
_NORMAL = NormalDist()
_ALONE = _NORMAL.inv_cdf((1 + LEVEL) / 2)

Entry = Sequence[Sequence[float]]
"""The daily returns of each repeat."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """How much more the first of two entries ended with than the second, in percent of the second.

    `alone` is the 95 % interval of this pair by itself, `together` the one that holds for all pairs at once. None where the
    days are too few to say. `p` is how often luck alone makes a difference this sure somewhere among the pairs.
    """

    first: int
    second: int
    percent: float
    alone: tuple[float, float] | None
    together: tuple[float, float] | None
    p: float | None

    @property
    def side(self) -> int:
        """1 if the first is better beyond doubt, −1 if the second is, else 0."""
        if self.together is None:
            return 0
        low, high = self.together
        return 1 if low > 0 else -1 if high < 0 else 0


def log_growth(returns: Sequence[float]) -> float:
    """The logarithm of what is left of 1 at the end."""
    growth = 1.0
    for value in returns:
        growth *= 1 + value
    return math.log(max(growth, RUIN))


def mean_log_growth(entry: Entry) -> float:
    """Over its repeats."""
    return math.fsum(log_growth(repeat) for repeat in entry) / len(entry)


def differences(entries: Sequence[Entry], draws: int = DRAWS, seed: int = 0) -> list[PairedDifference]:
    """Of every pair of entries, in order. An entry with fewer repeats than another has them used in turn."""
    pairs = list(combinations(range(len(entries)), 2))
    if not pairs:
        return []
    lengths = {len(repeat) for entry in entries for repeat in entry}
    if len(lengths) != 1 or not all(len(entry) for entry in entries):
        raise InvariantError("entries can be compared over the same days only")
    days = lengths.pop()
    observed = [mean_log_growth(entry) for entry in entries]
    apart = [observed[first] - observed[second] for first, second in pairs]
    if days < MIN_BOOTSTRAP_RETURNS:
        return [
            PairedDifference(first, second, _percent(log), None, None, None)
            for (first, second), log in zip(pairs, apart, strict=True)
        ]
    found = resampled(entries, draws, seed)
    columns = np.stack([found[first] - found[second] for first, second in pairs])
    return _judged(pairs, apart, columns, _Correction.of(days))


def resampled(entries: Sequence[Entry], draws: int = DRAWS, seed: int = 0) -> list[Floats]:
    """The mean log growth of each entry in every draw. Days and repeats are the same for all of them."""
    histories = [repeat for entry in entries for repeat in entry]
    found = [np.log(np.maximum(1 + totals, RUIN)) for totals, _ in bootstrap_together(histories, draws, seed)]
    most = max(len(entry) for entry in entries)
    # A stream of its own: which repeats are taken must not depend on how many days there are.
    random = Generator(PCG64([seed, 1]))
    chosen = np.minimum((random.random((most, draws)) * most).astype(np.int64), most - 1)
    rows, means, place = np.arange(draws), list[Floats](), 0
    for entry in entries:
        own = np.stack(found[place : place + len(entry)])
        place += len(entry)
        middle, taken = np.zeros(draws), np.zeros(draws)
        for turn in range(most):
            middle += own[turn % len(entry)]
            taken += own[chosen[turn] % len(entry), rows]
        # A mean of few resampled repeats spreads too little, by just this much.
        wider = math.sqrt(most / (most - 1)) if most > 1 else 1.0
        means.append((middle + wider * (taken - middle)) / most)
    return means


@dataclass(frozen=True, slots=True)
class _Correction:
    """What few days do to a resampled deviation.

    Resampling blocks of mean length b from n days takes the same days for neighbours, so even where days are independent
    its variance comes out (2b − 1)/n too small. And what is estimated from blocks is known only as well as from 1.5 n/b
    values, so reaches are those of Student's distribution with as many degrees of freedom, not of the normal one.
    """

    deviation: float
    freedom: float

    @classmethod
    def of(cls, days: int) -> "_Correction":
        block = days ** (1 / 3)
        return cls(1 / math.sqrt(1 - (2 * block - 1) / days), max(4.0, 1.5 * days / block))

    def reach(self, normal: float) -> float:
        """Student's quantile at the level of a normal one (Abramowitz and Stegun 26.7.5)."""
        z, v = normal, self.freedom
        first = (z**3 + z) / 4
        second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
        third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
        return z + first / v + second / v**2 + third / v**3


def _judged(
    pairs: Sequence[tuple[int, int]], apart: Sequence[float], columns: Floats, correction: _Correction
) -> list[PairedDifference]:
    draws = columns.shape[1]
    middle = np.array([math.fsum(column.tolist()) / draws for column in columns])
    spread = columns - middle[:, None]
    deviation = np.array([math.sqrt(math.fsum((row * row).tolist()) / (draws - 1)) for row in spread])
    moving = deviation > NOTHING
    largest = (np.abs(spread) / np.where(moving, deviation, 1.0)[:, None] * moving[:, None]).max(axis=0)
    common = float(np.quantile(largest, LEVEL))
    together = correction.reach(common)
    alone = correction.reach(_ALONE)
    found: list[PairedDifference] = []
    for place, (first, second) in enumerate(pairs):
        log = apart[place]
        if not moving[place]:
            same = 0.0 if abs(log) <= NOTHING else _percent(log)
            found.append(PairedDifference(first, second, same, (same, same), (same, same), 1.0 if same == 0 else 0.0))
            continue
        wide = float(deviation[place]) * correction.deviation
        beyond = int((largest * (together / common) >= abs(log) / wide).sum())
        found.append(
            PairedDifference(
                first,
                second,
                _percent(log),
                (_percent(log - alone * wide), _percent(log + alone * wide)),
                (_percent(log - together * wide), _percent(log + together * wide)),
                (beyond + 1) / (draws + 1),
            )
        )
    return found


def _percent(log: float) -> float:
    return 100 * math.expm1(min(log, 50.0))
