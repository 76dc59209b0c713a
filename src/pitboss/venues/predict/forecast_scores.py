"""How good probabilities were: Brier score, log loss, and the skill against a reference, with an interval.

Plain floats in, plain floats out: it knows no calls and no markets but as labels. Sums are taken with `fsum` and the
bootstrap adds elementwise only, so that the same numbers and seed give the same digits on every machine.
"""

import math
from collections.abc import Sequence

import numpy as np

from pitboss.core.market import Floats
from pitboss.sim.statistics import interval

CLIP = 0.001
"""Log loss takes no probability below this or above its complement: a wrong certainty costs 6.9, not infinity."""

DRAWS = 2_000
MIN_MARKETS = 20
"""With fewer markets an interval would be a guess about a guess."""


def brier(chances: Sequence[float], won: Sequence[bool]) -> float | None:
    """Mean squared distance of probability and outcome: 0 is perfect, 0.25 is a coin. None of nothing."""
    if not chances:
        return None
    return math.fsum((chance - hit) ** 2 for chance, hit in zip(chances, won, strict=True)) / len(chances)


def log_loss(chances: Sequence[float], won: Sequence[bool]) -> float | None:
    """Mean of −ln of the probability given to what happened, clipped; a coin has 0.693. None of nothing."""
    if not chances:
        return None
    given = (clipped(chance if hit else 1.0 - chance) for chance, hit in zip(chances, won, strict=True))
    return -math.fsum(map(math.log, given)) / len(chances)


def clipped(chance: float) -> float:
    """A probability as log loss takes it."""
    return min(1.0 - CLIP, max(CLIP, chance))


def skill(score: float | None, reference: float | None) -> float | None:
    """1 − score / reference: above zero is better than the reference, 1 is perfect. None beside a perfect reference."""
    if score is None or not reference:
        return None
    found = 1.0 - score / reference
    return found if math.isfinite(found) else None


def skill_interval(
    chances: Sequence[float],
    others: Sequence[float],
    won: Sequence[bool],
    markets: Sequence[str],
    seed: int,
    draws: int = DRAWS,
) -> list[float] | None:
    """The middle 95 % of the Brier skill over resampled markets; None with fewer than `MIN_MARKETS` of them.

    Calls on one market share its outcome, so whole markets are drawn, with replacement, as many as there are.
    """
    ours, theirs = market_errors(chances, others, won, markets)
    count = len(ours)
    if count < MIN_MARKETS:
        return None
    random = np.random.Generator(np.random.PCG64(seed))  # noqa: TID251 (seeded: same seed, same bytes)
    sums = np.zeros((2, draws))
    for _ in range(count):
        drawn = np.minimum((random.random(draws) * count).astype(np.int64), count - 1)
        sums[0] += ours[drawn]
        sums[1] += theirs[drawn]
    usable = sums[1] > 0  # a draw in which the reference was perfect has no skill to speak of
    return interval(1.0 - sums[0][usable] / sums[1][usable])


def market_errors(
    chances: Sequence[float], others: Sequence[float], won: Sequence[bool], markets: Sequence[str]
) -> tuple[Floats, Floats]:
    """Summed squared errors of both forecasters for each market, in the order of first appearance."""
    gathered: dict[str, tuple[list[float], list[float]]] = {}
    for chance, other, hit, market in zip(chances, others, won, markets, strict=True):
        ours, theirs = gathered.setdefault(market, ([], []))
        ours.append((chance - hit) ** 2)
        theirs.append((other - hit) ** 2)
    rows = [(math.fsum(ours), math.fsum(theirs)) for ours, theirs in gathered.values()]
    columns = np.array(rows, np.float64).reshape(len(rows), 2)
    return columns[:, 0].copy(), columns[:, 1].copy()
