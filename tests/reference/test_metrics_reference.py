"""PERP §8 on series small enough to do by hand."""

from decimal import Decimal as D
from math import isclose, sqrt

import pytest

from reference import metrics, policies
from reference.scene import BASE, DAY, FREE, MIDNIGHT, T0, WIDE, flat, propose, scene

HALF = DAY // 2


def test_a_point_at_midnight_belongs_to_the_day_that_ends():
    points = [
        (MIDNIGHT + HALF, 101.0),
        (MIDNIGHT + DAY, 102.0),
        (MIDNIGHT + DAY + 1, 103.0),
        (MIDNIGHT + 2 * DAY, 104.0),
    ]
    assert metrics.daily_series(100.0, points) == [100.0, 102.0, 104.0]


def test_a_day_without_points_is_left_out():
    assert metrics.daily_series(1.0, [(MIDNIGHT + 1, 2.0), (MIDNIGHT + 3 * DAY, 3.0)]) == [1.0, 2.0, 3.0]


def test_daily_returns_are_relative():
    points = [(MIDNIGHT + DAY, 110.0), (MIDNIGHT + 2 * DAY, 99.0)]
    assert metrics.daily_returns(100.0, points) == pytest.approx([0.1, -0.1])


def test_sharpe_divides_by_the_sample_deviation():
    # mean 0.01; deviations 0, 0.02, −0.02: √(0.0008 / 2) = 0.02
    assert isclose(metrics.sharpe([0.01, 0.03, -0.01]), 0.5 * sqrt(365))
    assert metrics.sharpe([0.01, 0.03]) is None
    assert metrics.sharpe([0.5, 0.5, 0.5]) is None


def test_sortino_divides_by_the_root_mean_square_of_losses_over_all_days():
    # mean 0.01, losses 0, 0, 0.01: √(0.0001 / 3)
    assert isclose(metrics.sortino([0.01, 0.03, -0.01]), 0.01 / (0.01 / sqrt(3)) * sqrt(365))
    assert metrics.sortino([0.01, 0.03, 0.0]) is None
    assert metrics.sortino([0.01, -0.03]) is None


def test_cagr_counts_years_of_365_and_a_quarter_days():
    end = MIDNIGHT + round(365.25 * 2 * DAY)
    assert isclose(metrics.cagr(100.0, [(end, 121.0)], MIDNIGHT), 0.1)
    assert metrics.cagr(100.0, [(MIDNIGHT + DAY - 1, 121.0)], MIDNIGHT) is None
    assert metrics.cagr(100.0, [(MIDNIGHT + DAY, 0.0)], MIDNIGHT) == -1.0


def test_drawdown_is_measured_from_the_running_peak_beginning_with_the_initial_equity():
    assert metrics.max_drawdown_pct(100.0, [(1, 90.0), (2, 120.0), (3, 96.0), (4, 130.0)]) == pytest.approx(20.0)
    assert metrics.max_drawdown_pct(100.0, [(1, 90.0)]) == pytest.approx(10.0)
    assert metrics.max_drawdown_pct(100.0, [(1, 101.0), (2, 102.0)]) == 0.0


def test_drawdown_lasts_from_the_peak_to_the_point_that_reaches_it_again_or_to_the_end():
    def lasts(*values):
        points = [(MIDNIGHT + (i + 1) * DAY, float(v)) for i, v in enumerate(values)]
        return metrics.max_drawdown_duration_days(100.0, points, MIDNIGHT)

    assert lasts(101, 102, 103) == 0
    assert lasts(100, 100) == 0
    assert lasts(90, 95, 100, 99) == 3
    assert lasts(110, 100, 105, 108) == 3  # from the peak of day 1 to the end at day 4
    assert lasts(110, 109, 110, 90, 95, 99) == 3


