"""How likely luck alone is: exact binomial tails, shuffled names, intervals of shares, Student's for a few repeats.

Plain numbers in and out; whose hits they are is not known here. Sums of logarithms stand in for factorials, so that
many questions do not overflow; the intervals are Wilson's, which behave at nought and at all.
"""

import math
from collections.abc import Sequence
from itertools import accumulate, permutations
from statistics import NormalDist

import numpy as np
from numpy.random import PCG64, Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.core.market import Ints
from pitboss.core.noun import noun

CONFIDENCE = 0.95
FEW_NAMES = 7
DRAWN_AT_ONCE = 2_000
_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@noun
class HitRate:
    """So many hits of so many, with a 95 % interval around the share."""

    hits: int
    of: int
    share: float | None
    interval: tuple[float, float] | None


@noun
class Spread:
    """A mean with a 95 % interval around it; None where too little is known for one."""

    mean: float | None
    interval: tuple[float, float] | None

    @property
    def side(self) -> int:
        """1 if all of the interval lies above zero, −1 if below, else 0."""
        if self.interval is None:
            return 0
        low, high = self.interval
        return 1 if low > 0 else -1 if high < 0 else 0


def rate(hits: int, of: int) -> HitRate:
    """A share with its Wilson interval."""
    return HitRate(hits, of, hits / of if of else None, wilson(hits, of) if of else None)


def wilson(hits: int, of: int) -> tuple[float, float]:
    """Wilson's score interval of a share."""
    share, spread = hits / of, _Z * _Z / of
    middle = (share + spread / 2) / (1 + spread)
    reach = _Z / (1 + spread) * math.sqrt(share * (1 - share) / of + spread / (4 * of))
    return max(0.0, middle - reach) if hits else 0.0, min(1.0, middle + reach) if hits < of else 1.0


def at_least(hits: int, of: int, chance: float) -> float:
    """Probability of `hits` or more among `of` independent tries that succeed with `chance` each; exact."""
    if hits > of:
        return 0.0
    if hits <= 0 or chance >= 1:
        return 1.0
    if chance <= 0:
        return 0.0
    step, rest = math.log(chance), math.log1p(-chance)
    terms = (_choose(of, count) + count * step + (of - count) * rest for count in range(hits, of + 1))
    return min(1.0, math.fsum(map(math.exp, terms)))


def shuffled(counts: Ints, draws: int = 20_000, seed: int = 0) -> float:
    """Probability of as many agreements when names are shuffled: rows are truths, columns answers, both by name.

    Every order of the names is tried where there are few; else so many are drawn, and the one at hand counts among them.
    """
    size = len(counts)
    row = np.arange(size)
    hits = int(counts[row, row].sum())
    if size <= FEW_NAMES:
        orders = np.array(list(permutations(range(size))))
        return float((counts[row, orders].sum(axis=1) >= hits).mean())
    random = Generator(PCG64([seed, size]))
    as_many = 1
    for _ in range(0, draws, DRAWN_AT_ONCE):
        orders = random.random((DRAWN_AT_ONCE, size)).argsort(axis=1)
        as_many += int((counts[row, orders].sum(axis=1) >= hits).sum())
    return as_many / (-(-draws // DRAWN_AT_ONCE) * DRAWN_AT_ONCE + 1)


def _choose(of: int, count: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(count + 1) - math.lgamma(of - count + 1)


def holm(values: Sequence[float]) -> list[float]:
    """Probabilities of several tests, each raised so that the chance of any false alarm stays what it was (Holm)."""
    order = sorted(range(len(values)), key=lambda place: values[place])
    raised = accumulate((min(1.0, (len(values) - rank) * values[place]) for rank, place in enumerate(order)), max)
    found = dict(zip(order, raised, strict=True))
    return [found[place] for place in range(len(values))]


def repeated(values: Sequence[float]) -> Spread:
    """The mean of a few repeats with Student's interval; one alone has none."""
    count = len(values)
    if not count:
        return Spread(None, None)
    mean = math.fsum(values) / count
    if count < 2:
        return Spread(mean, None)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    reach = student(count - 1) * deviation / math.sqrt(count)
    return Spread(mean, (mean - reach, mean + reach))


def student(freedom: int, confidence: float = CONFIDENCE) -> float:
    """The t for which Student's distribution holds `confidence` between −t and t. `freedom` is a whole number."""
    low, high = 0.0, math.pi / 2
    for _ in range(80):  # halving the angle atan(t/√ν), in which the whole line is finite
        middle = (low + high) / 2
        low, high = (middle, high) if _inside(middle, freedom) < confidence else (low, middle)
    return math.tan((low + high) / 2) * math.sqrt(freedom)


def _inside(angle: float, freedom: int) -> float:
    cos, sin = math.cos(angle), math.sin(angle)
    odd = freedom % 2
    total = term = (cos if freedom > 1 else 0.0) if odd else 1.0
    for number in range(3 if odd else 2, freedom - 1, 2):
        term *= cos * cos * (number - 1) / number
        total += term
    return 2 / math.pi * (angle + sin * total) if odd else sin * total
