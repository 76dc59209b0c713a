"""The figures of a run: each against its definition, a slow reference, and outside cases."""

import json
import math
import statistics as plain
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core import codec
from pitboss.core.errors import InvariantError
from pitboss.core.instant import DAY_MS, HOUR_MS
from pitboss.core.money import ZERO
from pitboss.core.receipt import Receipt
from pitboss.sim import metrics
from pitboss.sim.metrics import Outcome
from pitboss.venues.perp.metrics import compute, compute_together, exposed_bars
from pitboss.venues.perp.trades import book

D = Decimal
KEYS = {
    *("total_return_pct", "cagr", "sharpe", "sortino", "max_drawdown_pct", "max_drawdown_duration_days"),
    *("total_trades", "win_rate", "profit_factor", "avg_win_usd", "avg_loss_usd"),
    *("total_fees_usd", "total_funding_usd", "total_slippage_usd", "total_penalties_usd"),
    *("liquidations", "deficit_usd", "total_ai_cost_usd", "cost_per_decision_usd"),
    *("total_ticks", "total_proposed_actions", "total_accepted_actions", "rejections_by_rule", "noops_by_flag"),
    *("exposure_time_pct", "turnover", "total_return_ci", "sharpe_ci", "probabilistic_sharpe"),
    *("final_equity_usd", "warnings", "funnel"),
}
START = 20_000 * DAY_MS


def fill(at, side, size, price, fee="0", slippage="0", penalty="0", symbol="BTC", reason="market"):
    facts = {"side": side, "size": D(size), "price": D(price), "fee_usd": D(fee), "slippage_usd": D(slippage)}
    facts |= {"penalty_usd": D(penalty), "liquidity": "taker", "reason": reason}
    return Receipt("filled", at, symbol, "1", facts)


def funded(at, usd, symbol="BTC"):
    facts = {"rate": D("0.0001"), "price": D(100), "size": D(1), "amount_usd": D(usd)}
    return Receipt("funded", at, symbol, "", facts)


def run(equity, interval_ms=HOUR_MS, initial="10000", from_at=START, **rest):
    """A run with one equity point after each bar."""
    at = [from_at + interval_ms * (index + 1) for index in range(len(equity))]
    to_at = from_at + interval_ms * len(equity)
    return Outcome(from_at, to_at, interval_ms, D(initial), at, [D(str(value)) for value in equity], **rest)


def daily(returns):
    """A run of daily bars with these returns."""
    equity, value = [], 10_000.0
    for change in returns:
        value *= 1 + change
        equity.append(value)
    return run(equity, DAY_MS)


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    return [value] if isinstance(value, int | float) else []


# ---- shape ---------------------------------------------------------------------------------------------------------


def test_the_keys_are_exactly_those_of_the_contract():
    assert set(compute(run([10_100, 10_200]))) == KEYS
    assert set(compute(run([10_100, 10_200]), trials=[0.1, 0.4])) == KEYS | {"deflated_sharpe"}


equities = st.lists(st.integers(0, 3_000_000).map(lambda cents: cents / 100), max_size=60)


@given(equities, st.sampled_from([HOUR_MS, 8 * HOUR_MS, DAY_MS]))
def test_nothing_is_ever_nan_or_infinite_and_all_of_it_is_json(equity, interval_ms):
    figures = compute(run(equity, interval_ms))
    assert all(math.isfinite(number) for number in numbers(figures))
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    assert 0 <= figures["max_drawdown_pct"] <= 100
    assert figures["max_drawdown_duration_days"] <= len(equity) * interval_ms / DAY_MS


def test_equity_that_does_not_rise_in_time_or_has_no_value_stops_everything():
    with pytest.raises(InvariantError):
        compute(Outcome(0, 10, 1, D(100), [2, 2], [D(1), D(2)]))
    with pytest.raises(InvariantError):
        compute(Outcome(0, 10, 1, D(100), [1, 2], [D(1)]))
    with pytest.raises(InvariantError):
        compute(Outcome(0, 10, 1, D(100), np.array([1, 2]), np.array([1.0, np.nan])))
    with pytest.raises(InvariantError):
        compute(run([1], initial="0"))


