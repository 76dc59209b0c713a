"""The perp account as one frozen value: cash, positions, working orders, leverages, marks, halts.

`TradingTerms` hold what never changes during a run: costs, assets, halt thresholds. Everything here serialises exactly.
"""

from collections.abc import Collection, Mapping
from dataclasses import field
from decimal import Decimal
from typing import Literal

from pitboss.core.asset import Asset
from pitboss.core.instant import Instant, day_of
from pitboss.core.money import BASIS_POINT, ZERO
from pitboss.core.noun import noun

OrderKind = Literal["market", "limit", "close", "reduce"]
Halt = Literal["daily_loss", "drawdown", "operator", "invariant"]


@noun
class TradingTerms:
    """Costs, assets and halt thresholds of a run."""

    assets: Mapping[str, Asset]
    maker_bps: Decimal = Decimal("1.5")
    taker_bps: Decimal = Decimal("4.5")
    slippage_bps_per_million: Decimal = Decimal(10)
    penalty_bps: Decimal = Decimal(50)
    daily_loss_halt_pct: Decimal | None = None
    drawdown_halt_pct: Decimal | None = None
    book_max_age_ms: int | None = None
    """Maximum age of an order book that prices a taker's fill; None = the linear model prices all fills."""
    max_volume_pct: Decimal | None = None
    """The share of a bar's volume that all fills of one symbol may take together; None = any size fills."""

    @property
    def maker(self) -> Decimal:
        """Maker fee as a fraction."""
        return self.maker_bps * BASIS_POINT

    @property
    def taker(self) -> Decimal:
        """Taker fee as a fraction."""
        return self.taker_bps * BASIS_POINT


@noun
class Position:
    """A position as signed size and signed cost; entry = cost / size.

    Stop and take-profit belong to the position and are removed with it.
    """

    symbol: str
    size: Decimal
    cost: Decimal
    opened_at: Instant
    stop: Decimal | None = None
    take_profit: Decimal | None = None
    thesis: str = ""
    stopping: bool = False
    """Whether its stop was touched but the bar's volume was too small; the rest closes from the next open on."""

    @property
    def side(self) -> int:
        """+1 long, −1 short."""
        return 1 if self.size > ZERO else -1

    @property
    def entry(self) -> Decimal:
        """Average entry price."""
        return self.cost / self.size


@noun
class WorkingOrder:
    """A working order: `side` is +1 buy, −1 sell; `size` is unsigned; a close takes the whole position at its fill."""

    id: str
    kind: OrderKind
    symbol: str
    side: int
    size: Decimal
    submitted_at: Instant
    active_from: Instant
    limit: Decimal | None = None
    stop: Decimal | None = None
    take_profit: Decimal | None = None
    thesis: str = ""
    rested: bool = False

    @property
    def opens(self) -> bool:
        """Whether it can add exposure."""
        return self.kind in ("market", "limit")


@noun
class PerpWorld:
    """One account on the venue; `positions`, `leverage` and `marks` are keyed by symbol."""

    cash: Decimal
    initial: Decimal
    peak: Decimal
    day: int
    day_reference: Decimal
    last_equity: Decimal
    positions: Mapping[str, Position] = field(default_factory=dict[str, Position])
    orders: tuple[WorkingOrder, ...] = ()
    leverage: Mapping[str, int] = field(default_factory=dict[str, int])
    marks: Mapping[str, Decimal] = field(default_factory=dict[str, Decimal])
    marked_at: Mapping[str, Instant] = field(default_factory=dict[str, Instant])
    halts: tuple[Halt, ...] = ()
    next_order: int = 1
    deficit: Decimal = ZERO

    @property
    def reading(self) -> "MarginReading | None":
        """Margin and liquidation prices as a venue reports them; None if they follow from the rules of this world."""
        return None


@noun
class MarginReading:
    """What a venue reports of an account's margin. Reported figures take precedence over computed ones."""

    at: Instant
    """The venue's time of the report."""
    margin_used: Decimal
    maintenance: Decimal
    withdrawable: Decimal
    margins: Mapping[str, Decimal] = field(default_factory=dict[str, Decimal])
    """The margin of each position."""
    liquidations: Mapping[str, Decimal] = field(default_factory=dict[str, Decimal])
    """Liquidation prices; a position without one cannot be liquidated by its own price alone."""


@noun
class ReportedWorld(PerpWorld):
    """An account that a venue reports. The other fields are the same, so rules and prompts read it like any world.

    Fills and funding are counted once: `counted_fills` are the ids and times of those that a later report may repeat.
    """

    reading: MarginReading | None = None  # pyright: ignore[reportIncompatibleMethodOverride] – a field instead of a property
    fills_from: Instant = 0
    counted_fills: Mapping[str, Instant] = field(default_factory=dict[str, Instant])
    funded_until: Instant = 0


def in_order(positions: Mapping[str, Position]) -> Collection[Position]:
    """Return positions in code-point order of their symbols, the order of every sum; one position needs no sorting."""
    return positions.values() if len(positions) < 2 else [positions[symbol] for symbol in sorted(positions)]


def leverage_of(world: PerpWorld, symbol: str) -> int:
    """Return the symbol's leverage; 1 until an accepted open sets it."""
    return world.leverage.get(symbol, 1)


def halts_at(world: PerpWorld, now: Instant) -> tuple[Halt, ...]:
    """Return the active halts; the daily-loss halt ends at 00:00 UTC even if no bar has closed since then."""
    if day_of(now) > world.day and "daily_loss" in world.halts:
        return tuple(halt for halt in world.halts if halt != "daily_loss")
    return world.halts


def day_reference_at(world: PerpWorld, now: Instant) -> Decimal:
    """Return equity at the day's start: the last equity point at or before 00:00 UTC."""
    return world.last_equity if day_of(now) > world.day else world.day_reference


def equity(world: PerpWorld) -> Decimal:
    """Return cash plus unrealised result at the marks.

    Always summed as (cash − Σ cost) + (Σ size × price) in code-point order: the path that processes many bars at once
    uses the same grouping, so both give the same digits.
    """
    total, value = world.cash, ZERO
    if not world.positions:
        return total
    for position in in_order(world.positions):
        total -= position.cost
        value += position.size * world.marks[position.symbol]
    return total + value


def margin_used(world: PerpWorld) -> Decimal:
    """Return the initial margin of positions, as reported or at the marks, and of working opens at the marks."""
    marks, used, reading = world.marks, ZERO, world.reading
    if reading is not None:
        used = reading.margin_used
    else:
        for position in in_order(world.positions):
            used += abs(position.size) * marks.get(position.symbol, ZERO) / leverage_of(world, position.symbol)
    for order in world.orders:
        if order.opens:
            used += order.size * marks.get(order.symbol, ZERO) / leverage_of(world, order.symbol)
    return used


def free_margin(world: PerpWorld) -> Decimal:
    """Return equity minus margin used."""
    return equity(world) - margin_used(world)


def maintenance(world: PerpWorld, terms: TradingTerms) -> Decimal:
    """Return the maintenance margin of all positions."""
    reading = world.reading
    if reading is not None:
        return reading.maintenance
    total = ZERO
    for position in in_order(world.positions):
        notional = abs(position.size) * world.marks[position.symbol]
        total += terms.assets[position.symbol].maintenance(notional)
    return total


def open_world(equity_usd: Decimal, day: int) -> PerpWorld:
    """Return a new account with this equity in cash."""
    return PerpWorld(
        cash=equity_usd,
        initial=equity_usd,
        peak=equity_usd,
        day=day,
        day_reference=equity_usd,
        last_equity=equity_usd,
    )
