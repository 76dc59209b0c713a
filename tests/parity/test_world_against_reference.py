"""The product and the independent reference play the same decisions over the same bars and must agree exactly."""

import dataclasses
from decimal import Decimal
from typing import Any

import pytest

from example_counts import seeds
from pitboss.core import codec
from pitboss.core.curve import points as points_of
from pitboss.core.instant import iso
from pitboss.models.decisions import DecisionFile
from pitboss.venues.perp.outcome import fills
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import build, interval_name, make_books, make_market, plain_skill, play
from reference.perp import HoleInBars, Result, run
from reference.streams import Case, random_case, thin_case

TOLERANCE = Decimal("1e-30")
"""Both sides work with 60 digits; sums grouped differently may differ in the last few."""


def produce(case: Case, leap: bool) -> tuple[list[Any], list[dict[str, Any]], list[tuple[int, Decimal]]]:
    arguments = case.arguments()
    decisions = DecisionFile({at: (proposal,) for at, proposal in arguments["decisions"].items()})
    given = arguments["skill"]
    skill = plain_skill(
        given["context"]["symbols"], given["schedule"]["every"], context=given["context"], risk=given.get("risk", {})
    )
    request = PerpRequest(
        skill=skill,
        from_at=arguments["from_ms"],
        to_at=arguments["to_ms"],
        equity_usd=Decimal(str(arguments.get("equity", "10000"))),
        decision_latency_ms=arguments.get("latency_ms", 0),
        close_at_end=arguments.get("close_at_end", False),
        slippage="linear" if case.book_max_age_ms is None else "book",
        book_max_age_ms=case.book_max_age_ms or 0,
        max_volume_pct=None if case.max_volume_pct is None else Decimal(case.max_volume_pct),
        **{
            name: Decimal(str(arguments[name]))
            for name in ("maker_bps", "taker_bps", "slippage_bps_per_million", "penalty_bps")
            if name in arguments
        },
    )
    base = interval_name(arguments["base_ms"])
    market = make_market(arguments["bars"], base, arguments["funding"], arguments.get("marks"))
    books = {symbol: make_books(symbol, rows) for symbol, rows in (case.books or {}).items()}
    script = build(request, market, base, decisions, books=books)
    script = script if leap else dataclasses.replace(script, planned=False)
    _, journal, ledger = play(script)
    verdicts = [
        (record.tick_at, verdict["outcome"], verdict["code"])
        for record in journal.records()
        if record.kind == "tick"
        for verdict in codec.loads(record.covered)["verdicts"]
    ]
    points = [(at, Decimal(value)) for at, value in points_of(ledger.equity)]
    return verdicts, list(fills(ledger.receipts)), points


def compare(case: Case, expected: Result, leap: bool) -> None:
    verdicts, got_fills, points = produce(case, leap)
    wanted = [(at, outcome, code) for at, outcome, code in expected.verdicts if outcome != "noop"]
    assert [verdict for verdict in verdicts if verdict[1] != "noop"] == wanted
    assert len(got_fills) == len(expected.fills)
    for got, want in zip(got_fills, expected.fills, strict=True):
        for key in ("at", "symbol", "side", "liquidity", "reason"):
            assert got[key] == want[key], (key, got, want)
        for key in ("size", "price", "fee_usd", "slippage_usd", "penalty_usd"):
            assert abs(Decimal(got[key]) - want[key]) <= TOLERANCE, (key, got, want)
    wanted_points = closing_points(case, expected)
    assert [at for at, _ in points] == [at for at, _ in wanted_points]
    for (at, got), (_, want) in zip(points, wanted_points, strict=True):
        assert abs(got - want) <= TOLERANCE, (iso(at), got, want)


