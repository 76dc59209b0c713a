"""Prices and sizes are those that the exchange accepts, and are rounded toward less risk; a slow reference says the same."""

import json
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.asset import make_asset
from pitboss.core.money import ZERO
from pitboss.venues.perp.hyperliquid import precision

RECORDED = Path(__file__).parents[5] / "shared" / "data" / "wire" / "hyperliquid" / "sdk_info_shared.json"
prices = st.decimals(Decimal("0.000001"), Decimal(200_000), places=9)
decimals = st.integers(0, 5)
sides = st.sampled_from([1, -1])


def is_representable(price: Decimal, size_decimals: int) -> bool:
    """The rule as the exchange writes it, digit by digit."""
    text = format(price.normalize(), "f")
    whole, _, fraction = text.partition(".")
    if not fraction:
        return price > 0
    significant = (whole.lstrip("0") + fraction).lstrip("0") if whole.strip("0") == "" else whole + fraction
    return price > 0 and len(fraction) <= 6 - size_decimals and len(significant) <= 5


def reference(price: Decimal, size_decimals: int, up: bool) -> Decimal | None:
    """The nearest accepted price on one side, by counting steps of the finest grid and dropping digits."""
    candidates: list[Decimal] = []
    for places in range(6 - size_decimals + 1):
        step = Decimal(1).scaleb(-places)
        candidate = (price / step).to_integral_value(ROUND_CEILING if up else ROUND_FLOOR) * step
        if candidate > 0 and is_representable(candidate, size_decimals):
            candidates.append(candidate)
    if not candidates:
        return None
    return min(candidates) if up else max(candidates)


@pytest.mark.parametrize(
    ("text", "size_decimals", "accepted"),
    [("1234.5", 0, True), ("1234.56", 0, False), ("0.001234", 0, True), ("0.0012345", 0, False), ("123456", 5, True)],
)
def test_the_documented_examples_are_accepted_and_refused(text: str, size_decimals: int, accepted: bool):
    asset = make_asset("X", size_decimals, [(ZERO, 10)])
    assert (
        (precision.price_problem(asset, Decimal(text)) == "")
        is accepted
        is is_representable(Decimal(text), size_decimals)
    )


@given(price=prices, size_decimals=decimals, side=sides)
def test_rounded_prices_are_accepted_and_are_those_of_the_reference(price: Decimal, size_decimals: int, side: int):
    asset = make_asset("X", size_decimals, [(ZERO, 10)])
    limit = precision.limit_price(asset, side, price)
    expected = reference(price, size_decimals, up=side < 0)
    if price == price.to_integral_value():
        expected = price
    assert limit == (expected or ZERO)
    assert side * (limit - price) <= 0  # never worse for us
    if limit > 0:
        assert precision.price_problem(asset, limit) == ""


@given(price=prices, size_decimals=decimals, side=sides)
def test_stops_and_take_profits_fire_no_later_than_decided(price: Decimal, size_decimals: int, side: int):
    asset = make_asset("X", size_decimals, [(ZERO, 10)])
    assert side * (precision.stop_trigger(asset, side, price) - price) >= 0
    assert side * (precision.take_profit_trigger(asset, side, price) - price) <= 0
    trigger = precision.stop_trigger(asset, side, price)
    if trigger > 0:
        bound = precision.trigger_bound(asset, side, trigger)
        assert side * (bound - trigger) <= 0  # it fills rather than rests


@given(size=st.decimals(Decimal("0.000001"), Decimal(10_000), places=8), size_decimals=decimals)
def test_sizes_are_rounded_down_to_the_lot(size: Decimal, size_decimals: int):
    asset = make_asset("X", size_decimals, [(ZERO, 10)])
    rounded = precision.order_size(asset, size)
    assert ZERO <= size - rounded < asset.lot
    assert rounded == 0 or precision.size_problem(asset, rounded) == ""


@given(mark=st.decimals(Decimal("0.01"), Decimal(200_000), places=6), size_decimals=decimals, side=sides)
def test_the_bound_of_a_market_order_is_never_beyond_its_slippage(mark: Decimal, size_decimals: int, side: int):
    asset = make_asset("X", size_decimals, [(ZERO, 10)])
    bound = precision.market_bound(asset, side, mark, precision.OPEN_SLIPPAGE)
    assert side * (bound - mark * (1 + side * precision.OPEN_SLIPPAGE)) <= 0


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded messages are not here")
def test_every_recorded_order_has_an_accepted_price_and_size():
    rows = json.loads(RECORDED.read_text())
    meta = next(row["response"] for row in rows if row["request"].get("type") == "meta")
    places = {asset["name"]: asset["szDecimals"] for asset in meta["universe"]}
    orders = [
        order
        for row in rows
        if row["request"].get("type") in ("openOrders", "frontendOpenOrders", "userFills")
        for order in row["response"]
        if order.get("coin") in places
    ]
    assert len(orders) > 50
    for order in orders:
        asset = make_asset(order["coin"], places[order["coin"]], [(ZERO, 50)])
        if "limitPx" in order:
            assert precision.price_problem(asset, Decimal(order["limitPx"])) == "", order
        assert precision.size_problem(asset, Decimal(order["sz"])) == "", order
