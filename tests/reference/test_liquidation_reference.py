"""PERP §6 step 4, the adverse path, against arithmetic done by hand and written out here."""

from decimal import Decimal as D
from decimal import localcontext
from fractions import Fraction

import pytest

from reference.assets import SHIPPED, maintenance
from reference.perp import CONTEXT
from reference.scene import FREE, T0, fill_rows, flat, last, propose, scene

NO_SLIP = {"maker_bps": "0", "taker_bps": "0", "slippage_bps_per_million": "0"}


def ratio(numerator: str, denominator: str) -> D:
    with localcontext(CONTEXT):
        return D(numerator) / D(denominator)


def near(value: D, expected: D) -> bool:
    return abs(value - expected) < D("1e-40")


def test_a_long_is_liquidated_where_equity_meets_maintenance():
    # 100 SOL at 100 on 1000 USD. equity(p) = 100 p − 9000, maintenance = 100 p / 40 = 2.5 p: p = 9000 / 97.5
    order = propose("open_long", size_usd=10_000, leverage=20)
    result = scene({0: order}, SOL=[(100, 100, 90, 95)], equity="1000", **NO_SLIP)
    price = ratio("9000", "97.5")
    fill = result.fills[1]
    assert (fill["reason"], fill["side"], fill["liquidity"], fill["at"]) == ("liquidation", "sell", "taker", T0)
    assert near(fill["price"], price)
    assert (fill["fee_usd"], fill["slippage_usd"]) == (0, 0)
    # penalty 50 bps of 100 p = 0.5 p = 4500 / 97.5; left: 100 p − 9000 − 0.5 p = (99.5 × 9000 − 877500) / 97.5
    assert near(fill["penalty_usd"], ratio("4500", "97.5"))
    assert near(last(result), ratio("18000", "97.5"))
    assert (result.liquidations, result.deficit) == (1, 0)


def test_fee_and_penalty_are_taken_apart():
    order = propose("open_long", size_usd=10_000, leverage=20)
    result = scene({0: order}, SOL=[flat(100), flat(91)], equity="1010", slippage_bps_per_million="0")
    # cash after the open 1010 − 4.5 = 1005.5; at 91 equity 105.5 ≤ maintenance 227.5: liquidated at the open
    fill = result.fills[1]
    assert (fill["price"], fill["fee_usd"], fill["penalty_usd"]) == (D(91), D("4.095"), D("45.5"))
    assert last(result) == D("105.5") - D("4.095") - D("45.5")


def test_a_short_is_liquidated_where_equity_meets_maintenance():
    # short 100 SOL at 100 on 1000: equity = 11000 − 100 p = 2.5 p: p = 11000 / 102.5
    order = propose("open_short", size_usd=10_000, leverage=20)
    result = scene({0: order}, SOL=[(100, 110, 100, 100)], equity="1000", **FREE)
    assert near(result.fills[1]["price"], ratio("11000", "102.5"))


def doge(low: float, **more):
    # 1000 DOGE at 10 on 1450 USD, rate 1/20: equity = 1000 p − 8550 = 50 p at p = 9 exactly
    order = propose("open_long", "DOGE", size_usd=10_000, leverage=10, **more)
    return scene({0: order}, 10.0, DOGE=[(10, 10, low, 9.5)], equity="1450", **FREE)


def test_equal_to_maintenance_is_liquidated():
    assert fill_rows(doge(9))[1] == ("DOGE", "liquidation", "sell", D(1000), D(9))
    assert len(doge(9.001).fills) == 1


def test_a_stop_at_the_same_point_comes_before_the_liquidation():
    assert fill_rows(doge(8.5, stop_loss=9))[1:] == [("DOGE", "stop", "sell", D(1000), D(9))]
    assert fill_rows(doge(8.5, stop_loss=D("8.99")))[1][1] == "liquidation"


def test_what_is_lost_beyond_cash_is_a_deficit():
    # opens at 80: equity 1000 − 2000 = −1000, penalty 50 bps of 8000 = 40
    order = propose("open_long", size_usd=10_000, leverage=20)
    result = scene({0: order}, SOL=[flat(100), flat(80), flat(80)], equity="1000", **NO_SLIP)
    assert fill_rows(result)[1] == ("SOL", "liquidation", "sell", D(100), D(80))
    assert result.deficit == D(1040)
    assert [value for _, value in result.equity] == [D(1000), D(0), D(0)]


