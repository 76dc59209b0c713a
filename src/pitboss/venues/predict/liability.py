"""The vault's liability for open markets: the value of all open contracts of one oracle.

They are valued on a curve of at most 50 points between the lowest and highest strike ever minted. It starts with those
two and repeatedly halves the gap across which the price of UP drops most. Contracts between two points are valued by
linear interpolation.
"""

from functools import lru_cache
from heapq import heappop, heappush

from pitboss.venues.predict.aborts import OF_FLAW, ZERO_VARIANCE, Abort
from pitboss.venues.predict.state import MarketTerms, Oracle, StrikeBook, StrikeLevel, payout_at, worst_payout
from pitboss.venues.predict.svi import FLOAT, Flaw, Generation, Svi, pricer

Curve = tuple[tuple[int, int], ...]
"""Strikes with the price of UP at each, sorted by strike."""


@lru_cache(maxsize=512)
def make_curve(
    generation: Generation, forward: int, svi: Svi, tick: int, lowest: int, highest: int, most: int
) -> Curve | Flaw:
    """Compute the curve between two strikes of the grid. Cached: one trade needs the same curve several times."""
    up_at = pricer(generation, forward, svi)
    low, high = up_at(lowest), up_at(highest)
    if not isinstance(low, int):
        return low
    if not isinstance(high, int):
        return high
    if lowest == highest:
        return ((lowest, low),)
    high = min(low, high)
    points = {lowest: low, highest: high}
    # A heap of gaps: the drop (negative, so that the largest comes first), the two ends and their prices.
    gaps = [(high - low, lowest, highest, low, high)] if highest - lowest > tick else []
    while gaps and len(points) < most:
        drop, left, right, left_up, right_up = heappop(gaps)
        if drop == 0:
            break  # flat everywhere: further points would lie on the line
        middle = left + (right - left) // tick // 2 * tick
        up = up_at(middle)
        if isinstance(up, str):
            return up
        # Rounding must not make a falling curve rise.
        if up > left_up:
            up = left_up
        elif up < right_up:
            up = right_up
        points[middle] = up
        if middle - left > tick:
            heappush(gaps, (up - left_up, left, middle, left_up, up))
        if right - middle > tick:
            heappush(gaps, (right_up - up, middle, right, up, right_up))
    return tuple(sorted(points.items()))


def mark(levels: tuple[StrikeLevel, ...], ranges: int, curve: Curve) -> int:
    """Return the value of the open contracts on a curve that spans their strikes, rounded down once."""
    total = -ranges * FLOAT
    index = 0
    left, left_up = right, right_up = curve[0]
    for level in levels:
        strike = level.strike
        while strike > right:
            index += 1
            (left, left_up), (right, right_up) = curve[index - 1], curve[index]
        up = right_up if strike == right else left_up - (left_up - right_up) * (strike - left) // (right - left)
        total += level.up * up + level.down * (FLOAT - up)
    return max(0, total // FLOAT)


def refreshed(terms: MarketTerms, oracle: Oracle, book: StrikeBook) -> StrikeBook | Abort:
    """Return the book with its totals recomputed from its levels at the oracle's newest price, or at its settlement."""
    levels, ranges = book.levels, book.ranges
    if not levels:
        mtm = 0
    elif oracle.settlement is not None:
        mtm = payout_at(levels, ranges, oracle.settlement)
    elif oracle.svi is None:
        return ZERO_VARIANCE
    else:
        curve = make_curve(
            terms.generation,
            oracle.forward,
            oracle.svi,
            oracle.grid.tick,
            book.lowest,
            book.highest,
            terms.curve_points,
        )
        if isinstance(curve, str):
            return OF_FLAW[curve]
        mtm = mark(levels, ranges, curve)
    return StrikeBook(levels, ranges, book.lowest, book.highest, mtm, worst_payout(levels, ranges))
