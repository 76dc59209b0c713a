"""Margin of an account: value, use, maintenance, what an order would need, and the liquidation price. Pure reading."""

from collections.abc import Mapping
from decimal import Decimal

from pitboss.core.money import ZERO
from pitboss.core.noun import noun
from pitboss.testing.hyperliquid.account import FakeAccount, OpenPosition
from pitboss.testing.hyperliquid.market import CoinMarket

TENTH = Decimal("0.1")
Markets = Mapping[str, CoinMarket]


@noun
class MarginSummary:
    """The four figures of `marginSummary`."""

    account_value: Decimal
    notional: Decimal
    raw_usd: Decimal
    margin_used: Decimal


def is_cross(account: FakeAccount, market: CoinMarket) -> bool:
    """Whether a coin is on cross margin for an account."""
    return leverage_of(account, market)[0]


def leverage_of(account: FakeAccount, market: CoinMarket) -> tuple[bool, int]:
    """Whether a coin is on cross margin, and its leverage."""
    perp = market.perp
    return account.leverage_of(perp.name, perp.max_leverage, perp.only_isolated)


def margin_used(account: FakeAccount, market: CoinMarket, position: OpenPosition) -> Decimal:
    """Initial margin of a cross position; the whole value of an isolated one."""
    cross, leverage = leverage_of(account, market)
    if cross:
        return abs(position.size) * market.mark / leverage
    return position.isolated_margin + position.unrealised(market.mark)


def summary(account: FakeAccount, markets: Markets, cross_only: bool) -> MarginSummary:
    """Value and use of the account, or of its cross part."""
    value, notional, signed, used = account.cash, ZERO, ZERO, ZERO
    for coin, position in account.positions.items():
        market = markets[coin]
        cross = is_cross(account, market)
        if cross_only and not cross:
            continue
        value += position.unrealised(market.mark) + (ZERO if cross else position.isolated_margin)
        notional += abs(position.size) * market.mark
        signed += position.size * market.mark
        used += margin_used(account, market, position)
    return MarginSummary(value, notional, value - signed, used)


def cross_maintenance(account: FakeAccount, markets: Markets) -> Decimal:
    """The maintenance margin of all cross positions."""
    return sum(
        (
            markets[coin].perp.maintenance(abs(position.size) * markets[coin].mark)
            for coin, position in account.positions.items()
            if is_cross(account, markets[coin])
        ),
        ZERO,
    )


def withdrawable(account: FakeAccount, markets: Markets) -> Decimal:
    """What may leave: value above the larger of initial margin and a tenth of the notional."""
    cross = summary(account, markets, cross_only=True)
    return max(cross.account_value - max(cross.margin_used, cross.notional * TENTH), ZERO)


def reserved(account: FakeAccount, markets: Markets, extra: tuple[str, Decimal] | None = None) -> Decimal:
    """Initial margin of positions and of open orders at their worst: per coin the larger of all buys and all sells filled.

    `extra` is one more order, as a coin and a signed size. Isolated positions count through the cash they took.
    """
    exposure: dict[str, tuple[Decimal, Decimal]] = {}
    for coin, position in account.positions.items():
        size = position.size
        exposure[coin] = (size, size)
    signed_orders = [
        (order.coin, order.remaining if order.request.is_buy else -order.remaining)
        for order in account.open_orders.values()
        if not order.request.reduce_only and not order.is_trigger and order.parent is None
    ]
    for coin, signed in [*signed_orders, *([extra] if extra else [])]:
        low, high = exposure.get(coin, (ZERO, ZERO))
        exposure[coin] = (low + min(signed, ZERO), high + max(signed, ZERO))
    total = ZERO
    for coin, (low, high) in exposure.items():
        market = markets[coin]
        cross, leverage = leverage_of(account, market)
        worst = max(abs(low), abs(high))
        if not cross:
            worst = max(worst - abs(account.position(coin)), ZERO)
        total += worst * market.mark / leverage
    return total


def liquidation_price(account: FakeAccount, markets: Markets, coin: str) -> Decimal | None:
    """The mark at which the position would be liquidated, all else equal; None where there is none."""
    position, market = account.positions[coin], markets[coin]
    notional = abs(position.size) * market.mark
    if is_cross(account, market):
        available = summary(account, markets, cross_only=True).account_value - cross_maintenance(account, markets)
    else:
        available = position.isolated_margin + position.unrealised(market.mark) - market.perp.maintenance(notional)
    side = 1 if position.size > 0 else -1
    rate = 1 / Decimal(2 * market.perp.tier(notional).max_leverage)
    price = market.mark - side * available / abs(position.size) / (1 - rate * side)
    return price if price > 0 else None