# ---- a run worked by hand ------------------------------------------------------------------------------------------


def test_a_small_run_gives_the_figures_worked_out_by_hand():
    receipts = [
        fill(START, "buy", "1", "1000", fee="0.45", slippage="0.1"),
        funded(START + HOUR_MS, "0.2"),
        fill(START + 2 * HOUR_MS, "sell", "1", "1100", fee="0.5"),
        fill(START + 4 * HOUR_MS, "sell", "2", "1000", fee="0.9", slippage="0.3"),
        funded(START + 5 * HOUR_MS, "-0.4"),
        fill(START + 5 * HOUR_MS, "buy", "2", "1020", fee="0.92", penalty="10.2", reason="liquidation"),
        Receipt("liquidated", START + 5 * HOUR_MS, "", "", {"deficit_usd": D("1.5")}),
    ]
    equity = [10_000 + change for change in (10, 60, 98.85, 98.85, 80, 46.93, 46.93, 46.93)]
    figures = compute(
        run(
            equity,
            receipts=receipts,
            ticks=8,
            proposed=4,
            accepted=3,
            rejections_by_rule={"R3_POSITION_CAP": 1},
            noops_by_flag={"asleep": 2, "": 2},
            ai_cost_usd=D("0.30"),
            decisions_asked=6,
        )
    )
    first, second = D("98.85"), D("-51.62")
    assert figures["total_trades"] == 2
    assert figures["win_rate"] == 0.5
    assert figures["avg_win_usd"] == float(first)
    assert figures["avg_loss_usd"] == float(-second)
    assert figures["profit_factor"] == float(first / -second)
    assert figures["total_fees_usd"] == 2.77
    assert figures["total_funding_usd"] == -0.2
    assert figures["total_slippage_usd"] == 0.4
    assert figures["total_penalties_usd"] == 10.2
    assert (figures["liquidations"], figures["deficit_usd"]) == (1, 1.5)
    assert (figures["total_ai_cost_usd"], figures["cost_per_decision_usd"]) == (0.3, 0.05)
    assert figures["turnover"] == 0.614
    assert figures["exposure_time_pct"] == 3 / 8 * 100
    assert figures["total_return_pct"] == pytest.approx(0.4693)
    assert figures["final_equity_usd"] == 10_046.93
    assert figures["max_drawdown_pct"] == pytest.approx(51.92 / 10_098.85 * 100)
    assert figures["max_drawdown_duration_days"] == 4 / 24
    assert figures["cagr"] is None
    assert (figures["total_ticks"], figures["total_proposed_actions"], figures["total_accepted_actions"]) == (8, 4, 3)
    assert figures["funnel"] == {
        "ticks": 8,
        "asked": 6,
        "proposals": 4,
        "refused": {"R3_POSITION_CAP": 1},
        "accepted": 3,
        "fills": 4,
    }
    assert any("Liquidated once" in warning for warning in figures["warnings"])


def test_a_trade_at_exactly_zero_is_neither_won_nor_lost():
    flat = [fill(START, "buy", "1", "100"), fill(START + HOUR_MS, "sell", "1", "100")]
    figures = compute(run([10_000, 10_000], receipts=flat))
    assert (figures["total_trades"], figures["win_rate"]) == (1, 0.0)
    assert figures["profit_factor"] is figures["avg_win_usd"] is figures["avg_loss_usd"] is None


def test_only_wins_have_no_profit_factor_and_only_losses_have_zero():
    won = [fill(START, "buy", "1", "100"), fill(START + HOUR_MS, "sell", "1", "101")]
    lost = [fill(START, "sell", "1", "100"), fill(START + HOUR_MS, "buy", "1", "101")]
    assert compute(run([10_001, 10_001], receipts=won))["profit_factor"] is None
    assert compute(run([9_999, 9_999], receipts=lost))["profit_factor"] == 0


