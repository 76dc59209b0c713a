"""Ranks as far as they can be told: entries that cannot be told from the best of a tier share it.

From the top down, an entry joins the tier whose first it cannot be told from, else it begins the next one. Being told apart
is no chain (the first from the third, but neither from the second), so beside its tier every entry has the range of ranks
that the comparisons leave open: below all that are surely better, above all that are surely worse.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pitboss.sim.study.paired import PairedDifference


@dataclass(frozen=True, slots=True)
class TierRank:
    """Where an entry stands: its tier from 1, and the best and worst rank that cannot be ruled out."""

    entry: int
    tier: int
    best_rank: int
    worst_rank: int


def tiers(scores: Sequence[float], found: Sequence[PairedDifference]) -> list[TierRank]:
    """The entries from the best score down, the first of equals first."""
    sides: dict[tuple[int, int], int] = {}
    for one in found:
        sides[one.first, one.second] = one.side
        sides[one.second, one.first] = -one.side
    order = sorted(range(len(scores)), key=lambda entry: (-scores[entry], entry))
    places: list[TierRank] = []
    tier, leader = 0, -1
    for entry in order:
        if not tier or sides.get((leader, entry), 0) > 0:
            tier, leader = tier + 1, entry
        better = sum(sides.get((other, entry), 0) > 0 for other in order)
        worse = sum(sides.get((other, entry), 0) < 0 for other in order)
        places.append(TierRank(entry, tier, 1 + better, len(scores) - worse))
    return places
