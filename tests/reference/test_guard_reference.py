"""PERP §4 and §5: every rule of the reference both ways, and the halts."""

from decimal import Decimal as D

import pytest

from reference.scene import BASE, DAY, FREE, MIDNIGHT, T0, codes, fill_rows, flat, last, propose, scene

OPEN = propose("open_long", size_usd=1000)


def verdict(proposal, **more):
    """The verdict on one proposal at the first tick, mark 100."""
    more.setdefault("SOL", [flat(100)] * 2)
    return codes(scene({0: proposal}, **more))[0]


def without(key):
    return {k: v for k, v in OPEN.items() if k != key}


# -- R1


@pytest.mark.parametrize(
    "proposal",
    [
        [],
        "close",
        3,
        {},
        {**OPEN, "size": 5},
        {**OPEN, "action": "buy"},
        {**OPEN, "action": ["open_long"]},
        without("size_usd"),
        without("symbol"),
        without("reason"),
        {**OPEN, "symbol": 5},
        {**OPEN, "size_usd": "1000"},
        {**OPEN, "size_usd": True},
        {**OPEN, "size_usd": None},
        {**OPEN, "size_usd": D("NaN")},
        {**OPEN, "size_usd": float("inf")},
        {**OPEN, "leverage": "2"},
        {**OPEN, "order_type": "stop"},
        {**OPEN, "order_type": "limit"},
        propose("close", order_type="limit", limit_price=100),
        propose("reduce"),
        propose("reduce", size_usd=5, reduce_pct=5),
        propose("reduce", reduce_pct=0),
        propose("reduce", reduce_pct=D("100.1")),
        propose("reduce", size_usd=0),
        propose("cancel"),
        propose("cancel", order_id=1),
        {"action": "no_op", "reason": "x", "nonsense": 1},
    ],
    ids=str,
)
def test_an_invalid_proposal_is_refused_as_r1(proposal):
    assert verdict(proposal) == "R1_SHAPE"


@pytest.mark.parametrize(
    "proposal", [None, propose("no_op"), {"action": "no_op", "reason": "x"}, propose("no_op", confidence=D("0.1"))]
)
def test_nothing_proposed_is_a_noop(proposal):
    assert verdict(proposal) == "noop"


def test_a_valid_open_is_allowed():
    assert verdict({**OPEN, "leverage": D("2.0"), "confidence": 1, "limit_price": 5}) == "allowed"


# -- R2


def test_r2_refuses_opens_out_of_scope():
    assert verdict({**OPEN, "symbol": "ETH"}) == "R2_SCOPE"
    assert verdict(OPEN, risk={"allowed_symbols": ["ETH"]}) == "R2_SCOPE"
    assert verdict(OPEN, risk={"allowed_symbols": ["SOL"]}) == "allowed"
    assert verdict({**OPEN, "symbol": "XMR"}, XMR=[flat(100)] * 2) == "R2_SCOPE"  # the venue does not list it


def test_r2_refuses_what_is_opposite_to_a_position_or_a_working_open():
    short = propose("open_short", size_usd=1000)
    assert codes(scene({0: OPEN, 1: short}, SOL=[flat(100)] * 2)) == ["allowed", "R2_SCOPE"]
    rest = {**OPEN, "order_type": "limit", "limit_price": 90}
    assert codes(scene({0: rest, 1: short}, SOL=[flat(100)] * 2)) == ["allowed", "R2_SCOPE"]
    assert codes(scene({0: rest, 1: OPEN}, SOL=[flat(100)] * 2)) == ["allowed", "allowed"]


def test_r2_refuses_to_close_reduce_or_cancel_what_is_not_there():
    assert verdict(propose("close")) == "R2_SCOPE"
    assert verdict(propose("reduce", reduce_pct=50)) == "R2_SCOPE"
    assert verdict(propose("cancel", order_id="o1")) == "R2_SCOPE"
    assert codes(scene({0: OPEN, 1: propose("cancel", order_id="o1")}, SOL=[flat(100)] * 2))[1] == "R2_SCOPE"


def test_order_ids_count_accepted_orders_of_all_kinds():
    steps = {
        0: OPEN,
        1: propose("reduce", reduce_pct=50),
        2: propose("close"),
        3: {**OPEN, "order_type": "limit", "limit_price": 90},
        4: propose("cancel", order_id="o4"),
    }
    result = scene(steps, SOL=[flat(100)] * 5)
    assert codes(result) == ["allowed"] * 5
    assert result.cancels == [(T0 + 4 * BASE, 4, "cancel")]


# -- R3, R4


