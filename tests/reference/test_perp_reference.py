"""PERP §6, orders and fills, against arithmetic done by hand and written out here."""

from decimal import Decimal as D

import pytest

from reference.scene import BASE, FREE, HOUR, MINUTE, T0, codes, fill_rows, flat, last, propose, scene

BUY = propose("open_long", size_usd=1000)
SELL = propose("open_short", size_usd=1000)


# -- step 1: funding


def test_a_long_pays_size_times_open_times_rate_when_the_rate_is_positive():
    # 10 SOL, open on the hour 102, rate 0.0001: 10 × 102 × 0.0001 = 0.102
    rows = {"SOL": [(T0 + BASE + 48, 0.0001)]}
    result = scene({0: BUY}, SOL=[flat(100), flat(102)], funding=rows, **FREE)
    assert result.funding_paid == D("0.102")
    assert last(result) == D(10_000) + 10 * 2 - D("0.102")


def test_a_short_receives_what_a_long_would_pay():
    rows = {"SOL": [(T0 + BASE + 48, 0.0001)]}
    result = scene({0: SELL}, SOL=[flat(100), flat(102)], funding=rows, **FREE)
    assert result.funding_paid == D("-0.102")


def test_funding_comes_before_the_orders_of_its_bar():
    rows = {"SOL": [(T0 + BASE, 0.0001)]}
    opened_on_the_hour = scene({1: BUY}, SOL=[flat(100), flat(100)], funding=rows, **FREE)
    closed_on_the_hour = scene({0: BUY, 1: propose("close")}, SOL=[flat(100), flat(100)], funding=rows, **FREE)
    assert opened_on_the_hour.funding_paid == 0
    assert closed_on_the_hour.funding_paid == D("0.1")


def test_a_row_belongs_to_the_hour_it_is_floored_to():
    # 01:59:59.999 is the 01:00 row; the 02:00 row lies after the last bar
    late = {"SOL": [(T0 + BASE + HOUR - 1, 0.0001), (T0 + BASE + HOUR, 0.5)]}
    assert scene({0: BUY}, SOL=[flat(100)] * 3, funding=late, **FREE).funding_paid == D("0.1")


def test_funding_takes_the_mark_where_the_bar_is_missing_and_the_imported_mark_where_there_is_one():
    rows = {"SOL": [(T0 + BASE + 3, 0.001)]}
    quads = {"SOL": [flat(104), None], "ETH": [flat(1), flat(1)]}
    start = {"SOL": 100.0, "ETH": 1.0}
    assert scene({0: BUY}, start, funding=rows, **quads, **FREE).funding_paid == D("1.04")  # 10 × 104 × 0.001
    imported = {"SOL": [(T0 + BASE, 90.0), (T0, 1.0)]}
    assert scene({0: BUY}, start, funding=rows, marks=imported, **quads, **FREE).funding_paid == D("0.9")


def test_where_no_symbol_has_a_bar_nothing_happens():
    rows = {"SOL": [(T0 + BASE, 0.0001)]}
    result = scene({0: BUY}, SOL=[flat(100), None, flat(100)], funding=rows, **FREE)
    assert result.funding_paid == 0
    assert [at for at, _ in result.equity] == [T0 + BASE, T0 + 3 * BASE]


# -- step 2: market orders


def test_a_market_buy_fills_at_the_next_open_plus_slippage_with_the_taker_fee():
    # size 1000 / 100 = 10; open 101: notional 1010; price 101 × (1 + 10 × 1010 / 1e10) = 101.00010201
    result = scene({0: BUY}, SOL=[(101, 103, 100, 102)])
    (fill,) = result.fills
    assert fill["at"] == T0
    assert (fill["side"], fill["liquidity"], fill["reason"]) == ("buy", "taker", "market")
    assert (fill["size"], fill["price"]) == (D(10), D("101.00010201"))
    assert fill["fee_usd"] == D("0.00045") * 10 * D("101.00010201")
    assert fill["slippage_usd"] == D("0.0010201")
    assert fill["penalty_usd"] == 0
    # 10000 − fee + 10 × (102 − 101.00010201)
    assert result.equity == [(T0 + BASE, D(10_000) - fill["fee_usd"] + D("9.9989799"))]


