"""Halts over time, through the world itself: E19 (the day's loss), E20 (the peak), E21 (nothing lifts by itself)."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from engine.invariant import invariant, long_versions
from pitboss.core import codec
from pitboss.core.instant import DAY_MS, HOUR_MS
from pitboss.core.money import exact
from pitboss.core.state import State
from pitboss.venues.perp.assets import SHIPPED
from pitboss.venues.perp.caps import PerpCaps, room
from pitboss.venues.perp.state import PerpWorld, Position, TradingTerms
from pitboss.venues.perp.testing import judge as guard
from pitboss.venues.perp.testing import make_tape_of
from pitboss.venues.perp.world import OrderRequest, advance, halt, submit
from venues.perp.markets import BASE, MIDNIGHT, fresh_world, history_inputs, run_history

SEEDS = st.integers(0, 2**32 - 1)


@invariant(SEEDS, quick=15, proof=10_000)
def test_e19_e20_e21_halts_come_in_the_step_of_the_loss_and_go_only_at_midnight(seed: int) -> None:
    """E19: measured from the last point at or before 00:00, over fills, funding, fees and marks, also after a restart.
    E20: the peak never falls. E21: only the daily-loss halt ends by itself, and only with a new UTC day.
    """
    tape, terms = history_inputs(seed)
    started = int(tape.open_at[0])
    points: list[tuple[int, Decimal]] = [(started, Decimal(10_000))]

    def reference(at: int) -> Decimal:
        midnight = at // DAY_MS * DAY_MS
        known = [value for moment, value in points if moment <= midnight]
        return known[-1] if known else Decimal(10_000)

    @exact
    def play(world: PerpWorld, start: int, stop: int) -> PerpWorld:
        for index in range(start, stop):
            before = codec.parse(PerpWorld, codec.loads(codec.dumps(world)))  # a restart before every bar
            world = advance(before, terms, tape, index, index + 1).world
            at = int(tape.open_at[index]) + BASE
            value = world.last_equity
            points.append((at, value))
            peak = max(value for _, value in points)
            assert world.peak == peak >= before.peak
            new_day = at // DAY_MS != (at - 1) // DAY_MS or at // DAY_MS != points[-2][0] // DAY_MS
            _expect(world, before, "daily_loss", reference(at), value, terms.daily_loss_halt_pct, new_day)
            _expect(world, before, "drawdown", peak, value, terms.drawdown_halt_pct, False)
            assert (
                not world.halts or not [order for order in world.orders if order.opens] or world.halts == before.halts
            )
        return world

    run_history(seed, play)


def _expect(
    world: PerpWorld,
    before: PerpWorld,
    name: Any,
    reference: Decimal,
    value: Decimal,
    pct: Decimal | None,
    new_day: bool,
) -> None:
    reached = pct is not None and value < reference and (reference - value) * 100 >= pct * reference
    stays = name in before.halts and not new_day
    assert (name in world.halts) == (reached or stays), (name, reference, value)


TERMS = TradingTerms(SHIPPED, daily_loss_halt_pct=Decimal(5), drawdown_halt_pct=Decimal(15))


def losing_account(at: int, closes: list[float]) -> tuple[PerpWorld, Any]:
    """An account with 1 BTC and 10,000 USD, and bars of BTC that close so."""
    rows = [(at + place * BASE, close, close, close, close) for place, close in enumerate(closes)]
    tape = make_tape_of({"BTC": rows})
    held = Position("BTC", Decimal(1), Decimal(repr(closes[0])), at)
    return replace(fresh_world(tape), positions={"BTC": held}), tape


def test_e19_a_loss_one_cent_short_of_the_threshold_does_not_halt_and_the_threshold_does() -> None:
    """E19: ≥, in the same step; 5 % of 10,000 is 500."""
    for drop, halted in ((499.99, False), (500.0, True)):
        world, tape = losing_account(MIDNIGHT, [100_000.0, 100_000.0 - drop])
        stretch = advance(world, TERMS, tape, 0, 2)
        assert ("daily_loss" in stretch.world.halts) is halted
        assert [receipt.kind for receipt in stretch.receipts] == (["halted"] if halted else [])


def test_e20_a_fall_of_the_threshold_from_the_peak_halts_and_a_cent_less_does_not() -> None:
    """E20: 15 % from the peak of 12,000 is 1,800; the day's loss is switched off."""
    terms = TradingTerms(SHIPPED, drawdown_halt_pct=Decimal(15))
    for drop, halted in ((1_799.99, False), (1_800.0, True)):
        world, tape = losing_account(MIDNIGHT, [100_000.0, 102_000.0, 102_000.0 - drop])
        assert ("drawdown" in advance(world, terms, tape, 0, 3).world.halts) is halted


def test_e21_the_daily_halt_ends_at_midnight_for_the_guard_even_if_no_bar_has_closed_since() -> None:
    """E21: 00:00 UTC ends it, not the first bar after it: a hole over midnight must not keep an agent halted."""
    world, tape = losing_account(MIDNIGHT + 23 * HOUR_MS, [100_000.0, 99_000.0])
    world = advance(world, TERMS, tape, 0, 2).world
    assert world.halts == ("daily_loss",)
    world = replace(world, positions={})
    limits = PerpCaps(symbols=("BTC",), max_position_pct=Decimal(50), max_data_age_ms=DAY_MS)
    intent = {"action": "open_long", "symbol": "BTC", "size_usd": 2_000, "reason": "again"}
    late, next_day = MIDNIGHT + DAY_MS - 1, MIDNIGHT + DAY_MS
    assert guard(limits, TERMS, State(world), intent, late).verdict.code == "R8_HALTED"
    assert guard(limits, TERMS, State(world), intent, next_day).verdict.outcome == "allowed"
    lines = {line.code: line for line in room(world, TERMS, limits, (), next_day)}
    assert lines["R8_HALTED daily_loss"].used == 0


def test_a_halt_from_outside_cancels_working_opens_once_and_leaves_exits_alone() -> None:
    """A halt by a person or by a broken invariant acts like any other, and putting it on twice changes nothing."""
    world, _ = losing_account(MIDNIGHT, [100_000.0])
    for request in (
        OrderRequest("limit", "BTC", 1, Decimal("0.01"), 1, limit=Decimal(99_000)),
        OrderRequest("close", "BTC", -1, Decimal(1)),
    ):
        world, _, _ = submit(world, request, MIDNIGHT)
    after, receipts = halt(world, TERMS, "operator", MIDNIGHT)
    assert [(receipt.kind, receipt.order_id) for receipt in receipts] == [("halted", ""), ("cancelled", "o1")]
    assert [order.id for order in after.orders] == ["o2"]
    assert halt(after, TERMS, "operator", MIDNIGHT) == (after, ())


test_long = long_versions(globals())
