"""Charts of pure chance, from which the table of `analysis.pattern_rarity` is counted. Run it to print the table anew."""

import numpy as np

from pitboss.core.market import Bars
from pitboss.venues.perp.analysis.pattern_rarity import FITS, LENGTHS
from pitboss.venues.perp.analysis.patterns import FAMILIES, patterns
from pitboss.venues.perp.analysis.swings import chart_of

STEPS_A_BAR = 8


def walk(random: np.random.Generator, count: int, spread: float = 0.002) -> Bars:
    """Bars of a driftless random walk in log prices, with eight steps inside each bar."""
    steps = random.standard_normal(count * STEPS_A_BAR) * spread / np.sqrt(STEPS_A_BAR)
    path = 100.0 * np.exp(np.cumsum(steps)).reshape(count, STEPS_A_BAR)
    first, close = np.concatenate(([100.0], path[:-1, -1])), path[:, -1]
    high, low = np.maximum(path.max(axis=1), first), np.minimum(path.min(axis=1), first)
    return Bars("X", "5m", 300_000, np.arange(count) * 300_000, first, high, low, close, np.ones(count))


def count_patterns(random: np.random.Generator, length: int, charts: int) -> dict[str, list[float]]:
    """The share of charts on which a family's best fit is at least each of `FITS`."""
    best = {family: np.zeros(charts) for family in FAMILIES}
    for number in range(charts):
        for shape in patterns(chart_of(walk(random, length))):
            best[shape.family][number] = max(best[shape.family][number], shape.fit)
    return {family: [float(np.mean(fits >= max(fit, 1e-12))) for fit in FITS] for family, fits in best.items()}


if __name__ == "__main__":
    generator = np.random.default_rng(7)
    for length in LENGTHS:
        for family, shares in count_patterns(generator, length, 20_000).items():
            print(f"    ({length}, {family!r}): ({', '.join(str(round(100_000 * share)) for share in shares)}),")