def test_a_liquidation_cancels_every_working_order():
    steps = {
        0: propose("open_long", size_usd=5_000, leverage=20),
        1: propose("open_long", size_usd=1000, leverage=20, order_type="limit", limit_price=60),
        2: propose("open_long", "ETH", size_usd=100, leverage=5, order_type="limit", limit_price=60),
    }
    result = scene(steps, SOL=[flat(100)] * 3 + [flat(80)], ETH=[flat(100)] * 4, equity="1000", **FREE)
    assert result.cancels == [(T0 + 900_000, 2, "liquidation"), (T0 + 900_000, 3, "liquidation")]


def pair(**more):
    """50 SOL long at 100 and 5000 DOGE short at 1, both by limit (no slippage), on 1000 USD."""
    sol = {"stop_loss": more.pop("sol_stop")} if "sol_stop" in more else {}
    steps = {
        0: propose("open_long", size_usd=5000, leverage=20, order_type="limit", limit_price=100, **sol),
        1: propose("open_short", "DOGE", size_usd=5000, leverage=10, order_type="limit", limit_price=1),
    }
    quads = {"SOL": [flat(100), flat(100), (100, 100, 90, 90)], "DOGE": [flat(1), flat(1), (1, 1.1, 1, 1.1)]}
    quads |= more.pop("quads", {})
    costs = {**FREE, **more}
    return scene(steps, {"SOL": 100.0, "DOGE": 1.0}, equity="1000", **quads, **costs)


def test_two_symbols_move_together_and_are_liquidated_at_the_same_point():
    # equity(λ) = 1000 − 500 λ − 500 λ; maintenance(λ) = (5000 − 500 λ)/40 + (5000 + 500 λ)/20 = 375 + 12.5 λ
    # 625 = 1012.5 λ: λ = 50/81; SOL 100 − 500/81, DOGE 1 + 5/81; code-point order
    result = pair()
    assert [f["symbol"] for f in result.fills[2:]] == ["DOGE", "SOL"]
    assert near(result.fills[2]["price"], ratio("86", "81"))
    assert near(result.fills[3]["price"], ratio("7600", "81"))
    assert result.liquidations == 1


def test_a_stop_on_the_way_saves_the_rest_and_the_path_goes_on_from_there():
    # SOL stopped at 95 (λ = 0.5, before 50/81): cash 750. Then equity(λ) = 750 − 500 λ, maintenance = 250 + 25 λ:
    # 500 = 525 λ → λ = 20/21, DOGE at 1 + 2/21
    result = pair(sol_stop=95)
    assert fill_rows(result)[2] == ("SOL", "stop", "sell", D(50), D(95))
    assert result.fills[3]["reason"] == "liquidation"
    assert near(result.fills[3]["price"], ratio("23", "21"))


def test_the_cost_of_a_stop_can_liquidate_the_rest_at_the_same_point():
    # slippage of the stop: 50 × 95 × k × 4750 / 1e10 = k × 0.00225625; with k = 110000 it is 248.1875
    # equity at λ = 0.5: 500 − 248.1875 = 251.8125 ≤ maintenance of DOGE at 1.05: 5250/20 = 262.5
    result = pair(sol_stop=95, slippage_bps_per_million="110000")
    stop, rest = result.fills[2:]
    assert (stop["reason"], stop["slippage_usd"]) == ("stop", D("248.1875"))
    assert (rest["symbol"], rest["reason"], rest["price"]) == ("DOGE", "liquidation", D("1.05"))
    # with k = 105000 it is 236.90625, equity 263.09375 > 262.5: the path goes on
    later = pair(sol_stop=95, slippage_bps_per_million="105000").fills[3]
    assert (later["reason"], later["price"] > D("1.05")) == ("liquidation", True)


def test_stops_at_the_same_point_go_in_code_point_order():
    steps = {
        0: propose("open_long", "SOL", size_usd=1000, stop_loss=95),
        1: propose("open_long", "ETH", size_usd=1000, stop_loss=95),
    }
    crash = [flat(100), flat(100), (100, 100, 90, 90)]
    result = scene(steps, SOL=crash, ETH=crash, **FREE)
    assert [(f["symbol"], f["reason"]) for f in result.fills[2:]] == [("ETH", "stop"), ("SOL", "stop")]


