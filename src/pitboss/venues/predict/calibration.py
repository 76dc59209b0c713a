"""Whether what was called 70 % happened 70 times in a hundred: bins of probability with what was observed in each.

It sees numbers only. Its intervals treat calls as independent; several calls on one market are not, so where those are
many the true intervals are wider.
"""

import math
from collections.abc import Sequence
from typing import Any

BINS = 10
Z = 1.959963984540054
"""Of a normal distribution 95 % lie within so many deviations."""


def wilson(hits: int, count: int) -> list[float] | None:
    """The 95 % interval of a share by Wilson's score, as [lo, hi]; None of nothing."""
    if count <= 0:
        return None
    share = hits / count
    square = Z * Z / count
    middle = (share + square / 2) / (1 + square)
    half = Z * math.sqrt(share * (1 - share) / count + square / (4 * count)) / (1 + square)
    # The ends of the sure cases are exactly 0 and 1; rounding must not put the share itself outside.
    return [min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half))]


def bin_of(chance: float, bins: int = BINS) -> int:
    """The bin of a probability: lower edge in, upper edge out, but for the last."""
    place = min(bins - 1, int(chance * bins))
    # The product may round across an edge; the edges themselves decide.
    if chance < place / bins:
        return place - 1
    return place + 1 if place < bins - 1 and chance >= (place + 1) / bins else place


def curve(chances: Sequence[float], won: Sequence[bool], bins: int = BINS) -> list[dict[str, Any]]:
    """One row for each bin that has calls: its edges, count, mean probability, observed share and its interval."""
    held: list[list[float]] = [[] for _ in range(bins)]
    hits = [0] * bins
    for chance, hit in zip(chances, won, strict=True):
        place = bin_of(chance, bins)
        held[place].append(chance)
        hits[place] += hit
    return [
        {
            "from": place / bins,
            "to": (place + 1) / bins,
            "calls": len(inside),
            "mean": math.fsum(inside) / len(inside),
            "observed": hits[place] / len(inside),
            "interval": wilson(hits[place], len(inside)),
        }
        for place, inside in enumerate(held)
        if inside
    ]


def error(rows: Sequence[dict[str, Any]]) -> float | None:
    """How far mean and observed are apart, on average over the calls of a curve; None of nothing."""
    count = sum(row["calls"] for row in rows)
    if not count:
        return None
    return math.fsum(row["calls"] * abs(row["mean"] - row["observed"]) for row in rows) / count
