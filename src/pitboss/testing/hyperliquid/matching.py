"""Orders against the book: checks in the exchange's order, matching by price and time, fills, cancels, reduce-only rules."""

from decimal import Decimal
from typing import Any

from pitboss.core.instant import DAY_MS
from pitboss.core.money import ZERO
from pitboss.testing.hyperliquid import refusals
from pitboss.testing.hyperliquid.account import FakeAccount, VenueFill, micro
from pitboss.testing.hyperliquid.fees import fee_rates
from pitboss.testing.hyperliquid.margin import leverage_of, reserved, summary
from pitboss.testing.hyperliquid.market import CoinMarket
from pitboss.testing.hyperliquid.orders import PlacedOrder, WireOrder
from pitboss.testing.hyperliquid.replies import venue_text
from pitboss.testing.hyperliquid.state import ExchangeState, FillMade

LEAST_NOTIONAL = Decimal(10)
FARTHEST = Decimal("0.8")
"""How far a limit price may be from the oracle, as a share of it."""


class OrderRefused(Exception):
    """The exchange refuses one order. `text` is a constant of `refusals`; `shown` is the text with its values."""

    def __init__(self, text: str, shown: str = "") -> None:
        super().__init__(shown or text)
        self.text = text
        self.shown = shown or text


def place(state: ExchangeState, account: FakeAccount, request: WireOrder, grouping: str = "na") -> Any:
    """Place one order; the status that the reply has for it."""
    if request.asset >= len(state.coins):
        return {"error": f"Invalid asset. asset={request.asset}"}
    market = state.markets[state.coins[request.asset]]
    order = PlacedOrder(state.new_oid(), account.address, market.perp.name, request, state.now)
    order.is_position_tpsl = grouping == "positionTpsl"
    account.keep(order)
    try:
        _check(state, account, market, order)
        return _accept(state, account, market, order)
    except OrderRefused as refusal:
        state.set_status(order, refusals.ORDER_STATUS.get(refusal.text, "rejected"))
        has_suffix = state.rules.asset_suffix and refusal.text != refusals.LOT
        return {"error": refusals.of_asset(refusal.shown, request.asset) if has_suffix else refusal.shown}


def _check(state: ExchangeState, account: FakeAccount, market: CoinMarket, order: PlacedOrder) -> None:
    request, perp = order.request, market.perp
    if state.rules.dedupes_cloid and order.cloid and len(account.by_cloid[order.cloid]) > 1:
        raise OrderRefused("Duplicate client order id.")
    if market.delisted or market.is_halted:
        raise OrderRefused(refusals.HALTED)
    if not perp.valid_price(request.price):
        raise OrderRefused(refusals.TICK)
    if request.trigger_price is not None and not perp.valid_price(request.trigger_price):
        raise OrderRefused(refusals.TICK)
    if not perp.valid_size(request.size):
        raise OrderRefused(refusals.LOT)
    position = account.position(order.coin)
    is_full_close = request.reduce_only and request.size >= abs(position) > 0
    if request.size * request.price < LEAST_NOTIONAL and not is_full_close:
        raise OrderRefused(refusals.MIN_NOTIONAL)
    if state.is_post_only and request.tif != "Alo" and request.trigger_price is None:
        raise OrderRefused(refusals.POST_ONLY_PHASE)
    if request.trigger_price is None and abs(request.price - market.oracle) > market.oracle * FARTHEST:
        raise OrderRefused(refusals.ORACLE_DISTANCE)
    if request.reduce_only and (not position or (position > 0) == request.is_buy):
        raise OrderRefused(refusals.REDUCE_ONLY)
    if request.trigger_price is not None:
        if fires(order, market.mark):
            raise OrderRefused(refusals.TRIGGER_PRICE)
    elif not request.reduce_only:
        check_margin(state, account, market, order)


def check_margin(state: ExchangeState, account: FakeAccount, market: CoinMarket, order: PlacedOrder) -> None:
    """Refuse an order that needs more margin than there is, or a lower leverage than is set."""
    signed = order.remaining if order.request.is_buy else -order.remaining
    position = account.position(order.coin)
    if abs(position + signed) <= abs(position):
        return
    _, leverage = leverage_of(account, market)
    if leverage > market.perp.tier(abs(position + signed) * market.mark).max_leverage:
        raise OrderRefused(refusals.POSITION_TIER)
    needed = reserved(account, state.markets, (order.coin, signed))
    if needed > summary(account, state.markets, cross_only=True).account_value:
        raise OrderRefused(refusals.MARGIN)