def test_r3_compares_the_rounded_notional_with_the_cap():
    risk = {"max_position_pct": 25}
    assert verdict({**OPEN, "size_usd": 2500}, risk=risk) == "allowed"
    assert verdict({**OPEN, "size_usd": D("2500.99")}, risk=risk) == "allowed"  # 25.00 lots
    assert verdict({**OPEN, "size_usd": 2501}, risk=risk) == "R3_POSITION_CAP"


def test_r3_counts_the_position_at_mark_and_working_opens_at_the_higher_of_mark_and_limit():
    risk = {"max_position_pct": 25}
    # 10 held at mark 110 = 1100; equity 10100: cap 2525; 12 × 110 = 1320 fits (2420), 13 × 110 = 1430 does not (2530)
    quads = {"SOL": [(100, 110, 100, 110), flat(110)]}
    assert codes(scene({0: OPEN, 1: {**OPEN, "size_usd": 1320}}, risk=risk, **quads, **FREE))[1] == "allowed"
    assert codes(scene({0: OPEN, 1: {**OPEN, "size_usd": 1430}}, risk=risk, **quads, **FREE))[1] == "R3_POSITION_CAP"
    # a short resting at 120: 10 × 120 = 1200, then 13 × 100 = 1300 makes 2500, 13.01 is too much
    rest = propose("open_short", size_usd=1000, order_type="limit", limit_price=120)
    more = propose("open_short", size_usd=1300)
    assert codes(scene({0: rest, 1: more}, risk=risk, SOL=[flat(100)] * 2))[1] == "allowed"
    more = propose("open_short", size_usd=1301)
    assert codes(scene({0: rest, 1: more}, risk=risk, SOL=[flat(100)] * 2))[1] == "R3_POSITION_CAP"
    # this order itself at its limit: 21 × 120 = 2520
    assert (
        verdict(propose("open_short", size_usd=2100, order_type="limit", limit_price=120), risk=risk)
        == "R3_POSITION_CAP"
    )


def test_r4_sums_over_symbols():
    risk = {"max_total_exposure_pct": 30}
    quads = {"SOL": [flat(100)] * 2, "ETH": [flat(100)] * 2}
    for usd, code in ((2000, "allowed"), (2001, "R4_EXPOSURE_CAP")):
        steps = {0: OPEN, 1: propose("open_short", "ETH", size_usd=usd)}
        # ETH lots are 0.0001: 2001 USD = 20.01
        assert codes(scene(steps, risk=risk, **quads, **FREE))[1] == code


# -- R5, R6, R7


@pytest.mark.parametrize(
    ("leverage", "code"),
    [
        (1, "allowed"),
        (5, "allowed"),
        (D("5.0"), "allowed"),
        (6, "R5_LEVERAGE_CAP"),
        (0, "R5_LEVERAGE_CAP"),
        (-1, "R5_LEVERAGE_CAP"),
        (D("2.5"), "R5_LEVERAGE_CAP"),
    ],
)
def test_r5_wants_an_integer_between_one_and_the_cap(leverage, code):
    assert verdict({**OPEN, "leverage": leverage}, risk={"max_leverage": 5}) == code


def test_r5_knows_the_assets_own_maximum():
    assert verdict({**OPEN, "leverage": 20}) == "allowed"
    assert verdict({**OPEN, "leverage": 21}) == "R5_LEVERAGE_CAP"


@pytest.mark.parametrize(
    ("usd", "code"),
    [
        (10, "allowed"),
        (D("9.99"), "R6_ORDER_SIZE"),
        (D("0.5"), "R6_ORDER_SIZE"),
        (0, "R6_ORDER_SIZE"),
        (-50, "R6_ORDER_SIZE"),
    ],
)
def test_r6_refuses_small_orders(usd, code):
    assert verdict({**OPEN, "size_usd": usd}, risk={"min_order_usd": 1}) == code  # the venue's 10 stands above ours


def test_r6_compares_rounded_size_times_mark_with_both_limits():
    assert verdict({**OPEN, "size_usd": 50}, risk={"min_order_usd": 50}) == "allowed"
    assert verdict({**OPEN, "size_usd": D("49.99")}, risk={"min_order_usd": 50}) == "R6_ORDER_SIZE"
    assert verdict({**OPEN, "size_usd": D("500.99")}, risk={"max_order_usd": 500}) == "allowed"
    assert verdict({**OPEN, "size_usd": 501}, risk={"max_order_usd": 500}) == "R6_ORDER_SIZE"


