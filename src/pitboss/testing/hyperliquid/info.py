"""Info requests: what each type answers. Requests that cannot be read raise MalformedRequest (HTTP 422)."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pitboss.core.instant import DAY_MS, INTERVALS, Instant
from pitboss.core.money import ZERO
from pitboss.testing.hyperliquid import shapes
from pitboss.testing.hyperliquid.account import FakeAccount
from pitboss.testing.hyperliquid.fees import user_fees
from pitboss.testing.hyperliquid.margin import cross_maintenance, summary, withdrawable
from pitboss.testing.hyperliquid.market import CoinMarket
from pitboss.testing.hyperliquid.orders import CLOID, MalformedRequest
from pitboss.testing.hyperliquid.replies import venue_hash, venue_text
from pitboss.testing.hyperliquid.request_limits import budget_cap
from pitboss.testing.hyperliquid.state import ExchangeState

MOST_FILLS = 2_000
MOST_RECENT_FILLS = 10_000
MOST_FUNDING_ROWS = 500
LONGER = {"3d": 3 * DAY_MS, "1w": 7 * DAY_MS, "1M": 30 * DAY_MS}
FUNDING_DELAY_MS = 48
"""Rows of funding are stamped a few milliseconds after the full hour."""

Body = dict[str, Any]


def answer(state: ExchangeState, body: Body) -> Any:
    """The reply to an info request."""
    kind = body.get("type")
    handler = HANDLERS.get(kind) if isinstance(kind, str) else None
    if handler is None:
        raise MalformedRequest(f"unknown request {kind!r}")
    return handler(state, body)


def interval_length(name: Any) -> int:
    """The length of a candle interval."""
    length = (INTERVALS | LONGER).get(name) if isinstance(name, str) else None
    if length is None:
        raise MalformedRequest(f"unknown interval {name!r}")
    return length


def market_of(state: ExchangeState, coin: Any) -> CoinMarket:
    """The market of a coin that a request names."""
    market = state.markets.get(coin) if isinstance(coin, str) else None
    if market is None:
        raise MalformedRequest(f"unknown coin {coin!r}")
    return market


def account_of(state: ExchangeState, body: Body) -> FakeAccount:
    """The account of an address. An address without one, which agents are too, has an empty account."""
    address = body.get("user")
    if not (isinstance(address, str) and address.startswith("0x") and len(address) == 42):
        raise MalformedRequest("user is an address")
    return state.accounts.get(address.lower()) or FakeAccount(address, ZERO)


def _time(body: Body, name: str, default: Instant | None = None) -> Instant:
    value = body.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, int) or isinstance(value, bool):
        raise MalformedRequest(f"{name} is milliseconds")
    return value


def _meta(state: ExchangeState, body: Body) -> Any:
    del body
    tables = {market.perp.margin_table: market.perp for market in state.markets.values()}
    return {
        "universe": [shapes.universe_row(market) for market in state.markets.values()],
        "marginTables": [
            [
                number,
                {
                    "description": f"tiered {perp.max_leverage}x" if len(perp.tiers) > 1 else "",
                    "marginTiers": [
                        {"lowerBound": venue_text(tier.lower_bound), "maxLeverage": tier.max_leverage}
                        for tier in perp.tiers
                    ],
                },
            ]
            for number, perp in sorted(tables.items())
        ],
        "collateralToken": 0,
    }


def _meta_and_contexts(state: ExchangeState, body: Body) -> Any:
    return [_meta(state, body), [shapes.asset_context(market) for market in state.markets.values()]]


def _candles(state: ExchangeState, body: Body) -> Any:
    request = body.get("req")
    if not isinstance(request, dict):
        raise MalformedRequest("candleSnapshot has req")
    market, name = market_of(state, request.get("coin")), request.get("interval")
    length = interval_length(name)
    rows = market.aggregate(length, _time(request, "startTime"), _time(request, "endTime", state.now))
    newest = market.candles[-1].opened_at
    return [shapes.candle_row(market, row, str(name), length, row.opened_at + length > newest) for row in rows[-5_000:]]


def _funding_history(state: ExchangeState, body: Body) -> Any:
    market = market_of(state, body.get("coin"))
    start, end = _time(body, "startTime"), _time(body, "endTime", state.now)
    return [
        {
            "coin": market.perp.name,
            "fundingRate": venue_text(rate),
            "premium": venue_text(premium),
            "time": at + FUNDING_DELAY_MS,
        }
        for at, rate, premium in market.funding_rows
        if start <= at + FUNDING_DELAY_MS <= end
    ][:MOST_FUNDING_ROWS]


def _clearinghouse(state: ExchangeState, body: Body) -> Any:
    account = account_of(state, body)
    return {
        "marginSummary": shapes.summary_shape(summary(account, state.markets, cross_only=False)),
        "crossMarginSummary": shapes.summary_shape(summary(account, state.markets, cross_only=True)),
        "crossMaintenanceMarginUsed": venue_text(round(cross_maintenance(account, state.markets), 6)),
        "withdrawable": venue_text(round(withdrawable(account, state.markets), 6)),
        "assetPositions": [
            shapes.position_shape(account, state.markets, coin) for coin in state.coins if coin in account.positions
        ],
        "time": state.now,
    }


def _open_orders(state: ExchangeState, body: Body) -> Any:
    return [shapes.basic_order(one) for one in reversed(account_of(state, body).open_orders.values()) if not one.parent]


def _frontend_open_orders(state: ExchangeState, body: Body) -> Any:
    return [shapes.full_order(one) for one in reversed(account_of(state, body).open_orders.values()) if not one.parent]


def _order_status(state: ExchangeState, body: Body) -> Any:
    account, name = account_of(state, body), body.get("oid")
    if isinstance(name, int) and not isinstance(name, bool):
        order = account.by_oid.get(name)
    elif isinstance(name, str) and CLOID.fullmatch(name):
        order = (account.by_cloid.get(name.lower()) or [None])[-1]
    else:
        raise MalformedRequest("oid is a number or a cloid")
    if order is None:
        return {"status": "unknownOid"}
    shape = {"order": shapes.full_order(order), "status": order.status, "statusTimestamp": order.status_at}
    return {"status": "order", "order": shape}


def _fill_rows(account: FakeAccount) -> list[Body]:
    """The rows of all fills, oldest first; each is made once."""
    rows = account.fill_rows
    rows.extend(shapes.fill_row(fill) for fill in account.fills[len(rows) :])
    return rows


def _fills(state: ExchangeState, body: Body) -> Any:
    return _fill_rows(account_of(state, body))[-MOST_FILLS:][::-1]


def _fills_by_time(state: ExchangeState, body: Body) -> Any:
    start, end = _time(body, "startTime"), _time(body, "endTime", state.now)
    account = account_of(state, body)
    first = bisect_left(account.fills, start, key=lambda fill: fill.at)
    after = bisect_right(account.fills, end, key=lambda fill: fill.at)
    first = max(first, len(account.fills) - MOST_RECENT_FILLS)
    return _fill_rows(account)[first:after][:MOST_FILLS]


def _user_funding(state: ExchangeState, body: Body) -> Any:
    start, end = _time(body, "startTime"), _time(body, "endTime", state.now)
    return [
        {
            "time": one.at + FUNDING_DELAY_MS,
            "hash": venue_hash(one.at),
            "delta": {"type": "funding"} | shapes.funding_delta(one) | {"nSamples": None},
        }
        for one in account_of(state, body).fundings
        if start <= one.at + FUNDING_DELAY_MS <= end
    ][:MOST_FUNDING_ROWS]


def _rate_limit(state: ExchangeState, body: Body) -> Any:
    account = account_of(state, body)
    return {
        "cumVlm": venue_text(account.volume),
        "nRequestsUsed": account.requests_used,
        "nRequestsCap": budget_cap(account),
    }


def _role(state: ExchangeState, body: Body) -> Any:
    address = account_of(state, body).address
    if address in state.accounts:
        return {"role": "user"}
    master = state.agents.get(address)
    if master is not None and address in state.accounts[master].agents:
        return {"role": "agent", "data": {"user": master}}
    return {"role": "missing"}


def _agents(state: ExchangeState, body: Body) -> Any:
    return [
        {"name": one.name, "address": one.address, "validUntil": one.valid_until}
        for one in account_of(state, body).agents.values()
        if one.valid_until > state.now
    ]


def _historical_orders(state: ExchangeState, body: Body) -> Any:
    return [
        {"order": shapes.full_order(order), "status": order.status, "statusTimestamp": order.status_at}
        for order in reversed(account_of(state, body).orders[-MOST_FILLS:])
    ]


def _recent_trades(state: ExchangeState, body: Body) -> Any:
    coin = market_of(state, body.get("coin")).perp.name
    return [
        {
            "coin": coin,
            "side": shapes.side(fill.is_buy),
            "px": venue_text(fill.price),
            "sz": venue_text(fill.size),
            "time": fill.at,
            "hash": venue_hash(fill.tid),
            "tid": fill.tid,
            "users": [account.address, "0x" + "00" * 20],
        }
        for account in state.accounts.values()
        for fill in reversed(account.fills[-10:])
        if fill.coin == coin
    ]


def _spot(state: ExchangeState, body: Body) -> Any:
    account_of(state, body)
    return {"balances": [{"coin": "USDC", "token": 0, "total": "0.0", "hold": "0.0", "entryNtl": "0.0"}]}


def _predicted(state: ExchangeState, body: Body) -> Any:
    del body
    hour = 3_600_000
    following = state.now - state.now % hour + hour
    return [
        [
            coin,
            [
                [
                    "HlPerp",
                    {
                        "fundingRate": venue_text(market.funding_rate()),
                        "nextFundingTime": following,
                        "fundingIntervalHours": 1,
                    },
                ]
            ],
        ]
        for coin, market in state.markets.items()
    ]


def _active_asset_data(state: ExchangeState, body: Body) -> Any:
    account, market = account_of(state, body), market_of(state, body.get("coin"))
    cross, leverage = account.leverage_of(market.perp.name, market.perp.max_leverage, market.perp.only_isolated)
    free = withdrawable(account, state.markets)
    most = market.perp.size_down(free * leverage / market.mark) if market.mark > 0 else Decimal(0)
    return {
        "user": account.address,
        "coin": market.perp.name,
        "leverage": {"type": "cross" if cross else "isolated", "value": leverage},
        "maxTradeSzs": [venue_text(most), venue_text(most)],
        "availableToTrade": [venue_text(round(free, 6)), venue_text(round(free, 6))],
        "markPx": venue_text(market.mark * market.reported_factor),
    }


HANDLERS: dict[str, Callable[[ExchangeState, Body], Any]] = {
    "meta": _meta,
    "metaAndAssetCtxs": _meta_and_contexts,
    "allMids": lambda state, body: shapes.all_mids(state),
    "l2Book": lambda state, body: shapes.book_row(market_of(state, body.get("coin")), state.now),
    "candleSnapshot": _candles,
    "fundingHistory": _funding_history,
    "predictedFundings": _predicted,
    "clearinghouseState": _clearinghouse,
    "spotClearinghouseState": _spot,
    "activeAssetData": _active_asset_data,
    "openOrders": _open_orders,
    "frontendOpenOrders": _frontend_open_orders,
    "orderStatus": _order_status,
    "userFills": _fills,
    "userFillsByTime": _fills_by_time,
    "userFunding": _user_funding,
    "userFees": lambda state, body: user_fees(account_of(state, body), state.now),
    "userRateLimit": _rate_limit,
    "userRole": _role,
    "extraAgents": _agents,
    "historicalOrders": _historical_orders,
    "recentTrades": _recent_trades,
    "exchangeStatus": lambda state, body: {"specialStatuses": None, "time": state.now},
}
