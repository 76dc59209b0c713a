"""The account's portfolio at its marks, derived from a world, for prompts, tools, snapshots and people."""

from decimal import Decimal
from typing import Any

from pitboss.core.instant import Instant
from pitboss.core.money import ONE, exact, text
from pitboss.core.noun import noun
from pitboss.venues.perp.state import PerpWorld, Position, TradingTerms, equity, leverage_of, maintenance, margin_used


@noun
class PositionView:
    """One position at its mark; `liquidation` is None if no price would liquidate it."""

    symbol: str
    side: str
    size: Decimal
    entry: Decimal
    mark: Decimal
    notional_usd: Decimal
    unrealised_usd: Decimal
    leverage: int
    liquidation: Decimal | None
    stop: Decimal | None
    take_profit: Decimal | None
    opened_at: Instant
    thesis: str
    margin_usd: Decimal


@noun
class OrderView:
    """One working order."""

    id: str
    kind: str
    symbol: str
    side: str
    size: Decimal
    limit: Decimal | None
    stop: Decimal | None
    take_profit: Decimal | None
    submitted_at: Instant


@noun
class PerpPortfolio:
    """Equity, margin, positions, orders and halts at one instant."""

    equity_usd: Decimal
    cash_usd: Decimal
    margin_used_usd: Decimal
    free_margin_usd: Decimal
    positions: tuple[PositionView, ...]
    orders: tuple[OrderView, ...]
    halts: tuple[str, ...]
    day_start_usd: Decimal
    peak_usd: Decimal
    fees_bps: tuple[Decimal, Decimal] | None = None
    """Maker and taker rate of an account at an exchange, as it reports them; None on paper, where they are assumed."""


@exact
def portfolio(world: PerpWorld, terms: TradingTerms) -> PerpPortfolio:
    """Return the portfolio of the account at its marks."""
    value = equity(world)
    used = margin_used(world)
    return PerpPortfolio(
        equity_usd=value,
        cash_usd=world.cash,
        margin_used_usd=used,
        free_margin_usd=value - used,
        positions=tuple(_position_view(world, terms, position) for _, position in sorted(world.positions.items())),
        orders=tuple(
            OrderView(
                order.id,
                order.kind,
                order.symbol,
                "buy" if order.side > 0 else "sell",
                order.size,
                order.limit,
                order.stop,
                order.take_profit,
                order.submitted_at,
            )
            for order in world.orders
        ),
        halts=world.halts,
        day_start_usd=world.day_reference,
        peak_usd=world.peak,
        fees_bps=None if world.reading is None else (terms.maker_bps, terms.taker_bps),
    )


def _position_view(world: PerpWorld, terms: TradingTerms, position: Position) -> PositionView:
    mark, leverage, reading = world.marks[position.symbol], leverage_of(world, position.symbol), world.reading
    return PositionView(
        symbol=position.symbol,
        side="long" if position.size > 0 else "short",
        size=abs(position.size),
        entry=position.entry,
        mark=mark,
        notional_usd=abs(position.size) * mark,
        unrealised_usd=position.size * mark - position.cost,
        leverage=leverage,
        liquidation=liquidation_price(world, terms, position),
        stop=position.stop,
        take_profit=position.take_profit,
        opened_at=position.opened_at,
        thesis=position.thesis,
        margin_usd=abs(position.size) * mark / leverage if reading is None else reading.margins[position.symbol],
    )


def liquidation_price(world: PerpWorld, terms: TradingTerms, position: Position) -> Decimal | None:
    """Return the mark of this symbol at which the account would be liquidated, all other marks unchanged."""
    if world.reading is not None:
        return world.reading.liquidations.get(position.symbol)
    mark, size = world.marks[position.symbol], abs(position.size)
    available = equity(world) - maintenance(world, terms)
    for tier in terms.assets[position.symbol].tiers:
        # Solve with this tier's rate and deduction in place of the present ones; valid if the price falls in this tier.
        current = terms.assets[position.symbol].maintenance(size * mark)
        slack = available + current - (size * mark * tier.rate - tier.deduction)
        price = mark - position.side * slack / size / (ONE - tier.rate * position.side)
        if price > 0 and terms.assets[position.symbol].tier(size * price) == tier:
            return price
    return None


@exact
def summary(world: PerpWorld) -> dict[str, Any]:
    """Return the compact form that snapshots store before and after a tick.

    Amounts are already text, so that the summaries before and after a tick can share them; keys are in the order in which
    they are stored.
    """
    return {
        "cash_usd": text(world.cash),
        "equity_usd": text(equity(world)),
        "halts": world.halts,
        "orders": _order_rows(world),
        "positions": {symbol: _position_row(world, position) for symbol, position in world.positions.items()}
        if world.positions
        else {},
    }


def _position_row(world: PerpWorld, position: Position) -> dict[str, Any]:
    stop, take_profit, mark = position.stop, position.take_profit, world.marks.get(position.symbol)
    return {
        "cost": text(position.cost),
        "leverage": leverage_of(world, position.symbol),
        "mark": None if mark is None else text(mark),
        "size": text(position.size),
        "stop": None if stop is None else text(stop),
        "take_profit": None if take_profit is None else text(take_profit),
    }


def summary_after(world: PerpWorld, before: PerpWorld, summary_before: dict[str, Any]) -> dict[str, Any]:
    """Return `summary(world)`, reusing `summary_before`, the summary of `before`, if only orders have changed since."""
    if world is before:
        return summary_before
    same = world.cash is before.cash and world.positions is before.positions and world.halts is before.halts
    if same and (not world.positions or (world.leverage is before.leverage and world.marks is before.marks)):
        return {**summary_before, "orders": _order_rows(world)}
    return summary(world)


def _order_rows(world: PerpWorld) -> list[list[Any]]:
    if not world.orders:
        return []
    return [[order.id, order.kind, order.symbol, order.side, order.size, order.limit] for order in world.orders]
