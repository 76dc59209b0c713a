"""Prices and sizes that Hyperliquid accepts, rounded toward less risk. Pure; it asks nothing of the exchange.

A price has at most 5 significant figures and at most 6 − `szDecimals` decimals; whole numbers are always accepted. A size
has at most `szDecimals` decimals. Which way a number is rounded depends on what it protects:

    size of any order         down: never more than was decided. An exit that leaves a rest is completed by the next one.
    limit of a buy            down: never pay more than decided
    limit of a sell           up: never receive less than decided
    bound of a market order   as a limit: down for a buy, up for a sell; it may fill less, never worse
    stop trigger              toward the market: up under a long, down over a short, so that it fires earlier
    take-profit trigger       toward the market: down over a long, up under a short, so that it fires earlier
    price of a fired trigger  away from the market: down for a sell, up for a buy; a stop must fill rather than rest
"""

from decimal import Decimal

from pitboss.core.asset import Asset
from pitboss.core.money import ONE, exact, round_down

EXIT_SLIPPAGE = Decimal("0.05")
"""How far beyond the mark an exit may fill; the exchange's own bound for market orders."""
OPEN_SLIPPAGE = Decimal("0.01")
"""How far beyond the mark at which an open was judged it may fill."""
TRIGGER_SLIPPAGE = Decimal("0.10")
"""How far beyond its trigger a stop may fill: protection matters more than the price."""


@exact
def order_size(asset: Asset, size: Decimal) -> Decimal:
    """Round a size down to the lot."""
    return round_down(size, asset.lot)


@exact
def limit_price(asset: Asset, side: int, price: Decimal) -> Decimal:
    """Round a limit so that it is never worse for us: a buy down, a sell up."""
    return asset.round_price(price, up=side < 0)


@exact
def market_bound(asset: Asset, side: int, mark: Decimal, slippage: Decimal) -> Decimal:
    """Return the worst price of a market order (sent as immediate-or-cancel): the mark and a share of it."""
    return limit_price(asset, side, mark * (ONE + side * slippage))


@exact
def stop_trigger(asset: Asset, position_side: int, price: Decimal) -> Decimal:
    """Round the trigger of a stop toward the market, so that it fires no later than decided."""
    return asset.round_price(price, up=position_side > 0)


@exact
def take_profit_trigger(asset: Asset, position_side: int, price: Decimal) -> Decimal:
    """Round the trigger of a take-profit toward the market, so that it fires no later than decided."""
    return asset.round_price(price, up=position_side < 0)


@exact
def trigger_bound(asset: Asset, position_side: int, trigger: Decimal) -> Decimal:
    """Return the worst price at which a fired trigger may close a position, rounded so that it fills more easily."""
    bound = trigger * (ONE - position_side * TRIGGER_SLIPPAGE)
    return asset.round_price(bound, up=position_side < 0)


def price_problem(asset: Asset, price: Decimal) -> str:
    """Say why the exchange would refuse a price; empty if it accepts it."""
    if not price.is_finite() or price <= 0:
        return f"price {price} is not a positive number"
    return "" if asset.round_price(price, up=False) == price else f"price {price} is between two ticks"


def size_problem(asset: Asset, size: Decimal) -> str:
    """Say why the exchange would refuse a size; empty if it accepts it."""
    if not size.is_finite() or size <= 0:
        return f"size {size} is not a positive number"
    return "" if round_down(size, asset.lot) == size else f"size {size} is between two lots"