def _accept(state: ExchangeState, account: FakeAccount, market: CoinMarket, order: PlacedOrder) -> Any:
    if order.request.trigger_price is not None:
        rest(state, account, order)
        return {"resting": _ids(order)}
    bid, ask = best_prices(state, market)
    touches = ask is not None and order.request.price >= ask
    if not order.request.is_buy:
        touches = bid is not None and order.request.price <= bid
    if order.tif == "Alo":
        if touches:
            shown = refusals.POST_ONLY.format(bid=venue_text(bid or ZERO), ask=venue_text(ask or ZERO))
            raise OrderRefused(refusals.POST_ONLY, shown)
    elif touches:
        take(state, account, market, order)
    if order.tif == "Ioc":
        if not order.filled:
            raise OrderRefused(refusals.NO_MATCH)
        if order.status == "open":
            state.set_status(order, "canceled")
    elif order.status == "open":
        rest(state, account, order)
    if order.filled and not order.is_open:
        sizes = {"totalSz": venue_text(order.filled), "avgPx": venue_text(round(order.average_price(), 6))}
        return {"filled": sizes | _ids(order)}
    return {"resting": _ids(order)}


def _ids(order: PlacedOrder) -> dict[str, Any]:
    return {"oid": order.oid} | ({"cloid": order.cloid} if order.cloid else {})


def rest(state: ExchangeState, account: FakeAccount, order: PlacedOrder) -> None:
    """Put an order into the book, or among those that wait for their trigger."""
    (state.triggers if order.is_trigger else state.resting)[order.coin][order.oid] = order
    account.open_orders[order.oid] = order
    order.was_accepted = True
    state.set_status(order, "open")
    if order.request.reduce_only:
        limit_reduce_only(state, account, order.coin)


def best_prices(state: ExchangeState, market: CoinMarket) -> tuple[Decimal | None, Decimal | None]:
    """The best bid and ask, orders of accounts included."""
    bid, ask = market.best()
    for order in state.resting[market.perp.name].values():
        price = order.request.price
        if order.request.is_buy:
            bid = price if bid is None else max(bid, price)
        else:
            ask = price if ask is None else min(ask, price)
    return bid, ask


def take(state: ExchangeState, account: FakeAccount, market: CoinMarket, order: PlacedOrder) -> None:
    """Match an order against the book until its price or its size ends. Own orders in the way are cancelled."""
    is_buy, limit = order.request.is_buy, order.request.price
    while order.is_open and (wanted := _fillable(account, order)) > 0:
        level = market.side(is_ask=is_buy).top()
        maker = _best_maker(state, market, not is_buy)
        price = level.price if level is not None else None
        if maker is not None:
            own = maker.request.price
            if price is None or (own <= price if is_buy else own >= price):
                level, price = None, own
        if price is None or (price > limit if is_buy else price < limit):
            return
        if level is None and maker is not None:
            if maker.account == account.address:
                state.set_status(maker, "selfTradeCanceled")
                continue
            other = state.accounts[maker.account]
            size = min(wanted, _fillable(other, maker))
            if not size:
                state.set_status(maker, "reduceOnlyCanceled")
                continue
            fill(state, other, maker, size, price, crossed=False)
            fill(state, account, order, size, price, crossed=True)
            continue
        assert level is not None
        size = min(wanted, level.size)
        level.size -= size
        fill(state, account, order, size, price, crossed=True)


def _best_maker(state: ExchangeState, market: CoinMarket, is_buy: bool) -> PlacedOrder | None:
    best: PlacedOrder | None = None
    for order in state.resting[market.perp.name].values():
        if order.request.is_buy != is_buy:
            continue
        if best is None or (
            order.request.price > best.request.price if is_buy else order.request.price < best.request.price
        ):
            best = order
    return best


def _fillable(account: FakeAccount, order: PlacedOrder) -> Decimal:
    """What of an order may still trade: a reduce-only order no more than the position it reduces."""
    if not order.request.reduce_only:
        return order.remaining
    position = account.position(order.coin)
    return min(order.remaining, abs(position)) if (position < 0) == order.request.is_buy else ZERO


