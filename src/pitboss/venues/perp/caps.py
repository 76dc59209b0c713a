"""The hard limits of an account and what is left of each; rules and prompt use the same numbers."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache

from pitboss.core.instant import HOUR_MS, Instant
from pitboss.core.money import HUNDRED, ZERO, exact
from pitboss.core.noun import noun
from pitboss.core.verdict import Margin
from pitboss.venues.perp.state import PerpWorld, TradingTerms, day_reference_at, equity, free_margin

VENUE_MINIMUM_USD = Decimal(10)


@noun
class PerpCaps:
    """The limits of one skill; percentages are of equity, by notional."""

    max_position_pct: Decimal = Decimal(25)
    max_total_exposure_pct: Decimal = Decimal(100)
    max_leverage: Decimal = Decimal(3)
    min_order_usd: Decimal = Decimal(10)
    max_order_usd: Decimal | None = None
    max_orders_per_hour: int = 12
    daily_loss_halt_pct: Decimal = Decimal(5)
    drawdown_halt_pct: Decimal = Decimal(15)
    price_band_pct: Decimal = Decimal(5)
    max_data_age_ms: int = 1_800_000
    symbols: tuple[str, ...] = ()
    allowed_symbols: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    """Symbols of the skill that the venue does not list at the current tick."""

    def without(self, unlisted: tuple[str, ...]) -> "PerpCaps":
        """Return the caps of a tick at which the venue does not list these symbols."""
        return self if unlisted == self.unlisted else _without(self, unlisted)

    def opens_allowed(self, symbol: str) -> bool:
        """Return whether the skill allows opens in a symbol."""
        return symbol in self.symbols and (not self.allowed_symbols or symbol in self.allowed_symbols)


@lru_cache(maxsize=64)
def _without(caps: PerpCaps, unlisted: tuple[str, ...]) -> PerpCaps:
    # the same object for all ticks between two changes, because dependent texts are cached by its identity
    return replace(caps, unlisted=unlisted)


def exposure(world: PerpWorld, symbol: str) -> Decimal:
    """Return the notional of a symbol: position at mark plus working opens, each at the worse of mark and limit."""
    mark = world.marks.get(symbol, ZERO)
    position = world.positions.get(symbol)
    total = abs(position.size) * mark if position else ZERO
    for order in world.orders:
        if order.opens and order.symbol == symbol:
            total += order.size * max(mark, order.limit or ZERO)
    return total


def exposed_symbols(world: PerpWorld) -> list[str]:
    """Return the symbols with a position or a working open."""
    if not world.orders:
        return sorted(world.positions) if len(world.positions) > 1 else list(world.positions)
    return sorted({*world.positions, *(order.symbol for order in world.orders if order.opens)})


def total_exposure(world: PerpWorld) -> Decimal:
    """Return the notional of all symbols, each counted by `exposure`."""
    total = ZERO
    for symbol in exposed_symbols(world):
        total += exposure(world, symbol)
    return total


def recent_opens(accepted_opens: Sequence[Instant], now: Instant) -> int:
    """Return the number of opens accepted in the last hour; `accepted_opens` is in order of acceptance."""
    return len(accepted_opens) - bisect_right(accepted_opens, now - HOUR_MS)


def min_order(caps: PerpCaps) -> Decimal:
    """Return the smallest allowed order: the skill's minimum or the venue's, whichever is larger."""
    return max(caps.min_order_usd, VENUE_MINIMUM_USD)


@exact
def room(
    world: PerpWorld, terms: TradingTerms, caps: PerpCaps, accepted_opens: Sequence[Instant], now: Instant
) -> list[Margin]:
    """Return every cap with its limit, its use and what is left; percent and USD caps are in USD."""
    value = equity(world)
    lines: list[Margin] = []
    position_cap = caps.max_position_pct * value / HUNDRED
    for symbol in caps.symbols:
        used = exposure(world, symbol)
        lines.append(_usd(f"R3_POSITION_CAP {symbol}", position_cap, used))
    total = total_exposure(world)
    lines.append(_usd("R4_EXPOSURE_CAP", caps.max_total_exposure_pct * value / HUNDRED, total))
    for symbol in caps.symbols:
        asset = terms.assets.get(symbol)
        top = min(caps.max_leverage, Decimal(asset.max_leverage)) if asset else caps.max_leverage
        set_to = Decimal(world.leverage.get(symbol, 1))
        lines.append(Margin(f"R5_LEVERAGE_CAP {symbol}", top, set_to, top - set_to, "x"))
    used_rate = recent_opens(accepted_opens, now)
    most_rate = Decimal(caps.max_orders_per_hour)
    lines.append(Margin("R7_ORDER_RATE", most_rate, Decimal(used_rate), most_rate - used_rate, "opens/h"))
    for name, reference, pct in (
        ("R8_HALTED daily_loss", day_reference_at(world, now), caps.daily_loss_halt_pct),
        ("R8_HALTED drawdown", world.peak, caps.drawdown_halt_pct),
    ):
        lines.append(_usd(name, pct * reference / HUNDRED, max(ZERO, reference - value)))
    free = free_margin(world)
    lines.append(Margin("R9_MARGIN", free, ZERO, free, "usd"))
    return lines


def _usd(code: str, limit: Decimal, used: Decimal) -> Margin:
    return Margin(code, limit, used, limit - used, "usd")