def test_unknown_model_prices_give_no_cost_rather_than_zero():
    figures = compute(run([10_000], ai_cost_usd=None, decisions_asked=5))
    assert figures["total_ai_cost_usd"] is figures["cost_per_decision_usd"] is None


def test_a_run_without_model_calls_has_no_cost_per_decision():
    assert compute(run([10_000], ai_cost_usd=ZERO, decisions_asked=0))["cost_per_decision_usd"] is None


def test_amounts_read_back_from_storage_give_the_same_figures():
    receipts = [fill(START, "buy", "0.1", "1000.1", "0.0450045"), fill(START + HOUR_MS, "sell", "0.1", "1100", "0.05")]
    stored = [Receipt(**codec.plain(receipt)) for receipt in receipts]
    assert compute(run([10_005, 10_010], receipts=stored)) == compute(run([10_005, 10_010], receipts=receipts))


# ---- a run in which nothing happened -------------------------------------------------------------------------------


def test_p16_a_run_without_trades_has_nulls_a_warning_and_its_funnel():
    figures = compute(
        run(
            [10_000] * 30,
            DAY_MS,
            ticks=30,
            proposed=7,
            accepted=2,
            rejections_by_rule={"R9_MARGIN": 1, "R3_POSITION_CAP": 4},
            noops_by_flag={"asleep": 23},
            decisions_asked=7,
            receipts=[Receipt("rejected", START, "BTC", "1", {"reason": "margin"})] * 2,
        )
    )
    for key in ("sharpe", "sortino", "win_rate", "profit_factor", "avg_win_usd", "avg_loss_usd", "sharpe_ci"):
        assert figures[key] is None, key
    assert figures["probabilistic_sharpe"] is None
    assert figures["total_return_ci"] == [0, 0]
    for key in ("total_return_pct", "cagr", "max_drawdown_pct", "max_drawdown_duration_days", "turnover"):
        assert figures[key] == 0, key
    assert figures["exposure_time_pct"] == 0
    assert figures["warnings"] == [
        "No trades: nothing was filled. 30 ticks → 7 asked → 7 proposals → 5 refused (R3_POSITION_CAP 4, R9_MARGIN 1)"
        " → 2 accepted → 2 rejected by the venue (margin 2) → 0 fills. No-ops: (asleep 23)."
    ]


def test_a_position_never_closed_is_no_trade_and_the_warning_names_it():
    figures = compute(run([10_001, 10_002], receipts=[fill(START, "buy", "1", "100", symbol="ETH")]))
    assert figures["total_trades"] == 0
    assert "still open at the end: ETH" in figures["warnings"][0]


def test_a_run_without_a_single_bar_still_has_all_its_keys():
    figures = compute(run([]))
    assert set(figures) == KEYS
    assert (figures["total_return_pct"], figures["exposure_time_pct"]) == (0, None)


# ---- daily series --------------------------------------------------------------------------------------------------


