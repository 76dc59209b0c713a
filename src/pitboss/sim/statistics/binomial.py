"""Shares and how likely chance explains them: Wilson's interval, exact binomial tails, a permutation test, Holm's correction.

Binomial terms are computed from logarithms of the gamma function, so that large counts do not overflow. Wilson's interval
is used because it behaves well at shares of 0 and 1.
"""

import math
from collections.abc import Sequence
from itertools import accumulate, permutations

import numpy as np
from numpy.random import PCG64, Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.core.market import Ints
from pitboss.core.noun import noun

Z = 1.959963984540054
"""The 97.5 % quantile of the normal distribution: 95 % of it lie within this many deviations."""
MAX_ENUMERATED_NAMES = 7
"""Up to this many names every permutation is tried."""
ORDERS_AT_ONCE = 2_000


@noun
class HitRate:
    """The number of hits among tries, with a 95 % interval of their share."""

    hits: int
    of: int
    share: float | None
    interval: tuple[float, float] | None


def hit_rate(hits: int, of: int) -> HitRate:
    """A share with its Wilson interval; neither of them without tries."""
    interval = wilson(hits, of)
    return HitRate(hits, of, hits / of if of else None, None if interval is None else (interval[0], interval[1]))


def wilson(hits: int, count: int) -> list[float] | None:
    """Wilson's 95 % score interval of a share as [lo, hi]; None without tries."""
    if count <= 0:
        return None
    share = hits / count
    square = Z * Z / count
    middle = (share + square / 2) / (1 + square)
    half = Z * math.sqrt(share * (1 - share) / count + square / (4 * count)) / (1 + square)
    # At shares of 0 and 1 an end is exactly the share; rounding must not put the share outside.
    return [min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half))]


def binomial_tail(hits: int, of: int, chance: float) -> float:
    """The exact probability of at least `hits` successes in `of` independent tries that succeed with `chance` each."""
    if hits > of:
        return 0.0
    if hits <= 0 or chance >= 1:
        return 1.0
    if chance <= 0:
        return 0.0
    log_success, log_failure = math.log(chance), math.log1p(-chance)
    terms = (_log_choose(of, count) + count * log_success + (of - count) * log_failure for count in range(hits, of + 1))
    return min(1.0, math.fsum(map(math.exp, terms)))


def permutation_p_value(counts: Ints, draws: int = 20_000, seed: int = 0) -> float:
    """The probability of at least as many agreements if answers are permuted among names.

    `counts` is a square table: rows are true names, columns answered names, both in the same order. With few names every
    permutation is tried; otherwise `draws` random ones are, and the observed one counts among them.
    """
    size = len(counts)
    row = np.arange(size)
    hits = int(counts[row, row].sum())
    if size <= MAX_ENUMERATED_NAMES:
        orders = np.array(list(permutations(range(size))))
        return float((counts[row, orders].sum(axis=1) >= hits).mean())
    random = Generator(PCG64([seed, size]))
    at_least_as_many = 1
    for _ in range(0, draws, ORDERS_AT_ONCE):
        orders = random.random((ORDERS_AT_ONCE, size)).argsort(axis=1)
        at_least_as_many += int((counts[row, orders].sum(axis=1) >= hits).sum())
    return at_least_as_many / (-(-draws // ORDERS_AT_ONCE) * ORDERS_AT_ONCE + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: p-values of several tests, adjusted so that the chance of any false alarm stays controlled."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = accumulate((min(1.0, (len(p_values) - rank) * p_values[index]) for rank, index in enumerate(order)), max)
    by_index = dict(zip(order, adjusted, strict=True))
    return [by_index[index] for index in range(len(p_values))]


def _log_choose(of: int, count: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(count + 1) - math.lgamma(of - count + 1)