def test_a_market_sell_fills_below_the_open():
    # 101 × (1 − 1.01e-6) = 100.99989799
    (fill,) = scene({0: SELL}, SOL=[(101, 103, 100, 102)]).fills
    assert (fill["side"], fill["price"], fill["slippage_usd"]) == ("sell", D("100.99989799"), D("0.0010201"))


def test_the_size_of_an_open_is_cut_to_the_lot_at_the_mark_of_its_tick():
    # 1000 / 99.7 = 10.0300902…; SOL has two decimals
    assert fill_rows(scene({0: BUY}, 99.7, SOL=[flat(120)], **FREE)) == [("SOL", "market", "buy", D("10.03"), D(120))]


def test_an_open_that_costs_more_than_free_margin_at_the_open_is_rejected():
    # 100 SOL at leverage 1 with 10,005 USD: at 100 it costs 10000 + 4.5 fee; at 100.01 it is 10001 + 4.50045 > 10005
    order = propose("open_long", size_usd=10_000)
    kept = scene({0: order}, SOL=[flat(100)], equity="10005", slippage_bps_per_million="0")
    gone = scene({0: order}, SOL=[flat(100.01)], equity="10005", slippage_bps_per_million="0")
    assert len(kept.fills) == 1
    assert gone.fills == []
    assert gone.cancels == [(T0, 1, "margin")]


def test_margin_needed_exactly_equal_to_free_margin_is_enough():
    order = propose("open_long", size_usd=10_000)
    assert len(scene({0: order}, SOL=[flat(100)], equity="10004.5", slippage_bps_per_million="0").fills) == 1


def test_other_working_opens_are_reserved_at_the_open_and_the_order_itself_is_not():
    # 6000 rests on ETH (60 at 100); SOL 39.9 × 100 + fee 1.7955 fits into 4000, 40 × 100 + 1.8 does not fit after a gap
    rest = propose("open_long", "ETH", size_usd=6000, order_type="limit", limit_price=90)
    fits = scene({0: rest, 1: propose("open_long", size_usd=3990)}, SOL=[flat(100)] * 2, ETH=[flat(100)] * 2)
    assert [f["symbol"] for f in fits.fills] == ["SOL"]
    # ETH opens at 101: its reservation is 6060, free margin 3940
    moved = [flat(100), flat(101)]
    no = scene({0: rest, 1: propose("open_long", size_usd=3990)}, SOL=[flat(100)] * 2, ETH=moved)
    assert no.cancels == [(T0 + BASE, 2, "margin")]


def test_market_orders_act_in_submission_order_when_a_missing_bar_made_them_wait():
    quads = {"SOL": [flat(100), None, None, flat(110)], "ETH": [flat(1)] * 4}
    result = scene({0: BUY, 1: BUY, 2: propose("close")}, {"SOL": 100.0, "ETH": 1.0}, **quads, **FREE)
    assert fill_rows(result) == [
        ("SOL", "market", "buy", D(10), D(100)),
        ("SOL", "market", "buy", D(10), D(110)),
        ("SOL", "market", "sell", D(20), D(110)),
    ]


def test_an_order_waits_for_the_first_bar_after_its_latency():
    for latency, at in ((0, 0), (1, 1), (5 * MINUTE, 1), (5 * MINUTE + 1, 2)):
        result = scene({0: BUY}, SOL=[flat(100)] * 3, latency_ms=latency)
        assert result.fills[0]["at"] == T0 + at * BASE


@pytest.mark.parametrize(
    ("reduce", "size"),
    [
        ({"reduce_pct": D("33.337")}, D("3.33")),  # 10 × 33.337 % = 3.3337
        ({"size_usd": 55}, D("0.55")),
        ({"size_usd": D("0.5")}, D("0.01")),  # half a lot: at least one lot
        ({"size_usd": 5000}, D(10)),  # at most the position
        ({"reduce_pct": 100}, D(10)),
    ],
)
def test_a_reduce_is_rounded_down_to_at_least_one_lot_and_at_most_the_position(reduce, size):
    result = scene({0: BUY, 1: propose("reduce", **reduce)}, SOL=[flat(100)] * 2, **FREE)
    assert fill_rows(result)[1] == ("SOL", "market", "sell", size, D(100))