def slow_daily(initial, at, equity):
    """The last point of each UTC day, midnight counted to the day that ends."""
    last = {}
    for moment, value in zip(at, equity, strict=True):
        last[(moment - 1) // DAY_MS] = value
    return [initial, *(last[day] for day in sorted(last))]


def test_a_point_at_midnight_belongs_to_the_day_that_ends():
    at = np.array([START, START + HOUR_MS, START + DAY_MS, START + DAY_MS + 1])
    series = metrics.daily_equity(1.0, at, np.array([2.0, 3.0, 4.0, 5.0]))
    assert series.tolist() == [1, 2, 4, 5]


@given(
    st.lists(st.integers(1, 3 * DAY_MS), min_size=1, max_size=60),
    st.lists(st.floats(1, 1e6), min_size=60, max_size=60),
)
def test_the_daily_series_and_its_ratios_equal_the_slow_reference(gaps, values):
    at = np.cumsum(gaps) + START
    equity = np.array(values[: len(at)])
    series = slow_daily(100.0, at.tolist(), equity.tolist())
    assert metrics.daily_equity(100.0, at, equity).tolist() == series
    returns = [series[index + 1] / series[index] - 1 for index in range(len(series) - 1)]
    figures = compute(Outcome(START, int(at[-1]), HOUR_MS, D(100), at, equity))
    deviation = plain.stdev(returns) if len(returns) > 2 else 0
    downside = math.sqrt(sum(min(change, 0) ** 2 for change in returns) / len(returns)) if len(returns) > 2 else 0
    for key, below in (("sharpe", deviation), ("sortino", downside)):
        if below > 1e-12:
            expected = plain.fmean(returns) / below * math.sqrt(365)
            assert figures[key] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        else:
            assert figures[key] is None


def test_two_daily_returns_are_too_few_for_a_sharpe_and_three_are_enough():
    assert compute(daily([0.01, -0.02]))["sharpe"] is None
    assert compute(daily([0.01, -0.02, 0.01]))["sharpe"] is not None


def test_intervals_need_twenty_days():
    returns = [0.01, -0.005] * 10
    short, enough = compute(daily(returns[:19])), compute(daily(returns))
    assert short["total_return_ci"] is short["sharpe_ci"] is None
    assert any("19 daily returns" in warning for warning in short["warnings"])
    assert enough["total_return_ci"][0] < enough["total_return_pct"] < enough["total_return_ci"][1]
    assert enough["sharpe_ci"][0] < enough["sharpe"] < enough["sharpe_ci"][1]


def test_after_ruin_days_return_zero():
    figures = compute(run([5_000, 0, 0, 0], DAY_MS))
    assert figures["total_return_pct"] == -100
    assert figures["cagr"] == -1
    assert figures["max_drawdown_pct"] == 100
    assert figures["sharpe"] == pytest.approx(-0.375 / plain.stdev([-0.5, -1, 0, 0]) * math.sqrt(365))


def test_growth_a_year_needs_a_day_and_uses_years_of_365_and_a_quarter_days():
    assert metrics.growth_rate(100, 110, DAY_MS - 1) is None
    assert metrics.growth_rate(100, 121, round(2 * 365.25 * DAY_MS)) == pytest.approx(0.1)
    assert metrics.growth_rate(100, 101, DAY_MS) == pytest.approx(1.01**365.25 - 1)
    assert metrics.growth_rate(1e-3, 1e6, DAY_MS) is None


# ---- drawdown ------------------------------------------------------------------------------------------------------


def slow_drawdown(points):
    """Deepest fall and longest time under water, one point after the other."""
    peak_at, peak = points[0]
    depth, longest, under = 0.0, 0, False
    for at, value in points:
        if value >= peak:
            if under:
                longest = max(longest, at - peak_at)
            peak_at, peak, under = at, value, False
        else:
            under = True
            depth = max(depth, 1 - value / peak)
    if under:
        longest = max(longest, points[-1][0] - peak_at)
    return depth, longest


@given(st.lists(st.tuples(st.integers(1, 10**8), st.integers(0, 12)), max_size=60), st.integers(1, 12))
def test_drawdown_equals_the_slow_reference(steps, initial):
    at = np.cumsum([gap for gap, _ in steps]).astype(np.int64) + START
    equity = np.array([float(value) for _, value in steps])
    points = [(START, float(initial)), *zip(at.tolist(), equity.tolist(), strict=True)]
    assert metrics.drawdown(START, float(initial), at, equity) == slow_drawdown(points)


@pytest.mark.parametrize(
    ("equity", "hours"),
    [
        ([10_001, 10_002, 10_003], 0),
        ([9_999, 9_998, 9_999], 3),
        ([10_001, 10_000, 10_001, 10_002], 2),
        ([10_001, 10_001, 10_001, 10_000], 1),
        ([10_001, 9_000, 10_002, 10_001, 10_001, 10_001], 3),
    ],
    ids=["never", "from the start to the end", "to recovery", "from the end of a plateau", "to the end"],
)
def test_drawdown_lasts_from_the_peak_to_recovery_or_the_end(equity, hours):
    assert compute(run(equity))["max_drawdown_duration_days"] == hours / 24


@given(equities.filter(len), st.sampled_from([2, 10, 1_024]))
def test_p13_a_run_a_number_of_times_as_rich_has_the_same_ratios(equity, times):
    one = compute(run(equity, 8 * HOUR_MS))
    many = compute(run([D(str(value)) * times for value in equity], 8 * HOUR_MS, initial=str(10_000 * times)))
    for key in ("total_return_pct", "cagr", "sharpe", "sortino", "max_drawdown_pct", "probabilistic_sharpe"):
        if one[key] is None or many[key] is None:
            assert one[key] is many[key], key
        else:
            assert many[key] == pytest.approx(one[key], rel=1e-6, abs=1e-9), key
    assert many["max_drawdown_duration_days"] == one["max_drawdown_duration_days"]


# ---- exposure ------------------------------------------------------------------------------------------------------


def exposed(receipts, closes):
    return exposed_bars(book(receipts), np.array(closes, dtype=np.int64))


def slow_exposure(receipts, bars):
    """Bar by bar: is anything held at its close?"""
    held, count = {}, 0
    for open_at, close_at in bars:
        for receipt in receipts:
            if open_at <= receipt.at < close_at:
                signed = receipt.facts["size"] * (1 if receipt.facts["side"] == "buy" else -1)
                held[receipt.symbol] = held.get(receipt.symbol, ZERO) + signed
        count += any(held.values())
    return count


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["BTC", "ETH"])), max_size=14), st.booleans())
def test_exposed_bars_equal_the_slow_reference(events, holes):
    bars = [(START + index * HOUR_MS, START + (index + 1) * HOUR_MS) for index in range(31)]
    receipts, held = [], {}
    for index, symbol in sorted(events):
        if holes and index % 5 == 0:
            continue
        held[symbol] = not held.get(symbol, False)
        receipts.append(fill(START + index * HOUR_MS, "buy" if held[symbol] else "sell", "1", "100", symbol=symbol))
    if holes:
        bars = [bar for index, bar in enumerate(bars) if index % 5]
    assert exposed(receipts, [close for _, close in bars]) == slow_exposure(receipts, bars)


