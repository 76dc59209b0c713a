"""Delayed orders: each is executed at the first update at or after its decision, judged again there, and never twice."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from pitboss.core import codec
from pitboss.core.instant import DAY_MS, HOUR_MS, day_of
from pitboss.core.receipt import Receipt
from pitboss.venues.predict.caps import PredictCaps, Spent
from pitboss.venues.predict.desk import (
    MAX_FILLS,
    MAX_WAITING,
    VENUE,
    Desk,
    DeskOrder,
    DeskResult,
    spend_with_reserves,
    submit,
    summary,
)
from pitboss.venues.predict.execution import apply_update
from pitboss.venues.predict.state import ACCOUNT, QUOTE, MarketTerms, PredictWorld, open_world
from pitboss.venues.predict.svi import FLOAT
from pitboss.venues.predict.trade import WorldStep, preview
from pitboss.venues.predict.world import push
from venues.predict.guard_result import judge
from venues.predict.scene import HOURLY, LATER, MINT, NOW, SPOT, money, venue, with_open_market, yes
from venues.predict.single_markets import push_price

CAPS = PredictCaps()
REDEEM = {"action": "redeem", "market_id": HOURLY, "side": "YES", "strike": 63_000, "reasoning": "enough"}


def submit_decision(
    desk: Desk, at: int, caps: PredictCaps = CAPS, shown: int | None = None, **change: Any
) -> DeskResult:
    """A decision judged and submitted at an instant."""
    intent = {**MINT, **change} if change.get("action") != "redeem" else {**REDEEM, **change}
    found = judge(caps, desk.world, spend_with_reserves(desk, at), intent, at)
    assert found.order is not None, found.verdict
    return submit(desk, DeskOrder(found.order, at, Decimal("0.7"), shown, found.trade, desk.world), at)


def push_feed(world: PredictWorld, at: int, spot: int = SPOT, **more: Any) -> WorldStep:
    return push(world, "BTC", spot, at, **more)


def kinds(receipts: tuple[Receipt, ...]) -> list[str]:
    return [receipt.kind for receipt in receipts]


def test_with_an_update_of_the_same_instant_an_order_is_carried_out_at_once() -> None:
    answer = submit_decision(Desk(venue()), NOW)
    assert (kinds(answer.receipts), answer.order_id, answer.desk.waiting) == (["filled"], "t1", ())
    assert QUOTE < answer.desk.spent.total == answer.desk.spent.tick <= 2 * QUOTE
    assert answer.desk.spent.tick_at == NOW


def test_without_one_it_waits_and_is_carried_out_at_the_next_update_and_its_price() -> None:
    answer = submit_decision(Desk(venue()), NOW + 1)
    assert (kinds(answer.receipts), answer.order_id) == (["accepted"], "o1")
    assert answer.desk.world.accounts[ACCOUNT].cash == 1_000 * QUOTE
    step = push_feed(answer.desk.world, NOW + 4_000, SPOT - 10 * FLOAT)
    desk, receipts = apply_update(answer.desk, step, CAPS, NOW + 4_000)
    (receipt,) = receipts
    assert (receipt.kind, receipt.at, receipt.facts["order"]) == ("filled", NOW + 4_000, "o1")
    quote = preview(step.world, yes(), NOW + 4_000)
    assert abs(int(Decimal(receipt.facts["price"]).scaleb(9)) - quote.ask) < 1_000  # type: ignore[union-attr]
    assert (desk.waiting, desk.done[-1].order_id) == ((), "o1")
    assert desk.spent.tick_at == NOW + 1
    again, more = apply_update(desk, push_feed(desk.world, NOW + 5_000), CAPS, NOW + 5_000)
    assert (more, again.spent) == ((), desk.spent)


def test_an_update_of_another_market_is_not_the_one_it_waits_for() -> None:
    desk = submit_decision(Desk(venue(markets=2)), NOW + 1).desk
    other = push_price(desk.world, LATER, SPOT, SPOT, NOW + 2_000)
    desk, receipts = apply_update(desk, other, CAPS, NOW + 2_000)
    assert (receipts, len(desk.waiting)) == ((), 1)
    mine = push_price(desk.world, HOURLY, SPOT, SPOT, NOW + 3_000)
    desk, receipts = apply_update(desk, mine, CAPS, NOW + 3_000)
    assert (kinds(receipts), desk.waiting) == (["filled"], ())


def test_an_update_that_comes_too_late_refuses_the_mint_by_b4() -> None:
    for wait, kind in ((30_000, "filled"), (30_001, "rejected")):
        desk = submit_decision(Desk(venue()), NOW + 1).desk
        at = NOW + 1 + wait
        desk, receipts = apply_update(desk, push_feed(desk.world, at), CAPS, at)
        assert kinds(receipts) == [kind]
    assert receipts[0].facts["code"] == "B4_STALE"
    assert (desk.done[-1].kind, desk.done[-1].code, desk.waiting) == ("refused", "B4_STALE", ())
    assert (desk.spent.total, spend_with_reserves(desk, at).total) == (0, 0)


def test_a_mint_does_not_wait_for_ever_for_a_market_that_fell_silent() -> None:
    desk = submit_decision(Desk(venue(markets=2)), NOW + 1).desk
    silent = push_feed(desk.world, NOW + 40_000, silent=(HOURLY,))
    desk, receipts = apply_update(desk, silent, CAPS, NOW + 40_000)
    assert receipts[0].facts["code"] == "B4_STALE"
    assert desk.waiting == ()


def test_slippage_is_measured_at_execution_against_what_was_shown() -> None:
    ask = preview(venue(), yes(), NOW)
    desk = submit_decision(Desk(venue()), NOW + 1, shown=ask.ask).desk  # type: ignore[union-attr]
    desk, receipts = apply_update(desk, push_feed(desk.world, NOW + 2_000, SPOT + 60 * FLOAT), CAPS, NOW + 2_000)
    assert receipts[0].facts["code"] == "B7_SLIPPAGE"
    assert "shown to you" in desk.done[-1].detail


def test_a_decision_without_a_market_keeps_the_market_it_meant() -> None:
    desk = submit_decision(Desk(venue()), NOW + 1, market_id=None).desk
    two = venue(markets=2)  # by now another market is open, which would make it ambiguous
    desk, receipts = apply_update(desk, push_feed(two, NOW + 2_000), CAPS, NOW + 2_000)
    assert [(receipt.kind, receipt.symbol) for receipt in receipts] == [("filled", HOURLY)]


def test_what_waits_counts_as_spent_at_its_tick_on_its_day_and_in_all() -> None:
    desk = submit_decision(Desk(venue()), NOW + 1, spend=Decimal("1.5")).desk
    spent = spend_with_reserves(desk, NOW + 1)
    assert (spent.tick_spend(NOW + 1), spent.today_at(NOW + 1), spent.total) == (1_500_000,) * 3
    later = spend_with_reserves(desk, NOW + 2)
    assert (later.tick_spend(NOW + 2), later.total) == (0, 1_500_000)
    found = judge(CAPS, desk.world, spent, {**MINT, "side": "NO"}, NOW + 1)
    assert found.verdict.code == "B9_SPEND_TICK"
    assert found.order is not None
    assert found.order.spend == 500_000
    tight = PredictCaps(max_total_spend=3 * QUOTE)
    assert judge(tight, desk.world, later, MINT, NOW + 2).verdict.code == "B11_SPEND_TOTAL"


def test_a_promise_is_not_outgrown_when_another_tick_has_spent_in_between() -> None:
    desk = submit_decision(Desk(venue(markets=2)), NOW + 1, spend=Decimal("0.5")).desk
    desk, _ = apply_update(desk, push_price(desk.world, LATER, SPOT, SPOT, NOW + 5_000), CAPS, NOW + 5_000)
    second = submit_decision(desk, NOW + 5_000, market_id=LATER)
    assert kinds(second.receipts) == ["filled"]
    desk, receipts = apply_update(second.desk, push_feed(second.desk.world, NOW + 6_000), CAPS, NOW + 6_000)
    assert Decimal(receipts[0].facts["cost"]) <= Decimal("0.5")
    assert desk.spent.tick_at == NOW + 5_000  # the newer tick's spend is not forgotten for the older one's
    assert desk.spent.tick > QUOTE


def test_a_mint_that_waits_past_midnight_counts_for_the_day_it_is_made() -> None:
    midnight = (day_of(NOW) + 1) * DAY_MS
    world = with_open_market(open_world(10**12, 1_000 * QUOTE), "night", midnight + HOUR_MS, midnight - 2_000)
    desk = Desk(world, Spent(today=47 * QUOTE, day=day_of(NOW), total=47 * QUOTE))
    desk = submit_decision(desk, midnight - 1_000, market_id="night").desk
    assert spend_with_reserves(desk, midnight - 1).today_at(midnight - 1) == 49 * QUOTE
    desk, receipts = apply_update(desk, push_feed(desk.world, midnight + 1_000), CAPS, midnight + 1_000)
    assert kinds(receipts) == ["filled"]
    assert desk.spent.day == day_of(midnight)
    assert QUOTE < desk.spent.today_at(midnight) <= 2 * QUOTE
    assert desk.spent.total == 47 * QUOTE + desk.spent.today


def test_a_redeem_waits_for_a_price_too_but_not_after_settlement() -> None:
    desk = submit_decision(Desk(venue()), NOW).desk
    waiting = submit_decision(desk, NOW + 1, action="redeem")
    assert kinds(waiting.receipts) == ["accepted"]
    after, receipts = apply_update(waiting.desk, push_feed(waiting.desk.world, NOW + 50_000), CAPS, NOW + 50_000)
    assert kinds(receipts) == ["filled"]
    assert after.world.accounts[ACCOUNT].positions == {}
    settled, _ = apply_update(desk, push_price(desk.world, HOURLY, SPOT, SPOT, NOW + HOUR_MS), CAPS, NOW + HOUR_MS)
    paid = submit_decision(settled, NOW + HOUR_MS + 9_000, action="redeem")
    assert kinds(paid.receipts) == ["settled"]
    assert paid.desk.done[-1].kind == "payout"


def test_a_redeem_of_what_is_gone_by_then_is_refused() -> None:
    desk = submit_decision(Desk(venue()), NOW).desk
    twice = submit_decision(
        submit_decision(desk, NOW + 1, action="redeem").desk, NOW + 1, action="redeem", reasoning="again"
    ).desk
    after, receipts = apply_update(twice, push_feed(twice.world, NOW + 2_000), CAPS, NOW + 2_000)
    assert kinds(receipts) == ["filled", "rejected"]
    assert receipts[1].facts["code"] == "B2_MARKET"
    assert money(after.world) == money(desk.world)


def test_what_the_venue_aborts_at_once_is_a_refusal_and_changes_nothing() -> None:
    desk = Desk(venue())
    found = judge(CAPS, desk.world, desk.spent, MINT, NOW)
    assert found.order is not None
    paused = replace(desk, world=replace(desk.world, terms=MarketTerms(paused=True)))
    answer = submit(paused, DeskOrder(found.order, NOW, trade=found.trade, judged_world=desk.world), NOW)
    assert (answer.refusal, answer.desk) == ("trading is paused (predict:0)", paused)


def test_what_the_venue_refuses_later_is_reported_by_b15() -> None:
    desk = submit_decision(Desk(venue()), NOW + 1).desk
    paused = replace(desk.world, terms=MarketTerms(paused=True))
    desk, receipts = apply_update(desk, push_feed(paused, NOW + 2_000), CAPS, NOW + 2_000)
    assert receipts[0].facts["code"] == VENUE


def test_only_so_many_orders_wait() -> None:
    desk = Desk(venue(), next_order=1)
    wide = PredictCaps(max_spend_per_tick=1_000 * QUOTE)
    for number in range(MAX_WAITING):
        desk = submit_decision(desk, NOW + 1, wide, spend=1, strike=63_000 + number).desk
    assert submit_decision(desk, NOW + 1, wide, spend=1).refusal == f"{MAX_WAITING} orders wait for a price already"


def test_only_the_latest_that_came_of_orders_is_kept() -> None:
    desk, wide = Desk(venue()), PredictCaps(max_spend_per_tick=1_000 * QUOTE, max_exposure_per_expiry=1_000 * QUOTE)
    for number in range(MAX_FILLS + 3):
        desk = submit_decision(desk, NOW, wide, spend=1, strike=63_000 + number).desk
    assert len(desk.done) == MAX_FILLS + 3, "all of a market that is still there"
    assert desk.done[-1].strike == 63_000 + MAX_FILLS + 2


def test_a_desk_is_stored_and_read_back_exactly() -> None:
    desk = submit_decision(
        submit_decision(Desk(venue(markets=2)), NOW, shown=5).desk, NOW + 1, shown=7, side="NO", spend=1
    ).desk
    back = codec.parse(Desk, codec.loads(codec.dumps(desk)))
    assert back == desk
    assert codec.dumps(back) == codec.dumps(desk)
    assert (len(back.waiting), len(back.done), back.waiting[0].shown) == (1, 1, 7)


def test_the_summary_is_exact_text() -> None:
    desk = submit_decision(Desk(venue()), NOW).desk
    facts = summary(desk)
    assert Decimal(facts["cash"]) + Decimal(facts["spent"]) == 1_000
    assert facts["positions"][0]["strikes"] == ["63000"]
    assert facts["waiting"] == []
    assert summary(submit_decision(Desk(venue()), NOW + 1).desk)["waiting"] == ["o1"]