def test_a_reduction_takes_cost_in_proportion_and_realises_the_difference():
    # 10 at 100 and 10 at 110: size 20, cost 2100. Sell 5 at 120: cost taken 525, realised 600 − 525 = 75
    steps = {0: BUY, 1: propose("open_long", size_usd=1000), 2: propose("reduce", reduce_pct=25)}
    result = scene(steps, SOL=[(100, 100, 100, 100), (110, 110, 110, 110), flat(120)], **FREE)
    # second open: 1000 / 100 (mark) = 10
    assert result.account.cash == D(10_075)
    assert result.account.positions["SOL"].cost == D(1575)
    assert last(result) == D(10_075) + 15 * 120 - 1575


def test_a_close_or_reduce_without_a_position_left_is_cancelled():
    quads = {"SOL": [flat(100), None, flat(100)], "ETH": [flat(1)] * 3}
    result = scene(
        {0: BUY, 1: propose("close"), 2: propose("reduce", reduce_pct=50)}, {"SOL": 100.0, "ETH": 1.0}, **quads
    )
    assert codes(result) == ["allowed"] * 3
    assert result.cancels == [(T0 + 2 * BASE, 3, "no_position")]


# -- step 3 and 5: limits


def limit(side: str, price: float, usd: int = 1000, **more):
    return propose(f"open_{side}", size_usd=usd, order_type="limit", limit_price=D(str(price)), **more)


def test_a_limit_marketable_at_its_first_open_fills_there_as_taker():
    (fill,) = scene({0: limit("long", 101)}, SOL=[(101, 105, 99, 100)]).fills
    assert (fill["price"], fill["liquidity"], fill["slippage_usd"]) == (D(101), "taker", 0)
    assert fill["fee_usd"] == D("0.00045") * 10 * 101


def test_a_limit_marketable_at_a_later_open_fills_there_as_maker():
    # the first bar touches 95 without going through it
    (fill,) = scene({0: limit("long", 95)}, SOL=[(100, 100, 95, 96), (94, 96, 93, 95)]).fills
    assert (fill["at"], fill["price"], fill["liquidity"]) == (T0 + BASE, D(94), "maker")
    assert fill["fee_usd"] == D("0.00015") * 10 * 94


def test_the_first_bar_of_a_limit_is_the_first_bar_its_symbol_has():
    quads = {"SOL": [None, flat(101)], "ETH": [flat(1)] * 2}
    (fill,) = scene({0: limit("long", 101)}, {"SOL": 100.0, "ETH": 1.0}, **quads).fills
    assert (fill["at"], fill["liquidity"]) == (T0 + BASE, "taker")


def test_a_resting_limit_needs_a_price_strictly_through_it():
    touched = scene({0: limit("long", 95)}, SOL=[(100, 100, 95, 96)])
    through = scene({0: limit("long", 95)}, SOL=[(100, 100, 94.99, 96)])
    assert touched.fills == []
    (fill,) = through.fills
    assert (fill["price"], fill["liquidity"], fill["fee_usd"]) == (D(95), "maker", D("0.00015") * 10 * 95)
    assert scene({0: limit("short", 105)}, SOL=[(100, 105, 100, 100)]).fills == []
    assert fill_rows(scene({0: limit("short", 105)}, SOL=[(100, 105.01, 100, 100)]))[0][4] == D(105)


def test_a_resting_limit_is_checked_at_the_limit_price_with_positions_at_their_opens_and_removed_if_it_fails():
    # ETH: 50 × 100 held at 2×, fee 2.25. SOL: 4950 / 100 = 49.5 at 1×, limit 99.
    # At the tick 4950 + 2.2275 = 4952.2275 must be free: equity − 2.25 − 2500 = 4952.2275 → start with 7454.4775.
    # In the bar 49.5 × 99 + 0.00015 × 4900.5 = 4901.235075 is needed. ETH opens at x: free changes by
    # 50 × (x − 100) − 25 × (x − 100), so 4952.2275 + 25 × (x − 100): enough at 98 (4902.2275), not at 97.9 (4899.7275).
    # Where ETH closes does not matter.
    steps = {0: propose("open_long", "ETH", size_usd=5000, leverage=2), 1: limit("long", 99, 4950)}
    money = {"equity": "7454.4775", "slippage_bps_per_million": "0"}
    sol = [flat(100), (100, 100, 98, 99)]
    fits = scene(steps, SOL=sol, ETH=[flat(100), (98, 98, 80, 80)], **money)
    gone = scene(steps, SOL=sol, ETH=[flat(100), (97.9, 130, 97.9, 130)], **money)
    assert fill_rows(fits)[1:] == [("SOL", "limit", "buy", D("49.5"), D(99))]
    assert [f["symbol"] for f in gone.fills] == ["ETH"]
    assert gone.cancels == [(T0 + BASE, 2, "margin")]


