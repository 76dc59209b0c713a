"""Compares recorded up/down rounds with the outcomes that this venue's settlement rule gives for a price history.

Pure: columns in, a report out. A round asks whether the price at its end is above the price at its start. Recorded
outcomes come from a different price source, so rounds with a very small move may differ.
"""

from collections.abc import Sequence

import numpy as np

from pitboss.core.instant import Instant
from pitboss.core.market import Floats, Ints
from pitboss.core.noun import noun

BANDS_BPS = (1.0, 2.0, 5.0, 10.0)


@noun
class Miss:
    """A round whose computed settlement differs from the recorded one."""

    start_at: Instant
    duration_s: int
    open: float
    close: float
    move_bps: float
    recorded_up: bool


@noun
class Agreement:
    """The comparison of all rounds with a recorded outcome and prices at both ends.

    `misses` are sorted by size of move, largest first.
    """

    rounds: int
    agreed: int
    undecided: int
    """Rounds without an outcome: the recorded price of UP is neither 0 nor 1."""
    unpriced: int
    """Rounds for which the history has no price."""
    misses: tuple[Miss, ...]

    @property
    def share(self) -> float:
        """Return the fraction of rounds that agree."""
        return self.agreed / self.rounds if self.rounds else 0.0

    def bands(self, edges_bps: Sequence[float] = BANDS_BPS) -> tuple[tuple[str, int], ...]:
        """Count the misses per band of moves in basis points."""
        counts: list[tuple[str, int]] = []
        low = 0.0
        for high in (*edges_bps, float("inf")):
            label = (
                f"under {high:g} bps"
                if not low
                else f"{low:g} bps or more"
                if high == float("inf")
                else f"{low:g} to {high:g} bps"
            )
            counts.append((label, sum(low <= abs(miss.move_bps) < high for miss in self.misses)))
            low = high
        return tuple(counts)


def first_price(times: Ints, prices: Floats, at: Ints, within_ms: int) -> Floats:
    """Return the first price at or after each instant, NaN if none follows in time. `times` must be sorted."""
    indices = np.searchsorted(times, at, side="left")
    clipped = np.minimum(indices, max(len(times) - 1, 0))
    following = prices[clipped] if len(times) else np.full(len(at), np.nan)
    late = (indices >= len(times)) | ((times[clipped] - at > within_ms) if len(times) else True)
    return np.where(late, np.nan, following)


def compare(
    start_at: Ints, duration_s: Ints, up_price: Floats, times: Ints, prices: Floats, within_ms: int = 60_000
) -> Agreement:
    """Settle each round: the first price at or after its end against the first at or after its start; a tie is NO."""
    opened = first_price(times, prices, start_at, within_ms)
    closed = first_price(times, prices, start_at + duration_s * 1000, within_ms)
    decided = (up_price == 0.0) | (up_price == 1.0)
    priced = np.isfinite(opened) & np.isfinite(closed)
    used = decided & priced
    ours, theirs = closed > opened, up_price == 1.0
    indices = np.flatnonzero(used & (ours != theirs)).tolist()
    moves = (closed / opened - 1) * 10_000
    misses = [
        Miss(
            int(start_at[index]),
            int(duration_s[index]),
            float(opened[index]),
            float(closed[index]),
            float(moves[index]),
            bool(theirs[index]),
        )
        for index in indices
    ]
    misses.sort(key=lambda miss: (-abs(miss.move_bps), miss.start_at))
    total = int(np.count_nonzero(used))
    return Agreement(
        total,
        total - len(misses),
        int(np.count_nonzero(~decided)),
        int(np.count_nonzero(decided & ~priced)),
        tuple(misses),
    )