def test_r7_counts_accepted_opens_of_the_last_hour_only():
    steps = {0: OPEN, 1: {**OPEN, "size_usd": 1}, 2: OPEN, 3: OPEN, 4: propose("close"), 12: OPEN, 13: OPEN}
    result = scene(steps, risk={"max_orders_per_hour": 2}, SOL=[flat(100)] * 14)
    # the open of tick 0 is exactly one hour old at tick 12: no longer counted; a refused one never was
    assert codes(result) == [
        "allowed",
        "R6_ORDER_SIZE",
        "allowed",
        "R7_ORDER_RATE",
        "allowed",
        "allowed",
        "R7_ORDER_RATE",
    ]


# -- R8 and halts


def falling(close: float, risk: dict, **more):
    """50 SOL bought at 100 of 10,000 USD, then a close at `close`; a limit rests; a second open is asked for."""
    rest = propose("open_long", size_usd=1000, order_type="limit", limit_price=60)
    steps = {0: propose("open_long", size_usd=5000, stop_loss=50), 1: rest, 2: OPEN}
    quads = [flat(100), (100, 100, close, close), flat(close)]
    return scene(steps, risk=risk, SOL=quads, **{**FREE, **more})


@pytest.mark.parametrize("kind", ["daily_loss", "drawdown"])
def test_a_halt_triggers_at_exactly_its_threshold_and_cancels_working_opens(kind):
    risk = {f"{kind}_halt_pct": 5}
    on = falling(90, risk)  # 50 × 10 = 500 = 5 % of 10000
    assert on.halts == [(T0 + 2 * BASE, kind)]
    assert on.cancels == [(T0 + 2 * BASE, 2, "halt")]
    assert codes(on)[2] == "R8_HALTED"
    assert on.account.positions["SOL"].stop == D(50)
    off = falling(90.01, risk)
    assert (off.halts, off.cancels, codes(off)[2]) == ([], [], "allowed")


def test_a_halt_does_not_trap_a_position():
    steps = {0: propose("open_long", size_usd=5000), 1: propose("reduce", reduce_pct=10), 2: propose("close")}
    result = scene(steps, risk={"daily_loss_halt_pct": 1}, SOL=[(100, 100, 90, 90), flat(90), flat(90)])
    assert len(result.halts) == 1
    assert codes(result) == ["allowed"] * 3
    assert result.account.positions == {}


def test_drawdown_counts_from_the_peak_of_the_run():
    # 50 SOL: 100 → 120 (equity 11000, the peak) → 98 (9900): 10 % below the peak, 1 % below the start
    quads = [(100, 120, 100, 120), (120, 120, 98, 98)]
    order = propose("open_long", size_usd=5000)
    assert scene({0: order}, risk={"drawdown_halt_pct": 10}, SOL=quads, **FREE).halts == [(T0 + 2 * BASE, "drawdown")]
    assert scene({0: order}, risk={"drawdown_halt_pct": D("10.01")}, SOL=quads, **FREE).halts == []


def test_the_point_at_midnight_is_the_reference_of_the_day_that_begins():
    # 23:50 start. −4 % at the 23:55 point, −6 % at the 00:00 point (which begins a day), −10 % at 00:05: 4.26 % of 9400
    first = MIDNIGHT + DAY - 2 * BASE
    order = propose("open_long", size_usd=5000)
    quads = [(100, 100, 92, 92), (92, 92, 88, 88), (88, 88, 80, 80), flat(78.5)]
    result = scene({0: order}, risk={"daily_loss_halt_pct": 5}, first=first, SOL=quads, **FREE)
    # 78.5: equity 8925; 9400 − 8925 = 475 = 5.05 % of 9400
    assert result.halts == [(first + 4 * BASE, "daily_loss")]


def test_a_daily_loss_halt_ends_at_midnight_and_a_drawdown_halt_does_not():
    first = MIDNIGHT + DAY - 3 * BASE
    steps = {0: propose("open_long", size_usd=5000), 1: OPEN, 2: OPEN, 3: OPEN}
    quads = [(100, 100, 90, 90), flat(90), flat(90), flat(90)]
    daily = scene(steps, risk={"daily_loss_halt_pct": 5}, first=first, SOL=quads, **FREE)
    assert codes(daily) == ["allowed", "R8_HALTED", "R8_HALTED", "allowed"]
    both = scene(steps, risk={"drawdown_halt_pct": 5}, first=first, SOL=quads, **FREE)
    assert codes(both)[3] == "R8_HALTED"


