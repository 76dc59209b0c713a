"""Money at the fake exchange: conservation over random streams of orders, fees, funding, margin, liquidation, determinism."""

from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.instant import DAY_MS
from pitboss.testing.hyperliquid.account import FakeAccount
from pitboss.testing.hyperliquid.exchange import FakeExchange, make_ready_account
from pitboss.testing.hyperliquid.fees import fee_rates
from pitboss.testing.hyperliquid.liquidation import deleverage
from pitboss.testing.hyperliquid.margin import cross_maintenance, summary
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.testing.hyperliquid.universe import LISTED, listed
from testing.hyperliquid.client import PlainClient, still_exchange, wire_order

COINS = ("BTC", "ETH", "TST")
MOVES = st.one_of(
    st.tuples(
        st.just("order"),
        st.integers(0, 2),
        st.booleans(),
        st.integers(-300, 300),
        st.integers(1, 40),
        st.sampled_from(["Gtc", "Ioc", "Alo"]),
        st.booleans(),
    ),
    st.tuples(st.just("stop"), st.integers(0, 2), st.booleans(), st.integers(1, 500), st.integers(1, 40)),
    st.tuples(st.just("leverage"), st.integers(0, 2), st.booleans(), st.integers(1, 40)),
    st.tuples(st.just("price"), st.integers(0, 2), st.integers(-1500, 1500)),
    st.tuples(st.just("wait"), st.integers(1, 7_200)),
    st.tuples(st.just("cancel"), st.integers(0, 5)),
    st.tuples(st.just("adl"), st.integers(0, 2)),
)


def play(client: PlainClient, move: tuple[Any, ...]) -> None:
    """One move of a random stream. What the exchange refuses is part of the stream."""
    exchange = client.exchange
    name = move[0]
    if name == "wait":
        client.wait(move[1])
        return
    if name == "cancel":
        orders = list(exchange.account().open_orders.values())
        if orders:
            order = orders[move[1] % len(orders)]
            client.cancel(order.request.asset, order.oid)
        return
    market = exchange.market(COINS[move[1]])
    if name == "price":
        exchange.set_price(market.perp.name, market.mid * (10_000 + move[2]) / 10_000)
    elif name == "leverage":
        action = {"type": "updateLeverage", "asset": move[1], "isCross": move[2], "leverage": move[3]}
        client.act(action)
    elif name == "adl":
        exchange.do_now(lambda: deleverage(exchange.state, exchange.account(), market.perp.name, Decimal("0.3")))
    elif name == "stop":
        _, asset, is_buy, away, lots = move
        sign = 1 if is_buy else -1
        trigger = market.perp.on_grid(market.mid * (10_000 + sign * away) / 10_000)
        limit = market.perp.on_grid(trigger * (10 + sign) / 10)
        client.order(asset, is_buy, str(limit), size_of(market, lots), reduce_only=True, trigger=("sl", str(trigger)))
    else:
        _, asset, is_buy, away, lots, tif, reduce_only = move
        price = market.perp.on_grid(market.mid * (10_000 + away) / 10_000)
        client.order(asset, is_buy, str(price), size_of(market, lots), tif, reduce_only)


def size_of(market: Any, lots: int) -> str:
    usd = Decimal(lots) * 100
    return str(market.perp.size_down(usd / market.mid) or Decimal(1).scaleb(-market.perp.size_decimals))


def value_from_fills(account: FakeAccount, marks: dict[str, Decimal]) -> Decimal:
    """Cash and positions worked out from the fills alone, at the marks."""
    value = account.deposits + account.funding + account.liquidation_transfers
    sizes: dict[str, Decimal] = {}
    for fill in account.fills:
        signed = fill.size if fill.is_buy else -fill.size
        value -= signed * fill.price + fill.fee
        sizes[fill.coin] = sizes.get(fill.coin, Decimal(0)) + signed
    assert {coin: size for coin, size in sizes.items() if size} == {
        coin: position.size for coin, position in account.positions.items()
    }
    return value + sum((size * marks[coin] for coin, size in sizes.items()), Decimal(0))