def test_a_position_opened_and_stopped_in_one_bar_exposes_none():
    receipts = [fill(START, "buy", "1", "100"), fill(START, "sell", "1", "99", reason="stop")]
    assert exposed(receipts, [START + HOUR_MS, START + 2 * HOUR_MS]) == 0


def test_a_position_held_from_one_open_to_another_exposes_the_bars_between():
    receipts = [fill(START, "buy", "1", "100"), fill(START + 2 * HOUR_MS, "sell", "1", "99")]
    assert exposed(receipts, [START + hours * HOUR_MS for hours in (1, 2, 3, 4)]) == 2


def test_a_close_at_the_very_end_exposes_the_last_bar_and_none_beyond():
    receipts = [fill(START, "buy", "1", "100"), fill(START + HOUR_MS, "sell", "1", "99", reason="end")]
    assert exposed(receipts, [START + HOUR_MS, START + 2 * HOUR_MS]) == 2


def test_a_count_of_exposed_bars_that_is_given_is_used():
    assert compute(run([10_000] * 4, exposed_bars=3))["exposure_time_pct"] == 75


# ---- speed and sameness --------------------------------------------------------------------------------------------


def test_decimals_and_their_nearest_floats_give_the_same_figures():
    exact = [D(10_000) + D(index) / 7 * (-1) ** index for index in range(1, 800)]
    slow = run(exact)
    fast = Outcome(
        slow.from_at, slow.to_at, HOUR_MS, D(10_000), np.array(slow.equity_at), np.array(slow.equity_usd, dtype=float)
    )
    assert compute(fast) == compute(slow)