def test_a_new_day_begins_even_where_no_bar_closes_at_midnight():
    # the point of 23:50 (−5 %, halted) is the last before midnight and the reference of the next day
    first = MIDNIGHT + DAY - 3 * BASE
    steps = {0: propose("open_long", size_usd=5000), 3: OPEN, 4: OPEN}
    quads = [(100, 100, 90, 90), None, None, flat(81), flat(80)]
    result = scene(steps, risk={"daily_loss_halt_pct": 5}, first=first, SOL=quads, **FREE)
    # at 00:00 no halt: 1000 / 90 = 11.11 more, bought at 81. At 00:05 equity 10000 − 50 × 19 = 9050 (4.74 %): still none
    assert [at for at, _ in result.equity[:2]] == [first + BASE, first + 4 * BASE]
    assert codes(result) == ["allowed", "allowed", "allowed"]
    # at 00:10: 10000 − 50 × 20 − 11.11 × 1 = 8988.89 (what is bought at 80 adds nothing): 5.38 % below 9500
    assert result.halts == [(first + BASE, "daily_loss"), (first + 5 * BASE, "daily_loss")]


def test_without_equity_and_positions_no_model_is_called():
    steps = {0: propose("open_long", size_usd=10_000, leverage=20), 2: OPEN}
    quads = [flat(100), flat(80), flat(80)]
    assert codes(scene(steps, SOL=quads, equity="1000"))[1] == "noop"
    # asked all the same, the cap of 0 USD speaks before R8
    assert codes(scene(steps, SOL=quads, equity="1000", ask_when_ruined=True))[1] == "R3_POSITION_CAP"


# -- R9, R10, R11


def test_r9_wants_margin_and_the_taker_fee_at_the_mark():
    order = {**OPEN, "size_usd": 10_000, "leverage": 4}
    # 10000 / 4 + 4.5
    assert verdict(order, equity="2504.5") == "allowed"
    assert verdict(order, equity="2504.49") == "R9_MARGIN"


def test_r10_compares_the_age_of_the_newest_closed_bar_with_the_limit():
    quads = {"SOL": [flat(100), None, None, None, flat(100)], "ETH": [flat(100)] * 5}
    # the bar of 00:55 closed at 01:00. At 01:10 it is 600 s old, at 01:15 900 s
    steps = {3: OPEN, 4: {**OPEN, "symbol": "ETH"}}
    assert codes(scene(steps, risk={"max_data_age_s": 600}, **quads)) == ["allowed", "allowed"]
    assert codes(scene(steps, risk={"max_data_age_s": 599}, **quads)) == ["R10_STALE_DATA", "allowed"]
    # null = 2 × bars_interval (5m) = 600 s
    assert codes(scene({4: OPEN}, risk={"max_data_age_s": None}, **quads)) == ["R10_STALE_DATA"]
    assert codes(scene({3: OPEN}, risk={"max_data_age_s": None}, **quads)) == ["allowed"]


def test_r10_refuses_a_symbol_without_a_mark_after_the_rules_that_need_none():
    quads = {"SOL": [flat(100)] * 2, "symbols": ["SOL", "ETH"]}
    eth = {**OPEN, "symbol": "ETH", "size_usd": 10**9}
    assert codes(scene({0: eth}, **quads)) == ["R10_STALE_DATA"]
    assert codes(scene({0: {**eth, "leverage": 100}}, **quads)) == ["R5_LEVERAGE_CAP"]


def test_r11_refuses_limits_beyond_the_band_on_the_marketable_side_only():
    risk = {"price_band_pct": 5}
    for side, price, code in (
        ("long", 105, "allowed"),
        ("long", D("105.01"), "R11_PRICE_BAND"),
        ("long", 10, "allowed"),
        ("short", 95, "allowed"),
        ("short", D("94.99"), "R11_PRICE_BAND"),
        ("short", 500, "allowed"),
    ):
        order = propose(f"open_{side}", size_usd=1000, order_type="limit", limit_price=price)
        assert verdict(order, risk=risk) == code, (side, price)


def test_r11_judges_prices_after_rounding():
    # five significant figures at 100-odd: two decimals. Buy limit 105.009 → 105.00; stop 99.991 → up to 100.00 = mark
    buy = {**OPEN, "order_type": "limit", "limit_price": D("105.009")}
    assert verdict(buy, risk={"price_band_pct": 5}) == "allowed"
    assert verdict({**OPEN, "stop_loss": D("99.99")}) == "allowed"
    assert verdict({**OPEN, "stop_loss": D("99.9999")}) == "R11_PRICE_BAND"
    assert verdict({**OPEN, "take_profit": D("100.001")}) == "R11_PRICE_BAND"
    assert verdict({**OPEN, "take_profit": D("100.01")}) == "allowed"


