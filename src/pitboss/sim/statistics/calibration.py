"""Calibration of forecasts: for each bin of forecast probability, the observed share of events.

Works on plain numbers. The intervals treat calls as independent; several calls on one market are not, so with many of
those the true intervals are wider.
"""

import math
from collections.abc import Sequence
from typing import Any

from pitboss.sim.statistics.binomial import wilson

BINS = 10


def bin_of(chance: float, bins: int = BINS) -> int:
    """The bin of a probability: the lower edge is inside, the upper edge outside except for the last bin."""
    index = min(bins - 1, int(chance * bins))
    # The product may round across an edge, so the edges themselves decide.
    if chance < index / bins:
        return index - 1
    return index + 1 if index < bins - 1 and chance >= (index + 1) / bins else index


def curve(chances: Sequence[float], won: Sequence[bool], bins: int = BINS) -> list[dict[str, Any]]:
    """One row per bin that has calls: its edges, count, mean probability, observed share and the interval of that share."""
    members: list[list[float]] = [[] for _ in range(bins)]
    hits = [0] * bins
    for chance, hit in zip(chances, won, strict=True):
        index = bin_of(chance, bins)
        members[index].append(chance)
        hits[index] += hit
    return [
        {
            "from": index / bins,
            "to": (index + 1) / bins,
            "calls": len(inside),
            "mean": math.fsum(inside) / len(inside),
            "observed": hits[index] / len(inside),
            "interval": wilson(hits[index], len(inside)),
        }
        for index, inside in enumerate(members)
        if inside
    ]


def calibration_error(rows: Sequence[dict[str, Any]]) -> float | None:
    """The expected calibration error: the mean distance of forecast and observed share over all calls; None without calls."""
    count = sum(row["calls"] for row in rows)
    if not count:
        return None
    return math.fsum(row["calls"] * abs(row["mean"] - row["observed"]) for row in rows) / count
