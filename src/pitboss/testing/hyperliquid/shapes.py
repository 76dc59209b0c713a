"""Wire shapes: orders, fills, funding, candles, books and contexts as the exchange writes them in replies and on streams."""

from decimal import Decimal
from typing import Any

from pitboss.core.instant import Instant
from pitboss.testing.hyperliquid.account import FakeAccount, FundingPayment, VenueFill
from pitboss.testing.hyperliquid.margin import MarginSummary, Markets, leverage_of, liquidation_price, margin_used
from pitboss.testing.hyperliquid.market import BookLevel, CoinMarket, MinuteCandle
from pitboss.testing.hyperliquid.orders import PlacedOrder
from pitboss.testing.hyperliquid.replies import venue_hash, venue_text
from pitboss.testing.hyperliquid.state import ExchangeState

ORDER_TYPES = {
    (True, "sl"): "Stop Market",
    (False, "sl"): "Stop Limit",
    (True, "tp"): "Take Profit Market",
    (False, "tp"): "Take Profit Limit",
}


def side(is_buy: bool) -> str:
    """B for bids, A for asks."""
    return "B" if is_buy else "A"


def basic_order(order: PlacedOrder) -> dict[str, Any]:
    """An order in `openOrders`."""
    shape: dict[str, Any] = {
        "coin": order.coin,
        "side": side(order.request.is_buy),
        "limitPx": venue_text(order.request.price),
        "sz": venue_text(order.remaining),
        "oid": order.oid,
        "timestamp": order.placed_at,
    }
    if order.cloid:
        shape["cloid"] = order.cloid
    return shape


def full_order(order: PlacedOrder) -> dict[str, Any]:
    """An order in `frontendOpenOrders`, `orderStatus` and `historicalOrders`."""
    request = order.request
    trigger, condition = "0.0", "N/A"
    if request.trigger_price is not None:
        upwards = request.is_buy == (request.tpsl == "sl")
        trigger = venue_text(request.trigger_price)
        condition = f"Price {'above' if upwards else 'below'} {trigger.removesuffix('.0')}"
        condition = "Triggered" if order.was_triggered else condition
    return {
        "coin": order.coin,
        "side": side(request.is_buy),
        "limitPx": venue_text(request.price),
        "sz": venue_text(max(order.remaining, Decimal(0))),
        "oid": order.oid,
        "timestamp": order.placed_at,
        "triggerCondition": condition,
        "isTrigger": order.is_trigger,
        "triggerPx": trigger,
        "children": [full_order(child) for child in order.children if child.parent is not None],
        "isPositionTpsl": order.is_position_tpsl,
        "reduceOnly": request.reduce_only,
        "orderType": ORDER_TYPES.get((request.is_market, request.tpsl), "Limit"),
        "origSz": venue_text(order.size),
        "tif": order.tif or None,
        "cloid": order.cloid,
    }


def fill_row(fill: VenueFill) -> dict[str, Any]:
    """A fill in `userFills` and on streams."""
    row: dict[str, Any] = {
        "coin": fill.coin,
        "px": venue_text(fill.price),
        "sz": venue_text(fill.size),
        "side": side(fill.is_buy),
        "time": fill.at,
        "startPosition": venue_text(fill.start_position),
        "dir": fill.direction,
        "closedPnl": venue_text(fill.closed_pnl),
        "hash": venue_hash(fill.tid),
        "oid": fill.oid,
        "crossed": fill.crossed,
        "fee": venue_text(fill.fee),
        "tid": fill.tid,
        "feeToken": "USDC",
        "twapId": None,
    }
    if fill.cloid:
        row["cloid"] = fill.cloid
    if fill.liquidation is not None:
        user, mark, method = fill.liquidation
        row["liquidation"] = {"liquidatedUser": user, "markPx": venue_text(mark), "method": method}
    return row


def funding_delta(payment: FundingPayment) -> dict[str, Any]:
    """The amounts of a funding payment."""
    return {
        "coin": payment.coin,
        "usdc": venue_text(payment.usdc),
        "szi": venue_text(payment.size),
        "fundingRate": venue_text(payment.rate),
    }


def candle_row(market: CoinMarket, candle: MinuteCandle, interval: str, length: int, is_last: bool) -> dict[str, Any]:
    """A candle. Only the newest shows a price that is reported wrongly."""
    factor = market.reported_factor if is_last else Decimal(1)
    return {
        "t": candle.opened_at,
        "T": candle.opened_at + length - 1,
        "s": market.perp.name,
        "i": interval,
        "o": venue_text(candle.open),
        "c": venue_text(candle.close * factor),
        "h": venue_text(max(candle.high, candle.close * factor)),
        "l": venue_text(min(candle.low, candle.close * factor)),
        "v": venue_text(candle.volume),
        "n": candle.trades,
    }


