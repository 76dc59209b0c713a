"""Tiers: entries that are not significantly worse than the best of a tier share it.

From the top down, an entry joins the current tier unless the first entry of that tier is significantly better; then it
starts the next tier. Significance is not transitive (the first may differ from the third while neither differs from the
second), so every entry also has the range of ranks that the comparisons leave open: below all entries that are significantly
better, above all that are significantly worse.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pitboss.sim.statistics.paired import PairedDifference


@dataclass(frozen=True, slots=True)
class TierRank:
    """The tier of an entry, from 1, and the best and worst rank that cannot be ruled out."""

    entry: int
    tier: int
    best_rank: int
    worst_rank: int


def tiers(scores: Sequence[float], differences: Sequence[PairedDifference]) -> list[TierRank]:
    """The entries by descending score; equal scores keep their order."""
    sides: dict[tuple[int, int], int] = {}
    for difference in differences:
        sides[difference.first, difference.second] = difference.side
        sides[difference.second, difference.first] = -difference.side
    order = sorted(range(len(scores)), key=lambda entry: (-scores[entry], entry))
    ranks: list[TierRank] = []
    tier, leader = 0, -1
    for entry in order:
        if not tier or sides.get((leader, entry), 0) > 0:
            tier, leader = tier + 1, entry
        better = sum(sides.get((rival, entry), 0) > 0 for rival in order)
        worse = sum(sides.get((rival, entry), 0) < 0 for rival in order)
        ranks.append(TierRank(entry, tier, 1 + better, len(scores) - worse))
    return ranks