@pytest.mark.parametrize(
    ("side", "stop", "target", "code"),
    [
        ("long", 99, 101, "allowed"),
        ("long", 100, None, "R11_PRICE_BAND"),
        ("long", 101, None, "R11_PRICE_BAND"),
        ("long", None, 100, "R11_PRICE_BAND"),
        ("long", None, 99, "R11_PRICE_BAND"),
        ("short", 101, 99, "allowed"),
        ("short", 100, None, "R11_PRICE_BAND"),
        ("short", None, 100, "R11_PRICE_BAND"),
    ],
)
def test_r11_wants_stop_and_take_profit_strictly_on_their_sides_of_the_mark(side, stop, target, code):
    more = {k: v for k, v in (("stop_loss", stop), ("take_profit", target)) if v is not None}
    assert verdict(propose(f"open_{side}", size_usd=1000, **more)) == code


def test_r11_measures_a_limit_orders_brackets_from_the_worse_of_mark_and_limit():
    def at(side, limit, **more):
        return verdict(propose(f"open_{side}", size_usd=1000, order_type="limit", limit_price=limit, **more))

    assert at("long", 95, stop_loss=97) == "R11_PRICE_BAND"
    assert at("long", 95, stop_loss=94) == "allowed"
    assert at("long", 95, take_profit=97) == "allowed"
    assert at("long", 105, stop_loss=102) == "R11_PRICE_BAND"  # min(100, 105) = 100
    assert at("long", 105, take_profit=102) == "allowed"
    assert at("short", 105, stop_loss=103) == "R11_PRICE_BAND"
    assert at("short", 105, stop_loss=106, take_profit=103) == "allowed"


# -- order of rules, rounding


def test_the_first_rule_that_refuses_names_the_verdict():
    everything = {**OPEN, "size_usd": 10**9, "leverage": 99, "stop_loss": 200}
    risk = {"max_position_pct": 25, "max_total_exposure_pct": 20}
    assert verdict({**everything, "symbol": "ETH"}, risk=risk) == "R2_SCOPE"
    assert verdict(everything, risk=risk) == "R3_POSITION_CAP"
    assert verdict({**everything, "size_usd": 2100}, risk=risk) == "R4_EXPOSURE_CAP"
    assert verdict({**everything, "size_usd": 1}, risk=risk) == "R5_LEVERAGE_CAP"
    assert verdict({**everything, "size_usd": 1, "leverage": 1}, risk=risk) == "R6_ORDER_SIZE"
    assert verdict({**everything, "size_usd": 100, "leverage": 1}, risk=risk) == "R11_PRICE_BAND"


@pytest.mark.parametrize(
    ("symbol", "mark", "field", "given", "kept"),
    [
        ("BTC", 100_000.0, "limit", "99999.9", "99999"),  # 5 figures; integers always allowed
        ("BTC", 200_000.0, "limit", "123456.7", "123456"),
        ("ETH", 2500.0, "limit", "2444.47", "2444.4"),
        ("SOL", 100.0, "limit", "95.12345", "95.123"),
        ("DOGE", 0.2, "limit", "0.1234567", "0.12345"),
        ("SOL", 100.0, "stop", "95.12345", "95.124"),  # toward mark: up
        ("SOL", 100.0, "take_profit", "105.129", "105.12"),  # toward mark: down
        ("SOL", 0.5, "limit", "0.1234567", "0.1234"),  # SOL: at most 6 − 2 decimals
    ],
)
def test_prices_are_rounded_to_the_venues_precision(symbol, mark, field, given, kept):
    prices = {"limit": {"order_type": "limit", "limit_price": D(given)}, "stop": {"stop_loss": D(given)}}
    more = prices.get(field, {"take_profit": D(given)})
    order = propose("open_long", symbol, size_usd=1000, **more)
    result = scene({0: order}, mark, guard=False, latency_ms=BASE, **{symbol: [flat(mark)]})
    (waiting,) = result.account.orders
    assert getattr(waiting, field) == D(kept)


def test_a_sell_limit_is_rounded_up():
    order = propose("open_short", size_usd=1000, order_type="limit", limit_price=D("105.001"))
    assert scene({0: order}, SOL=[flat(100)]).account.orders[0].limit == D("105.01")


def test_a_refusal_changes_nothing():
    refused = {**OPEN, "leverage": 99}
    with_it = scene({0: OPEN, 1: refused, 2: propose("close")}, SOL=[flat(100), flat(101), flat(102)])
    without_it = scene({0: OPEN, 2: propose("close")}, SOL=[flat(100), flat(101), flat(102)])
    assert fill_rows(with_it) == fill_rows(without_it)
    assert last(with_it) == last(without_it)
