"""The adverse path of one bar: every price moves together from its open to its worst extreme, λ from 0 to 1.

Stops and liquidation happen in order of λ; after each event the remaining positions are checked again from the same λ.
This module only finds the next event; `world.py` books it.
"""

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Literal

from pitboss.core.money import ONE, ZERO
from pitboss.core.noun import noun
from pitboss.venues.perp.state import Position, TradingTerms


@noun
class SymbolPath:
    """The path of one held symbol through the bar; without a bar it stays at its mark."""

    start: Decimal
    end: Decimal
    moves: bool

    def at(self, lam: Decimal) -> Decimal:
        """Return the price at λ."""
        return self.start + (self.end - self.start) * lam


@noun
class PathEvent:
    """The next event on the path; `price` is the stop's trigger price, or the open on a gap."""

    lam: Decimal
    kind: Literal["stop", "liquidation"]
    symbol: str = ""
    price: Decimal = ZERO


def next_event(
    positions: Mapping[str, Position],
    paths: Mapping[str, SymbolPath],
    base: Decimal,
    terms: TradingTerms,
    lam: Decimal,
    no_volume: Collection[str] = (),
) -> PathEvent | None:
    """Return the first stop or liquidation at or after λ; on a tie stops come first, then code-point order.

    Stops in the symbols of `no_volume`, whose volume of this bar is used up, are left out. A stop that only continues what an
    earlier bar had no volume for comes last: an account that is due for liquidation by then is liquidated.
    """
    best: PathEvent | None = None
    continuation: PathEvent | None = None
    for symbol in sorted(positions):
        position, path = positions[symbol], paths[symbol]
        if position.stop is None or not path.moves or symbol in no_volume:
            continue
        if position.stopping:
            continuation = continuation or PathEvent(lam, "stop", symbol, path.start)
            continue
        event = _stop(symbol, position, path, position.stop)
        if event is not None and (best is None or event.lam < best.lam):
            best = event
    if best is not None and best.lam < lam:
        best = PathEvent(lam, "stop", best.symbol, best.price)
    if continuation is not None and (best is None or best.lam > lam):
        due = _liquidation(positions, paths, base, terms, lam, lam) is not None
        return PathEvent(lam, "liquidation") if due else continuation
    until = ONE if best is None else best.lam
    breach = _liquidation(positions, paths, base, terms, lam, until)
    if breach is not None and (best is None or breach < best.lam):
        return PathEvent(breach, "liquidation")
    return best


def _stop(symbol: str, position: Position, path: SymbolPath, stop: Decimal) -> PathEvent | None:
    side = position.side
    if side * (path.start - stop) <= 0:
        return PathEvent(ZERO, "stop", symbol, path.start)
    if side * (path.end - stop) > 0:
        return None
    return PathEvent((path.start - stop) / (path.start - path.end), "stop", symbol, stop)


def _liquidation(
    positions: Mapping[str, Position],
    paths: Mapping[str, SymbolPath],
    base: Decimal,
    terms: TradingTerms,
    lam: Decimal,
    until: Decimal,
) -> Decimal | None:
    """Return the first λ in `[lam, until]` where equity is not above maintenance.

    Both are linear in λ between the points where a notional crosses into another tier, so each piece has at most one
    crossing.
    """
    if not positions:
        return None

    def slack(point: Decimal) -> Decimal:
        equity, needed = base, ZERO
        for symbol in sorted(positions):
            value = positions[symbol].size * paths[symbol].at(point)
            equity += value
            needed += terms.assets[symbol].maintenance(abs(value))
        return equity - needed

    before = slack(lam)
    if before <= 0:
        return lam
    points = [*_tier_crossings(positions, paths, terms, lam, until), until]
    start = lam
    for point in points:
        after = slack(point)
        if after <= 0:
            return start + (point - start) * before / (before - after)
        start, before = point, after
    return None


def _tier_crossings(
    positions: Mapping[str, Position],
    paths: Mapping[str, SymbolPath],
    terms: TradingTerms,
    lam: Decimal,
    until: Decimal,
) -> list[Decimal]:
    points: set[Decimal] = set()
    for symbol, position in positions.items():
        path, size = paths[symbol], abs(position.size)
        travel = size * (path.end - path.start)
        if travel == 0:
            continue
        for tier in terms.assets[symbol].tiers[1:]:
            point = (tier.from_notional - size * path.start) / travel
            if lam < point < until:
                points.add(point)
    return sorted(points)