def test_a_trade_runs_from_flat_to_flat_net_of_fees_funding_and_penalties():
    # buy 10 at 100, sell 5 at 110, sell 5 at 90: 550 + 450 − 1000 = 0; fees 3 × 1; funding 0.1; then a win on ETH of 7
    def fill(at, symbol, side, size, price, fee=1, penalty=0):
        return {
            "at": at,
            "symbol": symbol,
            "side": side,
            "size": D(size),
            "price": D(price),
            "fee_usd": D(fee),
            "penalty_usd": D(penalty),
        }

    fills = [
        fill(0, "SOL", "buy", 10, 100),
        fill(1, "ETH", "sell", 1, 50),
        fill(2, "SOL", "sell", 5, 110),
        fill(3, "ETH", "buy", 1, 40, penalty=1),
        fill(4, "SOL", "sell", 5, 90),
        fill(5, "ETH", "buy", 1, 40),
    ]
    funding = [{"at": 4, "symbol": "SOL", "paid_usd": D("0.1")}]
    results = metrics.trades(fills, funding)
    assert results == pytest.approx([7.0, -3.1])
    assert metrics.trade_figures(results) == {
        "total_trades": 2,
        "win_rate": 0.5,
        "profit_factor": pytest.approx(7 / 3.1),
        "avg_win_usd": 7.0,
        "avg_loss_usd": pytest.approx(3.1),
    }


def test_figures_without_trades_or_losses_are_none():
    assert metrics.trade_figures([])["profit_factor"] is None
    assert metrics.trade_figures([5.0])["profit_factor"] is None
    assert metrics.trade_figures([5.0])["win_rate"] == 1.0


def test_the_summary_of_a_small_run_adds_up():
    # 10 SOL bought at 100, sold at 110 two bars later, 4.5 bps each side; one refusal, one no-op
    steps = {0: propose("open_long", size_usd=1000), 1: propose("close", "ETH"), 2: propose("close"), 3: None}
    result = scene(steps, SOL=[flat(100), flat(105), flat(110), flat(110)], slippage_bps_per_million="0")
    figures = metrics.summary(result, "10000", T0)
    fees = 0.00045 * (1000 + 1100)
    assert figures["total_fees_usd"] == pytest.approx(fees)
    assert figures["total_return_pct"] == pytest.approx((100 - fees) / 100)
    assert figures["turnover"] == pytest.approx(0.21)
    assert figures["exposure_time_pct"] == 50.0
    assert (figures["total_trades"], figures["win_rate"], figures["profit_factor"]) == (1, 1.0, None)
    assert (figures["total_proposed_actions"], figures["total_accepted_actions"]) == (3, 2)
    assert figures["rejections_by_rule"] == {"R2_SCOPE": 1}


def test_buy_and_hold_splits_the_equity_after_fees_equally_and_lots_down():
    arguments = {
        "skill": {"context": {"symbols": ["SOL", "ETH"], "bars_interval": "5m"}, "risk": WIDE},
        "bars": {s: [(T0 + i * BASE, *flat(p)) for i in (-1, 0)] for s, p in (("SOL", 103.0), ("ETH", 2000.0))},
        "base_ms": BASE,
        "funding": {},
        "from_ms": T0,
        "to_ms": T0 + BASE,
        "tick_ms": BASE,
        "decisions": {},
        **FREE,
        "taker_bps": "4.5",
    }
    # 10000 / 1.00045 / 2 = 4997.7510…: 2.4988 ETH, 48.52 SOL
    result = policies.buy_and_hold(arguments)
    assert {f["symbol"]: f["size"] for f in result.fills} == {"ETH": D("2.4988"), "SOL": D("48.52")}


def test_policy_signals_follow_their_sentences():
    rising = [100.0 + i for i in range(60)]
    assert policies.sma_cross(rising) == 1
    assert policies.sma_cross(rising[::-1]) == 0
    assert policies.sma_cross(rising[:49]) is None
    assert policies.momentum([100.0] * 48 + [100.5]) == 0
    assert policies.momentum([100.0] * 48 + [100.6]) == 1
    assert policies.momentum([100.0] * 48 + [99.4]) == -1
    spike = [100.0, 101.0] * 23 + [100.5, 120.0]
    assert policies.mean_reversion(spike, 0) == -1
    assert policies.mean_reversion([100.0, 101.0] * 23 + [100.5, 100.5], -1) == 0
    assert policies.mean_reversion([100.0, 101.0] * 24, -1) == -1  # z = 1: as it was