def fill(
    state: ExchangeState,
    account: FakeAccount,
    order: PlacedOrder,
    size: Decimal,
    price: Decimal,
    crossed: bool,
) -> None:
    """Book one trade of an order, and what follows from it."""
    market = state.markets[order.coin]
    if state.overfill and size == order.remaining:
        state.overfill = False
        size += market.perp.size_down(order.size) or order.size
    order.was_accepted = True
    order.filled += size
    order.notional += size * price
    book_trade(state, account, market, size if order.request.is_buy else -size, price, order=order, crossed=crossed)
    if order.remaining <= 0:
        state.set_status(order, "filled")
        for child in order.children:
            child.parent = None
            state.triggers[child.coin][child.oid] = child
            state.set_status(child, "open")
    elif order.oid in account.open_orders:
        state.set_status(order, "open")
    limit_reduce_only(state, account, order.coin)


def book_trade(
    state: ExchangeState,
    account: FakeAccount,
    market: CoinMarket,
    signed: Decimal,
    price: Decimal,
    *,
    order: PlacedOrder | None = None,
    crossed: bool = True,
    direction: str = "",
    liquidation: tuple[str, Decimal, str] | None = None,
    is_free: bool = False,
) -> VenueFill:
    """Book a trade of an account, with or without an order of its own; the fill that is told."""
    coin, taker_maker = market.perp.name, fee_rates(account, state.now)
    fee = ZERO if is_free else micro(abs(signed) * price * taker_maker[0 if crossed else 1])
    start, closed_pnl, named = account.trade(
        coin, signed, price, fee, leverage_of(account, market), state.now // DAY_MS
    )
    market.add_volume(abs(signed), price)
    made = VenueFill(
        coin,
        price,
        abs(signed),
        signed > 0,
        state.now,
        start,
        direction or named,
        closed_pnl,
        fee,
        order.oid if order else state.new_oid(),
        state.new_tid(),
        crossed,
        order.cloid if order else None,
        liquidation,
    )
    account.fills.append(made)
    if state.listeners:
        state.tell(FillMade(account.address, made))
    return made


def limit_reduce_only(state: ExchangeState, account: FakeAccount, coin: str) -> None:
    """Cancel reduce-only orders that no longer reduce, and the oldest of those that together exceed the position."""
    orders = [order for order in account.open_orders.values() if order.coin == coin and order.request.reduce_only]
    if not orders:
        return
    position = account.position(coin)
    limits = [order for order in orders if not order.is_trigger]
    for order in limits:
        if _fillable(account, order) == 0:
            state.set_status(order, "reduceOnlyCanceled")
    limits = [order for order in limits if order.is_open]
    while len(limits) > 1 and sum((order.remaining for order in limits), ZERO) > abs(position):
        state.set_status(limits.pop(0), "reduceOnlyCanceled")
    for order in orders:
        if not order.is_trigger or not order.is_open or order.parent is not None:
            continue
        reduces = position != 0 and (position > 0) != order.request.is_buy
        if order.is_position_tpsl:
            order.size = abs(position) if reduces else order.size
        if not reduces and (state.rules.cancels_triggers_when_flat or order.is_position_tpsl):
            state.set_status(order, "reduceOnlyCanceled")


def fires(order: PlacedOrder, mark: Decimal) -> bool:
    """Whether a mark price has reached the trigger of an order: stops against the position, take-profits with it."""
    trigger = order.request.trigger_price
    if trigger is None:
        return False
    upwards = order.request.is_buy == (order.request.tpsl == "sl")
    return mark >= trigger if upwards else mark <= trigger


def sweep(state: ExchangeState, market: CoinMarket) -> None:
    """Fill resting orders that the price has reached: makers at their own price, sometimes in part."""
    bid, ask = market.best()
    for order in list(state.resting[market.perp.name].values()):
        account = state.accounts[order.account]
        if not order.is_open or market.is_halted:
            continue
        price = order.request.price
        is_reached = ask is not None and ask <= price if order.request.is_buy else bid is not None and bid >= price
        if not is_reached:
            continue
        size = _fillable(account, order)
        if state.numbers.chance(state.rules.partial_fill):
            part = market.perp.size_down(size * state.numbers.between(10, 90) / 100)
            size = part or size
        if size:
            fill(state, account, order, size, price, crossed=False)


def cancel(state: ExchangeState, order: PlacedOrder | None, status: str = "canceled") -> Any:
    """Cancel an open order; the status that the reply has for it."""
    if order is None or not order.is_open:
        return {"error": refusals.MISSING_ORDER}
    for child in order.children:
        if child.parent is not None:
            state.set_status(child, status)
    state.set_status(order, status)
    return "success"