def test_an_open_that_meets_an_opposite_position_is_cancelled():
    # only reachable without the guard, which refuses the second order
    both = [limit("long", 95), limit("short", 105)]
    result = scene({0: both}, SOL=[(100, 100, 94, 95), (95, 106, 95, 100)], guard=False)
    assert fill_rows(result) == [("SOL", "limit", "buy", D(10), D(95))]
    assert result.cancels == [(T0 + BASE, 2, "opposite_position")]


def test_closing_a_position_leaves_working_opens_alone_and_a_cancel_takes_them_away():
    steps = {0: BUY, 1: limit("long", 90), 2: propose("close"), 4: propose("cancel", order_id="o2")}
    result = scene(steps, SOL=[flat(100)] * 5 + [flat(80)])
    assert result.cancels == [(T0 + 4 * BASE, 2, "cancel")]
    kept = scene({k: v for k, v in steps.items() if k != 4}, SOL=[flat(100)] * 5 + [flat(80)])
    assert fill_rows(kept)[-1] == ("SOL", "limit", "buy", D("10"), D(80))


def test_leverage_changes_when_an_open_is_accepted_even_if_the_order_never_fills():
    # 50 SOL held at 5×: used 1000, free 9000 of 10000. A far limit at 1× makes it 5000 + its own 1000 at once
    first = propose("open_long", size_usd=5000, leverage=5)
    far = limit("long", 60, 1000, leverage=1)
    after = propose("open_long", "ETH", size_usd=4100)  # needs 4100 + 1.845; free is 10000 − 5000 − 1000 = 4000
    result = scene({0: first, 1: far, 2: after}, SOL=[flat(100)] * 3, ETH=[flat(100)] * 3, **FREE)
    assert codes(result) == ["allowed", "allowed", "R9_MARGIN"]
    without = scene({0: first, 2: after}, SOL=[flat(100)] * 3, ETH=[flat(100)] * 3, **FREE)
    assert codes(without) == ["allowed", "allowed"]


# -- step 5: take-profits; step 4: stops (see also the liquidation tests)


def bracket(side: str, stop: float | None = None, target: float | None = None):
    more = {}
    if stop is not None:
        more["stop_loss"] = D(str(stop))
    if target is not None:
        more["take_profit"] = D(str(target))
    return propose(f"open_{side}", size_usd=1000, **more)


def test_a_stop_is_touched_at_its_price_and_slips_from_there():
    # p = 95, size 10: 95 × (1 − 10 × 950 / 1e10) = 94.99990975
    result = scene({0: bracket("long", 95)}, SOL=[(100, 101, 95, 99)])
    fill = result.fills[1]
    assert (fill["reason"], fill["liquidity"], fill["price"]) == ("stop", "taker", D("94.99990975"))
    assert fill["slippage_usd"] == D("0.0009025")
    assert fill["fee_usd"] == D("0.00045") * 10 * D("94.99990975")
    assert len(scene({0: bracket("long", 95)}, SOL=[(100, 101, 95.01, 99)]).fills) == 1


def test_a_stop_gapped_over_fills_at_the_open():
    result = scene({0: bracket("long", 95)}, SOL=[flat(100), (90, 99, 89, 98)], **FREE)
    assert fill_rows(result)[1] == ("SOL", "stop", "sell", D(10), D(90))
    short = scene({0: bracket("short", 105)}, SOL=[flat(100), (110, 111, 100, 100)], **FREE)
    assert fill_rows(short)[1] == ("SOL", "stop", "buy", D(10), D(110))


