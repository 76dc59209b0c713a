"""The random streams reach every corner, and the reference keeps its books on them."""

from decimal import Decimal, localcontext

import pytest
from hypothesis import given, settings

from reference import load
from reference.perp import CONTEXT, HoleInBars, Result, run
from reference.scene import BASE, DAY, flat, scene
from reference.streams import Case, cases, random_case

SEEDS = range(250)


def books_balance(case: Case, result: Result) -> bool:
    """Final equity computed in a second way: from the fills alone, without cost, cash or realisation."""
    with localcontext(CONTEXT):
        total = Decimal(case.equity) - result.funding_paid + result.deficit
        for fill in result.fills:
            side = 1 if fill["side"] == "buy" else -1
            worth = result.account.marks[fill["symbol"]] - fill["price"]
            total += side * fill["size"] * worth - fill["fee_usd"] - fill["penalty_usd"]
        return abs(total - result.final_equity) < Decimal("1e-30")


def test_seeded_streams_reach_every_rule_every_fill_and_every_cancellation():
    missing = {"allowed", "noop", "deficit", "second tier", "daily_loss", "drawdown"}
    missing |= {"R1_SHAPE", "R2_SCOPE", "R3_POSITION_CAP", "R4_EXPOSURE_CAP", "R5_LEVERAGE_CAP", "R6_ORDER_SIZE"}
    missing |= {"R7_ORDER_RATE", "R8_HALTED", "R9_MARGIN", "R10_STALE_DATA", "R11_PRICE_BAND"}
    missing |= {"market taker", "limit taker", "limit maker", "stop taker", "take_profit maker", "liquidation taker"}
    missing |= {"end taker", "cancel", "halt", "liquidation", "margin", "no_position"}
    for seed in SEEDS:
        case = random_case(seed)
        result = run(**case.arguments())
        assert books_balance(case, result), seed
        missing -= {code or outcome for _, outcome, code in result.verdicts}
        missing -= {f"{fill['reason']} {fill['liquidity']}" for fill in result.fills}
        missing -= {reason for _, _, reason in result.cancels}
        missing -= {kind for _, kind in result.halts}
        missing -= {"deficit"} if result.deficit else set()
        missing -= {"second tier"} if result.liquidations and case.equity == "50000000" else set()
        if not missing:
            return
    raise AssertionError(f"in no stream: {missing}")


def test_the_same_seed_gives_the_same_stream_and_the_same_result():
    one, two = random_case(7), random_case(7)
    assert one.arguments() == two.arguments()
    assert run(**one.arguments()).equity == run(**two.arguments()).equity


@given(cases())
@settings(max_examples=12, deadline=None, derandomize=True)
def test_whatever_the_stream_the_books_balance_and_no_position_is_crossed(case: Case):
    result = run(**case.arguments())
    assert books_balance(case, result)
    assert len(result.verdicts) == len(case.decisions)
    sizes: dict[str, Decimal] = {}
    for fill in result.fills:
        before = sizes.get(fill["symbol"], Decimal(0))
        after = before + (fill["size"] if fill["side"] == "buy" else -fill["size"])
        assert before * after >= 0
        sizes[fill["symbol"]] = after


def test_the_order_in_which_symbols_are_listed_does_not_matter():
    for seed in range(30):
        arguments = random_case(seed).arguments()
        symbols = arguments["skill"]["context"]["symbols"]
        there = run(**arguments)
        context = {**arguments["skill"]["context"], "symbols": symbols[::-1]}
        arguments["skill"] = {**arguments["skill"], "context": context}
        back = run(**arguments)
        assert (there.fills, there.equity, there.verdicts) == (back.fills, back.equity, back.verdicts)


def test_a_hole_of_more_than_twelve_bars_stops_the_run_before_it_starts():
    assert len(scene({}, SOL=[flat(100), *[None] * 12, flat(100)]).equity) == 2
    with pytest.raises(HoleInBars, match="SOL"):
        scene({}, SOL=[flat(100), *[None] * 13, flat(100)])


@pytest.mark.skipif(not load.DATA.exists(), reason="the folder of real data is not there")
def test_a_leveraged_long_is_liquidated_in_the_crash_of_october_2025():
    day = 20371 * DAY  # 2025-10-10
    bars = load.bars(["BTC"], "5m", day - BASE, day + DAY)
    funding = load.funding(["BTC"], day, day + DAY)
    skill = {
        "context": {"symbols": ["BTC"], "bars_interval": "5m"},
        "risk": {"max_position_pct": 2000, "max_total_exposure_pct": 2000, "max_leverage": 10},
    }
    order = {"action": "open_long", "symbol": "BTC", "size_usd": 90_000, "leverage": 10, "reason": "too much"}
    arguments = {"base_ms": BASE, "from_ms": day, "to_ms": day + DAY, "tick_ms": BASE}
    result = run(skill, bars, funding=funding, decisions={day: order}, **arguments)
    assert len(result.equity) == 288
    assert [fill["reason"] for fill in result.fills] == ["market", "liquidation"]
    assert result.halts[0][1] == "daily_loss"