def closing_points(case: Case, expected: Result) -> list[tuple[int, Decimal]]:
    """The reference's equity points as the product writes them.

    The product books the fee of closing at the end into the last point, the reference after it. Where no bar opens from
    the last tick on, an earlier record holds that point, and the end of the range gets a point of its own.
    """
    points, arguments = list(expected.equity), case.arguments()
    if not arguments.get("close_at_end") or not points:
        return points
    last_tick = (arguments["to_ms"] - 1) // arguments["tick_ms"] * arguments["tick_ms"]
    if points[-1][0] - arguments["base_ms"] >= last_tick:
        points[-1] = points[-1][0], expected.final_equity
    elif any(fill["reason"] == "end" for fill in expected.fills):
        points.append((arguments["to_ms"], expected.final_equity))
    return points


@pytest.mark.parametrize("block", seeds(*range(8), quick=2))
def test_random_streams_give_the_reference_fills_and_equity(block: int) -> None:
    for seed in range(block * 12, block * 12 + 12):
        case = random_case(seed)
        expected = run(**case.arguments())
        compare(case, expected, leap=True)


def test_asking_at_every_tick_gives_what_leaping_gives() -> None:
    for seed in range(1000, 1012):
        case = random_case(seed)
        assert produce(case, leap=True)[1:] == produce(case, leap=False)[1:], seed


@pytest.mark.proof
@pytest.mark.parametrize("block", range(40))
def test_many_random_streams_give_the_reference_fills_and_equity(block: int) -> None:
    for seed in range(10_000 + block * 250, 10_000 + block * 250 + 250):
        case = random_case(seed)
        try:
            expected = run(**case.arguments())
        except HoleInBars:  # one stream in thousands has a hole that stops a run before it starts
            continue
        compare(case, expected, leap=True)


def test_every_kind_of_event_occurs_in_the_streams() -> None:
    missing = {"market", "limit", "stop", "take_profit", "liquidation", "daily_loss", "drawdown"}
    for seed in range(100):
        result = run(**random_case(seed).arguments())
        missing -= {fill["reason"] for fill in result.fills} | {kind for _, kind in result.halts}
        if not missing:
            return
    raise AssertionError(f"in no stream: {missing}")


# Thin markets and order books (docs/adr/0015-fills.md) ----------------------------------------------------------------


@pytest.mark.parametrize("block", seeds(*range(4), quick=1))
def test_thin_markets_and_books_give_the_reference_fills_and_equity(block: int) -> None:
    for seed in range(block * 12, block * 12 + 12):
        case = thin_case(seed)
        expected = run(**case.arguments())
        compare(case, expected, leap=True)


def test_in_thin_markets_asking_at_every_tick_gives_what_leaping_gives() -> None:
    for seed in range(1000, 1008):
        case = thin_case(seed)
        assert produce(case, leap=True)[1:] == produce(case, leap=False)[1:], seed


@pytest.mark.proof
@pytest.mark.parametrize("block", range(20))
def test_many_thin_markets_give_the_reference_fills_and_equity(block: int) -> None:
    for seed in range(50_000 + block * 250, 50_000 + block * 250 + 250):
        case = thin_case(seed)
        try:
            expected = run(**case.arguments())
        except HoleInBars:
            continue
        compare(case, expected, leap=True)


def test_every_kind_of_partial_fill_occurs_in_the_thin_streams() -> None:
    """Without this the streams above could agree because nothing ever happens in them."""
    several = {f"{reason} over several bars" for reason in ("stop", "take_profit", "liquidation", "limit")}
    missing = several | {"rest cancelled", "walked"}
    for seed in range(50):
        result = run(**thin_case(seed).arguments())
        missing -= {"rest cancelled" for _, _, reason in result.cancels if reason == "volume"}
        parts: dict[tuple[str, str], set[int]] = {}
        for fill in result.fills:
            parts.setdefault((fill["symbol"], fill["reason"]), set()).add(fill["at"])
        missing -= {f"{reason} over several bars" for (_, reason), bars in parts.items() if len(bars) > 1}
        missing -= {"walked" for fill in result.fills if fill["reason"] == "limit" and fill["slippage_usd"] > 0}
        if not missing:
            return
    raise AssertionError(f"in no stream: {missing}")