def test_a_stop_acts_on_the_bar_of_its_own_fill_at_the_open_but_not_on_that_of_a_resting_fill():
    same_bar = scene({0: bracket("long", 95)}, SOL=[(100, 100, 90, 99)], **FREE)
    assert [f["reason"] for f in same_bar.fills] == ["market", "stop"]
    rested = limit("long", 97, stop_loss=95)
    next_bar = scene({0: rested}, SOL=[(100, 100, 90, 99), (99, 99, 96, 97), (97, 97, 94, 95)], **FREE)
    assert [(f["reason"], f["at"]) for f in next_bar.fills] == [("limit", T0), ("stop", T0 + 2 * BASE)]


def test_a_take_profit_needs_a_price_strictly_beyond_it_unless_the_open_is_there():
    assert len(scene({0: bracket("long", target=105)}, SOL=[(100, 105, 100, 104)]).fills) == 1
    (_, fill) = scene({0: bracket("long", target=105)}, SOL=[(100, 105.01, 100, 104)]).fills
    assert (fill["reason"], fill["price"], fill["liquidity"]) == ("take_profit", D(105), "maker")
    assert fill["fee_usd"] == D("0.00015") * 10 * 105
    gap = scene({0: bracket("long", target=105)}, SOL=[flat(100), (105, 105, 104, 104)])
    assert gap.fills[1]["price"] == D(105)
    gap = scene({0: bracket("short", target=95)}, SOL=[flat(100), (93, 94, 92, 94)])
    assert (gap.fills[1]["price"], gap.fills[1]["side"]) == (D(93), "buy")


def test_stop_and_take_profit_in_one_bar_end_at_the_stop():
    result = scene({0: bracket("long", 95, 105)}, SOL=[(100, 110, 90, 100)], **FREE)
    assert [f["reason"] for f in result.fills] == ["market", "stop"]


def test_an_open_that_names_brackets_sets_them_for_the_whole_position_and_one_that_does_not_leaves_them():
    steps = {0: bracket("long", 90, 120), 1: bracket("long", 95), 2: BUY}
    result = scene(steps, SOL=[flat(100)] * 3, **FREE)
    position = result.account.positions["SOL"]
    assert (position.size, position.stop, position.take_profit) == (D(30), D(95), D(120))


def test_brackets_vanish_with_the_position():
    result = scene({0: bracket("long", 95, 105), 1: propose("close"), 2: BUY}, SOL=[flat(100)] * 3 + [flat(80)])
    assert [f["reason"] for f in result.fills] == ["market"] * 3


def test_a_symbol_without_a_bar_keeps_its_mark_and_its_stop_waits():
    quads = {"SOL": [flat(100), None, flat(90)], "ETH": [flat(1)] * 3}
    result = scene({0: bracket("long", 95)}, {"SOL": 100.0, "ETH": 1.0}, **quads, **FREE)
    assert [value for _, value in result.equity] == [D(10_000), D(10_000), D(9_900)]
    assert result.fills[1]["at"] == T0 + 2 * BASE


# -- the end


def test_at_the_end_positions_are_marked_and_closed_only_if_asked():
    open_ = scene({0: BUY}, SOL=[flat(100), (100, 110, 100, 110)], **FREE)
    assert len(open_.fills) == 1
    closed = scene({0: BUY}, SOL=[flat(100), (100, 110, 100, 110)], close_at_end=True)
    fill = closed.fills[1]
    assert (fill["reason"], fill["price"], fill["at"], fill["slippage_usd"]) == ("end", D(110), T0 + BASE, 0)
    assert fill["fee_usd"] == D("0.00045") * 1100
    assert closed.final_equity == last(closed) - fill["fee_usd"]


def test_before_the_first_tick_nothing_is_consumed_and_the_mark_is_the_last_close():
    # ticks every 15 minutes, the range begins at 00:55: T0 is 01:00 and the bar of 00:55 is only a mark
    result = scene({1: BUY}, SOL=[flat(80), flat(100), flat(100), flat(100)], every=3, **FREE)
    assert fill_rows(result) == [("SOL", "market", "buy", D("12.5"), D(100))]
    assert [at for at, _ in result.equity] == [T0 + k * BASE for k in (2, 3, 4)]
