"""Trigger orders: stops and take-profits fire on the mark price and become orders of the book."""

from pitboss.testing.hyperliquid import refusals
from pitboss.testing.hyperliquid.market import CoinMarket
from pitboss.testing.hyperliquid.matching import OrderRefused, check_margin, fires, rest, take
from pitboss.testing.hyperliquid.state import ExchangeState


def fire_triggers(state: ExchangeState, market: CoinMarket) -> None:
    """Turn every trigger order that the mark has reached into a market or limit order."""
    for order in list(state.triggers[market.perp.name].values()):
        if not order.is_open or order.parent is not None or market.is_halted or not fires(order, market.mark):
            continue
        account = state.accounts[order.account]
        position = account.position(order.coin)
        order.was_triggered = True
        state.triggers[order.coin].pop(order.oid, None)
        account.open_orders.pop(order.oid, None)
        if order.request.reduce_only and (not position or (position > 0) == order.request.is_buy):
            state.set_status(order, refusals.ORDER_STATUS[refusals.REDUCE_ONLY])
            continue
        if not order.request.reduce_only:
            try:
                check_margin(state, account, market, order)
            except OrderRefused as refusal:
                state.set_status(order, refusals.ORDER_STATUS.get(refusal.text, "rejected"))
                continue
        if state.listeners:
            state.set_status(order, "triggered")
            order.status = "open"
        order.tif = "Ioc" if order.request.is_market else "Gtc"
        take(state, account, market, order)
        if order.status != "open":
            continue
        if order.tif == "Gtc":
            rest(state, account, order)
        elif order.filled:
            state.set_status(order, "canceled")
        else:
            state.set_status(order, refusals.ORDER_STATUS[refusals.NO_LIQUIDITY])