def test_a_symbol_without_a_bar_is_liquidated_at_its_mark():
    # DOGE has no bar; SOL falls to 80: equity(λ) = 1000 − 1000 λ, maintenance(λ) = (5000 − 1000 λ)/40 + 250:
    # 1000 − 1000 λ = 375 − 25 λ: λ = 625/975 = 25/39, SOL at 100 − 20 × 25/39 = 3400/39
    quads = {"SOL": [flat(100), flat(100), (100, 100, 80, 80)], "DOGE": [flat(1), flat(1), None]}
    result = pair(quads=quads)
    assert fill_rows(result)[2] == ("DOGE", "liquidation", "buy", D(5000), D(1))
    assert near(result.fills[3]["price"], ratio("3400", "39"))


def test_a_favourable_move_does_not_help_within_the_adverse_path():
    # high 200 cannot save a long whose low is below the liquidation price
    order = propose("open_long", size_usd=10_000, leverage=20, take_profit=150)
    result = scene({0: order}, SOL=[(100, 200, 90, 200)], equity="1000", **FREE)
    assert result.fills[1]["reason"] == "liquidation"


@pytest.mark.parametrize(
    ("symbol", "notional", "expected"),
    [
        ("BTC", 150_000_000, Fraction(1_875_000)),  # 150 M / 80
        ("BTC", 200_000_000, Fraction(3_125_000)),  # 200 M / 40 − 150 M × (1/40 − 1/80)
        ("ETH", 100_000_000, Fraction(2_000_000)),
        ("ETH", 130_000_000, Fraction(3_000_000)),  # 2 M + 30 M / 30
        ("DOGE", 130_000_000, Fraction(6_500_000)),
    ],
)
def test_maintenance_is_continuous_over_tiers(symbol, notional, expected):
    assert maintenance(SHIPPED[symbol], Fraction(notional)) == expected


def test_a_long_in_the_second_tier_is_liquidated_by_that_tiers_rate():
    # 2000 BTC at 100,000 on 10 M. N = notional: N − 190 M = N/40 − 1.875 M → N = 188.125 M / 0.975
    order = propose("open_long", "BTC", size_usd=200_000_000, leverage=40)
    result = scene({0: order}, 100_000.0, BTC=[(100_000, 100_000, 90_000, 90_000)], equity="10000000", **FREE)
    assert near(result.fills[1]["price"], ratio("188125000", "1950"))


def test_a_short_that_rises_into_the_second_tier_is_liquidated_there():
    # short 1400 BTC at 100,000 on 15 M: 155 M − N = N/40 − 1.875 M → N = 156.875 M / 1.025 = 153.05 M > 150 M
    order = propose("open_short", "BTC", size_usd=140_000_000, leverage=20)
    result = scene({0: order}, 100_000.0, BTC=[(100_000, 120_000, 100_000, 100_000)], equity="15000000", **FREE)
    assert near(result.fills[1]["price"], ratio("156875000", "1435"))


def test_a_long_that_falls_out_of_the_second_tier_is_liquidated_in_the_first():
    # 1600 BTC at 100,000 (160 M) on 13 M: in tier 2 N − 147 M = N/40 − 1.875 M → N = 148.85 M < 150 M, so in tier 1:
    # N − 147 M = N/80 → N = 147 M × 80/79; price = N / 1600 = 7350000/79
    order = propose("open_long", "BTC", size_usd=160_000_000, leverage=20)
    result = scene({0: order}, 100_000.0, BTC=[(100_000, 100_000, 80_000, 80_000)], equity="13000000", **FREE)
    assert near(result.fills[1]["price"], ratio("7350000", "79"))


def test_after_a_stop_left_cash_below_zero_nothing_open_means_no_liquidation_and_no_deficit():
    # 1000 DOGE at 10 on 1450; gap to 8 with a stop at 9: stop at 8 loses 2000
    order = propose("open_long", "DOGE", size_usd=10_000, leverage=10, stop_loss=9)
    result = scene({0: order}, 10.0, DOGE=[flat(10), flat(8)], equity="1450", **FREE)
    assert [f["reason"] for f in result.fills] == ["market", "stop"]
    assert (last(result), result.deficit) == (D(-550), D(0))