@settings(max_examples=60)
@given(st.lists(MOVES, min_size=5, max_size=40), st.integers(0, 1_000))
def test_no_stream_of_orders_makes_or_loses_a_millionth_of_a_dollar(moves: list[tuple[Any, ...]], seed: int) -> None:
    client = PlainClient(still_exchange(seed=seed, deposit=2_000, verify_every=0, step_ms=60_000, ip_weight=0))
    for move in moves:
        play(client, move)
        account = client.exchange.account()
        assert account.identity_gap() == 0
    account, state = client.exchange.account(), client.exchange.state
    marks = {coin: market.mark for coin, market in state.markets.items()}
    assert summary(account, state.markets, cross_only=False).account_value == value_from_fills(account, marks)
    assert account.realised == sum((fill.closed_pnl for fill in account.fills), Decimal(0))
    assert account.fees == sum((fill.fee for fill in account.fills), Decimal(0))
    assert account.funding == sum((one.usdc for one in account.fundings), Decimal(0))
    for order in account.orders:
        assert order.filled <= order.size or order.is_position_tpsl
        assert not order.filled or order.was_accepted
        assert order.is_open == (order.oid in account.open_orders)


@settings(max_examples=60)
@given(st.lists(MOVES, min_size=5, max_size=40), st.integers(0, 1_000))
def test_positions_follow_from_fills_and_entries_lie_within_them(moves: list[tuple[Any, ...]], seed: int) -> None:
    client = PlainClient(still_exchange(seed=seed, deposit=2_000, verify_every=0, step_ms=60_000, ip_weight=0))
    for move in moves:
        play(client, move)
    account = client.exchange.account()
    for coin, position in account.positions.items():
        fills = [fill for fill in account.fills if fill.coin == coin]
        for earlier, later in pairwise(fills):
            signed = earlier.size if earlier.is_buy else -earlier.size
            assert later.start_position == earlier.start_position + signed
        prices = [fill.price for fill in fills if fill.is_buy == (position.size > 0)]
        assert min(prices) - 1 <= position.entry_price <= max(prices) + 1
    for cross in (True, False):
        assert summary(account, client.exchange.state.markets, cross_only=cross).notional >= 0


def test_the_same_seed_and_requests_give_the_same_bytes_and_another_seed_does_not() -> None:
    def story(seed: int) -> list[str]:
        client = PlainClient(FakeExchange(seed, listed("BTC,ETH")))
        texts: list[str] = []
        for number in range(30):
            order = wire_order(number % 2, number % 3 == 0, ["69000", "2450"][number % 2], ["0.01", "0.2"][number % 2])
            client.act({"type": "order", "orders": [order], "grouping": "na"})
            client.wait(number)
            for kind in ("clearinghouseState", "openOrders", "userFills", "metaAndAssetCtxs"):
                texts.append(client.gateway.handle("/info", {"type": kind, "user": client.user}).text)
        return texts

    assert story(3) == story(3)
    assert story(3)[-1] != story(4)[-1]


# Fees, funding --------------------------------------------------------------------------------------------------------


def test_fees_follow_the_volume_of_the_fourteen_days_before() -> None:
    account = FakeAccount("0x" + "1" * 40, Decimal(0))
    at = 100 * DAY_MS
    assert fee_rates(account, at) == (Decimal("0.00045"), Decimal("0.00015"))
    account.volume_by_day[99] = Decimal(5_000_000)
    assert fee_rates(account, at)[0] == Decimal("0.00045")
    account.volume_by_day[98] = Decimal(1)
    assert fee_rates(account, at) == (Decimal("0.0004"), Decimal("0.00012"))
    assert fee_rates(account, at + 14 * DAY_MS)[0] == Decimal("0.00045")
    account.volume_by_day[99] = Decimal(8_000_000_000)
    assert fee_rates(account, at) == (Decimal("0.00024"), Decimal(0))


def test_funding_is_paid_every_hour_by_the_oracle_price_and_sums_to_zero_over_both_sides() -> None:
    client = PlainClient(still_exchange(step_ms=60_000))
    keys = make_ready_account(2)
    client.exchange.open_account(keys, Decimal(10_000))
    other = PlainClient(client.exchange)
    other.user, other.secret = keys.master_address, keys.agent_private_key
    client.order("BTC", True, "69000", "0.01", "Ioc")
    other.order("BTC", False, "67000", "0.01", "Ioc")
    client.wait(3 * 3_600)
    mine, theirs = client.exchange.account(), client.exchange.state.accounts[other.user]
    assert len(mine.fundings) == 3
    assert mine.funding == -theirs.funding < 0
    rows = client.info("userFunding", startTime=0)
    history = client.info("fundingHistory", coin="BTC", startTime=0)
    assert [row["delta"]["fundingRate"] for row in rows] == [row["fundingRate"] for row in history][-3:]
    rate, mark = Decimal(rows[0]["delta"]["fundingRate"]), Decimal(68_000)
    assert Decimal(rows[0]["delta"]["usdc"]) == round(-Decimal("0.01") * mark * rate, 6)
    assert rate == Decimal("0.0000125")