@given(
    st.lists(st.lists(st.sampled_from([-0.03, -0.01, 0.0, 0.0, 0.02]), max_size=26), max_size=4),
    st.integers(18, 24),
    st.integers(0, 99),
)
def test_outcomes_computed_together_give_the_figures_of_each_alone(several, days, seed):
    # Some of one length, which share their draws, some of their own, some too short, and cash.
    outcomes = [daily(returns) for returns in several]
    outcomes += [daily([change] * days) for change in (0.0, 0.01)]
    outcomes += [daily(([0.01, -0.02, 0.005] * 9)[:days]), daily(([0.0, 0.03] * 13)[:days])]
    assert compute_together(outcomes, seed) == [compute(outcome, seed) for outcome in outcomes]


def test_a_seed_moves_the_intervals_and_nothing_else():
    outcome = daily([0.01, -0.02, 0.004, 0.0, 0.013] * 6)
    first, again, other = compute(outcome, seed=1), compute(outcome, seed=1), compute(outcome, seed=2)
    assert first == again
    assert {key for key in first if first[key] != other[key]} == {"total_return_ci", "sharpe_ci"}


# ---- outside cases -------------------------------------------------------------------------------------------------
# They annualise by 252 trading days (52 weeks, 12 months) where we use 365 days, and CAGR by the number of returns over
# 252 where we use calendar time in years of 365.25 days. Each figure is brought to our year before it is compared.
# Used: cumulative return, maximum drawdown, Sharpe and Sortino with a required return of zero, CAGR of daily series.
# Not used: other required returns, data frames, and figures that we do not give. Their NaN and infinity are our null.

PERIODS = {"daily": 252, "weekly": 52, "monthly": 12}


def outside(test):
    path = Path(__file__).parents[2].parent / "shared" / "data" / "oracles" / "empyrical_cases.json"
    if not path.exists():
        pytest.skip("../shared/data/oracles is not here")
    data = json.loads(path.read_text())
    cases = []
    for case in data["cases"]:
        params = case["params"]
        if case["test"] != test or params.get("risk_free", params.get("required_return", "0.0")) != "0.0":
            continue
        series = data["inputs"][params["returns"]]
        if params.get("period", "daily") in PERIODS and isinstance(series.get("values"), list):
            cases.append((params["returns"], series["values"], params))
    assert len(cases) >= 4, "the outside cases have changed shape"
    return cases


@pytest.mark.parametrize(("test", "key"), [("test_sharpe_ratio", "sharpe"), ("test_sortino", "sortino")])
def test_sharpe_and_sortino_agree_with_the_outside_cases(test, key):
    for name, returns, params in outside(test):
        found = compute(daily([value for value in returns if value is not None]))[key]
        expected = params["expected"]
        if expected in (None, "inf"):
            assert found is None, name
        else:
            scale = math.sqrt(365 / PERIODS[params.get("period", "daily")])
            assert found == pytest.approx(expected * scale, rel=1e-8), name


def test_drawdown_agrees_with_the_outside_cases():
    for name, returns, params in outside("test_max_drawdown"):
        found = compute(daily([value or 0.0 for value in returns]))["max_drawdown_pct"]
        assert found == pytest.approx(-100 * (params["expected"] or 0.0), abs=1e-6), name


def test_total_return_agrees_with_the_outside_cases():
    for name, returns, params in outside("test_cum_returns_final"):
        found = compute(daily([value or 0.0 for value in returns]))["total_return_pct"]
        start = params["starting_value"]
        expected = params["expected"] / start - 1 if start else params["expected"] or 0.0
        assert found == pytest.approx(100 * expected, abs=1e-2), name


def test_growth_agrees_with_the_outside_cases():
    for name, returns, params in outside("test_cagr"):
        found = compute(daily([value or 0.0 for value in returns]))["cagr"]
        if params["expected"] is None:
            assert found is None, name
        else:
            assert found == pytest.approx((1 + params["expected"]) ** (365.25 / 252) - 1, rel=1e-8), name
