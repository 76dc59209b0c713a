"""Scores of probability forecasts: Brier score, log loss, and the skill against a reference with its interval.

Plain floats in, plain floats out; markets are labels only. Sums use `fsum` and the bootstrap adds elementwise, so that
the same numbers and seed give the same digits on every machine.
"""

import math
from collections.abc import Sequence

import numpy as np

from pitboss.core.market import Floats
from pitboss.sim.statistics.bootstrap import interval
from pitboss.sim.statistics.returns import finite

CLIP = 0.001
"""Log loss limits probabilities to [CLIP, 1 − CLIP]: a wrong certainty costs 6.9 instead of infinity."""

DRAWS = 2_000
MIN_MARKETS = 20
"""With fewer markets a resampled interval is too unreliable to show."""


def brier(chances: Sequence[float], won: Sequence[bool]) -> float | None:
    """The mean squared error of probabilities: 0 is perfect, 0.25 is a constant 50 %. None without forecasts."""
    if not chances:
        return None
    return math.fsum((chance - hit) ** 2 for chance, hit in zip(chances, won, strict=True)) / len(chances)


def log_loss(chances: Sequence[float], won: Sequence[bool]) -> float | None:
    """The mean −ln of the clipped probability of the outcome that occurred; a constant 50 % has 0.693. None without forecasts."""
    if not chances:
        return None
    likelihoods = (_clip(chance if hit else 1.0 - chance) for chance, hit in zip(chances, won, strict=True))
    return -math.fsum(map(math.log, likelihoods)) / len(chances)


def _clip(chance: float) -> float:
    return min(1.0 - CLIP, max(CLIP, chance))


def skill(score: float | None, reference: float | None) -> float | None:
    """1 − score / reference: above zero is better than the reference, 1 is perfect. None against a perfect reference."""
    if score is None or not reference:
        return None
    return finite(1.0 - score / reference)


def skill_interval(
    chances: Sequence[float],
    reference: Sequence[float],
    won: Sequence[bool],
    markets: Sequence[str],
    seed: int,
    draws: int = DRAWS,
) -> list[float] | None:
    """The 95 % bootstrap interval of the Brier skill over resampled markets; None with fewer than `MIN_MARKETS`.

    Calls on one market share its outcome, so whole markets are drawn with replacement, as many as there are.
    """
    ours, theirs = market_errors(chances, reference, won, markets)
    count = len(ours)
    if count < MIN_MARKETS:
        return None
    random = np.random.Generator(np.random.PCG64(seed))  # noqa: TID251 (seeded: same seed, same bytes)
    sums = np.zeros((2, draws))
    for _ in range(count):
        sample = np.minimum((random.random(draws) * count).astype(np.int64), count - 1)
        sums[0] += ours[sample]
        sums[1] += theirs[sample]
    usable = sums[1] > 0  # against a perfect reference the skill is undefined
    return interval(1.0 - sums[0][usable] / sums[1][usable])


def market_errors(
    chances: Sequence[float], reference: Sequence[float], won: Sequence[bool], markets: Sequence[str]
) -> tuple[Floats, Floats]:
    """The summed squared errors of forecast and reference per market, in order of first appearance."""
    errors: dict[str, tuple[list[float], list[float]]] = {}
    for chance, reference_chance, hit, market in zip(chances, reference, won, markets, strict=True):
        ours, theirs = errors.setdefault(market, ([], []))
        ours.append((chance - hit) ** 2)
        theirs.append((reference_chance - hit) ** 2)
    rows = [(math.fsum(ours), math.fsum(theirs)) for ours, theirs in errors.values()]
    columns = np.array(rows, np.float64).reshape(len(rows), 2)
    return columns[:, 0].copy(), columns[:, 1].copy()
