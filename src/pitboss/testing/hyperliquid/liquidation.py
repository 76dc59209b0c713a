"""Liquidation, auto-deleveraging and settlement: what the exchange does to positions without an order of their owner."""

from decimal import Decimal

from pitboss.core.instant import SECOND_MS
from pitboss.core.money import ZERO
from pitboss.testing.hyperliquid.account import FakeAccount
from pitboss.testing.hyperliquid.margin import cross_maintenance, is_cross, summary
from pitboss.testing.hyperliquid.market import CoinMarket
from pitboss.testing.hyperliquid.matching import book_trade, limit_reduce_only
from pitboss.testing.hyperliquid.state import ExchangeState, LiquidationStarted

WHOLE_BELOW = Decimal(100_000)
FIRST_PART = Decimal("0.2")
COOL_DOWN_MS = 30 * SECOND_MS
BACKSTOP = Decimal(2) / 3


def liquidate_if_due(state: ExchangeState, account: FakeAccount) -> None:
    """Liquidate what is below its maintenance margin: isolated positions one by one, cross positions together."""
    for coin in list(account.positions):
        market, position = state.markets[coin], account.positions[coin]
        if is_cross(account, market):
            continue
        value = position.isolated_margin + position.unrealised(market.mark)
        needed = market.perp.maintenance(abs(position.size) * market.mark)
        if value < needed:
            _tell(state, account, abs(position.size) * market.mark, value)
            _liquidate(state, account, market, is_backstop=value < needed * BACKSTOP)
            if coin not in account.positions:
                _forgive(account)
    maintenance = cross_maintenance(account, state.markets)
    if not maintenance:
        return
    cross = summary(account, state.markets, cross_only=True)
    if cross.account_value >= maintenance:
        return
    is_backstop = cross.account_value < maintenance * BACKSTOP
    _tell(state, account, cross.notional, cross.account_value)
    for order in list(account.open_orders.values()):
        state.set_status(order, "liquidatedCanceled")
    for coin in [one for one in account.positions if is_cross(account, state.markets[one])]:
        _liquidate(state, account, state.markets[coin], is_backstop)
    if is_backstop and account.cash > 0:  # all cross margin goes to the liquidator
        account.liquidation_transfers -= account.cash
        account.cash = ZERO
    if not any(is_cross(account, state.markets[coin]) for coin in account.positions):
        _forgive(account)


def _tell(state: ExchangeState, account: FakeAccount, notional: Decimal, value: Decimal) -> None:
    if state.listeners:
        state.tell(LiquidationStarted(account.address, notional, value, state.new_tid()))


def _liquidate(state: ExchangeState, account: FakeAccount, market: CoinMarket, is_backstop: bool) -> None:
    coin = market.perp.name
    position = account.positions[coin]
    size = abs(position.size)
    if not is_backstop and size * market.mark > WHOLE_BELOW and state.now >= account.cool_down_until:
        size = market.perp.size_down(size * FIRST_PART) or size
        account.cool_down_until = state.now + COOL_DOWN_MS
    mode = "Cross" if is_cross(account, market) else "Isolated"
    price = market.mark
    if not is_backstop:
        levels = market.side(is_ask=position.size < 0).levels()
        price = levels[-1].price if levels else market.mark  # it sweeps the book
        price = (
            max(price, market.mark * Decimal("0.99"))
            if position.size > 0
            else min(price, market.mark * Decimal("1.01"))
        )
        price = market.perp.on_grid(price)
    book_trade(
        state,
        account,
        market,
        -size if position.size > 0 else size,
        price,
        direction=f"Liquidated {mode} {'Long' if position.size > 0 else 'Short'}",
        liquidation=(account.address, market.mark, "backstop" if is_backstop else "market"),
        is_free=is_backstop,
    )
    limit_reduce_only(state, account, coin)


def _forgive(account: FakeAccount) -> None:
    """An account never owes: what is missing is borne by the exchange."""
    if account.cash < 0:
        account.liquidation_transfers -= account.cash
        account.cash = ZERO


def deleverage(state: ExchangeState, account: FakeAccount, coin: str, share: Decimal) -> None:
    """Close a share of a position at the mark, against a bankrupt counterparty (auto-deleveraging)."""
    position = account.positions.get(coin)
    if position is None:
        return
    market = state.markets[coin]
    size = market.perp.size_down(abs(position.size) * share) or abs(position.size)
    book_trade(
        state,
        account,
        market,
        -size if position.size > 0 else size,
        market.mark,
        direction="Auto-Deleveraging",
        is_free=True,
    )
    limit_reduce_only(state, account, coin)


def force_liquidation(state: ExchangeState, account: FakeAccount, coin: str) -> None:
    """Liquidate a position whatever its margin is: a fault."""
    if coin in account.positions:
        market = state.markets[coin]
        _tell(state, account, abs(account.positions[coin].size) * market.mark, ZERO)
        _liquidate(state, account, market, is_backstop=False)


def delist(state: ExchangeState, coin: str) -> None:
    """Delist a coin: cancel its orders, settle its positions at the mark, and refuse all further orders."""
    market = state.markets[coin]
    for account in state.accounts.values():
        for order in [one for one in account.open_orders.values() if one.coin == coin]:
            state.set_status(order, "delistedCanceled")
        position = account.positions.get(coin)
        if position is not None:
            book_trade(state, account, market, -position.size, market.mark, direction="Settlement", is_free=True)
    market.delisted = True