def book_row(market: CoinMarket, at: Instant) -> dict[str, Any]:
    """The book of a coin."""
    levels = [
        [_level_row(market, level) for level in market.side(is_ask).levels() if level.size] for is_ask in (False, True)
    ]
    return {"coin": market.perp.name, "time": at, "levels": levels}


def best_row(market: CoinMarket, at: Instant) -> dict[str, Any]:
    """The best bid and the best ask of a coin."""
    tops = (market.side(is_ask).top() for is_ask in (False, True))
    return {"coin": market.perp.name, "time": at, "bbo": [top and _level_row(market, top) for top in tops]}


def _level_row(market: CoinMarket, level: BookLevel) -> dict[str, Any]:
    price = level.price * market.reported_factor
    return {"px": venue_text(price), "sz": venue_text(level.size), "n": level.count}


def asset_context(market: CoinMarket) -> dict[str, Any]:
    """The context of a coin in `metaAndAssetCtxs`."""
    factor = market.reported_factor
    bid, ask = market.best()
    has_book = bid is not None and ask is not None
    return {
        "funding": venue_text(market.funding_rate()),
        "openInterest": venue_text(market.volume_base + 1_000),
        "prevDayPx": venue_text(market.day_start),
        "dayNtlVlm": venue_text(market.volume_notional),
        "premium": venue_text(round(market.premium(), 10)) if has_book else None,
        "oraclePx": venue_text(market.oracle),
        "markPx": venue_text(market.mark * factor),
        "midPx": venue_text(market.mid * factor) if has_book else None,
        "impactPxs": [venue_text(price * factor) for price in (bid, ask)] if bid and ask else None,
        "dayBaseVlm": venue_text(market.volume_base),
    }


def universe_row(market: CoinMarket) -> dict[str, Any]:
    """A coin in `meta`."""
    perp = market.perp
    row: dict[str, Any] = {
        "szDecimals": perp.size_decimals,
        "name": perp.name,
        "maxLeverage": perp.max_leverage,
        "marginTableId": perp.margin_table,
    }
    if perp.only_isolated:
        row |= {"onlyIsolated": True, "marginMode": "strictIsolated"}
    return row | ({"isDelisted": True} if market.delisted else {})


def summary_shape(figures: MarginSummary) -> dict[str, str]:
    """A margin summary."""
    return {
        "accountValue": venue_text(round(figures.account_value, 6)),
        "totalNtlPos": venue_text(round(figures.notional, 6)),
        "totalRawUsd": venue_text(round(figures.raw_usd, 6)),
        "totalMarginUsed": venue_text(round(figures.margin_used, 6)),
    }


def position_shape(account: FakeAccount, markets: Markets, coin: str) -> dict[str, Any]:
    """A position in `clearinghouseState`."""
    position, market = account.positions[coin], markets[coin]
    cross, leverage = leverage_of(account, market)
    used = margin_used(account, market, position)
    unrealised = position.unrealised(market.mark)
    liquidation = liquidation_price(account, markets, coin)
    setting: dict[str, Any] = {"type": "cross" if cross else "isolated", "value": leverage}
    if not cross:
        setting["rawUsd"] = venue_text(position.isolated_margin - position.entry_notional)
    start = abs(position.entry_notional) / leverage
    return {
        "type": "oneWay",
        "position": {
            "coin": coin,
            "szi": venue_text(position.size),
            "leverage": setting,
            "entryPx": venue_text(round(position.entry_price, 6)),
            "positionValue": venue_text(round(abs(position.size) * market.mark, 6)),
            "unrealizedPnl": venue_text(round(unrealised, 6)),
            "returnOnEquity": venue_text(round(unrealised / start, 10)) if start else "0.0",
            "liquidationPx": None if liquidation is None else venue_text(round(liquidation, 6)),
            "marginUsed": venue_text(round(used, 6)),
            "maxLeverage": market.perp.max_leverage,
            "cumFunding": {
                "allTime": venue_text(-account.funding_all_time.get(coin, Decimal(0))),
                "sinceOpen": venue_text(-position.funding_since_open),
                "sinceChange": venue_text(-position.funding_since_change),
            },
        },
    }


def all_mids(state: ExchangeState) -> dict[str, str]:
    """The middle price of every coin that is listed."""
    return {
        coin: venue_text(market.mid * market.reported_factor)
        for coin, market in state.markets.items()
        if not market.delisted
    }