# Margin and liquidation -----------------------------------------------------------------------------------------------


def test_maintenance_margin_is_continuous_over_the_tiers() -> None:
    btc = LISTED[0]
    edge = Decimal(150_000_000)
    assert btc.maintenance(edge) == edge / 80
    assert btc.maintenance(edge + 1_000_000) == edge / 80 + Decimal(1_000_000) / 40
    assert btc.maintenance(Decimal(0)) == 0


def test_an_account_is_liquidated_exactly_when_its_value_is_below_the_maintenance_margin() -> None:
    client = PlainClient(still_exchange(deposit=1_000))
    client.order("BTC", True, "69000", "0.2", "Ioc")
    position = client.info("clearinghouseState")["assetPositions"][0]["position"]
    price = Decimal(position["liquidationPx"])
    client.exchange.set_price("BTC", Decimal(int(price) + 2))
    assert client.position("BTC") == Decimal("0.2")
    account, markets = client.exchange.account(), client.exchange.state.markets
    assert summary(account, markets, cross_only=True).account_value >= cross_maintenance(account, markets)
    client.exchange.set_price("BTC", Decimal(int(price) - 2))
    assert client.position("BTC") == 0
    fill = client.info("userFills")[0]
    assert fill["liquidation"]["method"] == "market"
    assert account.identity_gap() == 0
    assert account.cash >= 0


def test_a_large_position_is_liquidated_in_parts_and_a_deep_fall_takes_everything() -> None:
    client = PlainClient(still_exchange(deposit=12_000))
    client.act({"type": "updateLeverage", "asset": 0, "isCross": True, "leverage": 40})
    client.order("BTC", True, "69000", "3", "Ioc")
    price = Decimal(client.info("clearinghouseState")["assetPositions"][0]["position"]["liquidationPx"])
    client.exchange.set_price("BTC", Decimal(int(price) - 5))
    assert client.position("BTC") == Decimal("2.4")
    client.exchange.set_price("BTC", Decimal(50_000))
    account = client.exchange.account()
    assert client.position("BTC") == 0
    assert account.cash == 0
    assert account.liquidation_transfers > 0
    assert account.identity_gap() == 0


def test_an_isolated_position_loses_its_own_margin_alone() -> None:
    client = PlainClient()
    client.act({"type": "updateLeverage", "asset": 1, "isCross": False, "leverage": 10})
    client.order("ETH", True, "2600", "1", "Ioc")
    cash = client.exchange.account().cash
    client.exchange.set_price("ETH", Decimal(2_260))
    account = client.exchange.account()
    assert client.position("ETH") == 0
    assert cash <= account.cash < cash + 250
    assert account.identity_gap() == 0


def test_the_tier_of_a_position_bounds_its_leverage() -> None:
    client = PlainClient(still_exchange("BTC,ETH,TST,DOGE", deposit=100_000_000))
    client.act({"type": "updateLeverage", "asset": 3, "isCross": True, "leverage": 10})
    status = client.order(3, True, "0.15", "150000000", "Gtc")
    assert status["error"].startswith("Order would cause position to exceed margin tier limit")


@pytest.mark.parametrize("history_ms", [0, DAY_MS])
def test_candles_cover_the_time_before_the_start_that_was_asked_for(history_ms: int) -> None:
    exchange = FakeExchange(1, listed("BTC"), rules=VenueRules(history_ms=history_ms))
    request = {"coin": "BTC", "interval": "1h", "startTime": 0, "endTime": exchange.now}
    rows = exchange.info({"type": "candleSnapshot", "req": request})
    assert len(rows) == history_ms // 3_600_000 + 1
    for row in rows:
        low, high = Decimal(row["l"]), Decimal(row["h"])
        assert low <= min(Decimal(row["o"]), Decimal(row["c"])) <= max(Decimal(row["o"]), Decimal(row["c"])) <= high
        assert row["T"] == row["t"] + 3_600_000 - 1
    inside = exchange.info({"type": "candleSnapshot", "req": request | {"startTime": rows[-1]["t"] + 5}})
    assert inside[0]["t"] == rows[-1]["t"]
