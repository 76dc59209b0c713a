"""Every rule of the book: one decision just inside its limit that is allowed, one a unit beyond that is refused.

Codes, their order and their files are a promise to everything that was ever stored: they are pinned here.
"""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pitboss.core.instant import DAY_MS, HOUR_MS, day_of, iso
from pitboss.core.verdict import Margin
from pitboss.venues.predict import rules
from pitboss.venues.predict.caps import PredictCaps, Spent, make_caps, room
from pitboss.venues.predict.orders import perform
from pitboss.venues.predict.rules import RULES
from pitboss.venues.predict.state import ACCOUNT, QUOTE, MarketTerms, PredictWorld
from pitboss.venues.predict.svi import FLOAT
from pitboss.venues.predict.trade import mint, preview
from pitboss.venues.predict.world import push
from venues.predict.guard_result import GuardResult, judge
from venues.predict.scene import HOURLY, LATER, MINT, NOW, SPOT, no, venue, with_open_market, world_after, yes
from venues.predict.single_markets import create_oracle, push_price, set_ask_bounds
from verdict_margins import margin_of

CAPS = PredictCaps()
NONE = Spent()
REDEEM = {"action": "redeem", "market_id": HOURLY, "side": "YES", "strike": 63_000, "reasoning": "enough"}
CODES = [
    "B1_SHAPE",
    "B2_MARKET",
    "B3_EXPIRY",
    "B4_STALE",
    "B5_NOT_QUOTED",
    "B6_ASK_BOUNDS",
    "B7_SLIPPAGE",
    "B8_EDGE",
    "B9_SPEND_TICK",
    "B10_SPEND_DAY",
    "B11_SPEND_TOTAL",
    "B12_EXPOSURE",
    "B13_BALANCE",
    "B14_DUPLICATE",
    "B15_VENUE",
]


def judge_mint(
    world: PredictWorld | None = None, caps: PredictCaps = CAPS, spent: Spent = NONE, now: int = NOW, **changes: Any
) -> GuardResult:
    seen = changes.pop("seen", None)
    return judge(caps, world or venue(), spent, {**MINT, **changes}, now, NOW, seen=seen)


def assert_allowed(found: GuardResult) -> GuardResult:
    assert found.verdict.outcome == "allowed", found.verdict
    assert found.order is not None
    return found


def assert_refused(found: GuardResult, code: str, words: str = "") -> None:
    assert (found.verdict.outcome, found.verdict.code) == ("refused", code), found.verdict
    assert words in found.verdict.detail
    assert found.order is None


def test_codes_order_and_files_are_pinned() -> None:
    assert [rule.code for rule in RULES] == CODES
    files = sorted(path.stem for path in Path(rules.__path__[0]).glob("b*.py"))
    assert files == [f"b{int(code[1:].split('_')[0]):02d}_{code.split('_', 1)[1].lower()}" for code in CODES]
    assert [rule.code for rule in RULES if rule.scope == "every"] == [CODES[0], CODES[1], CODES[13], CODES[14]]
    assert all(len(rule.doc) > 40 for rule in RULES)


def test_a_plain_mint_is_allowed_with_the_margins_of_every_amount() -> None:
    found = judge_mint()
    assert_allowed(found)
    codes = [one.code for one in found.verdict.margins]
    assert codes == [CODES[place] for place in (2, 3, 4, 5, 8, 9, 10, 11, 12)]
    assert margin_of(found.verdict, "B9_SPEND_TICK").left == 0
    assert margin_of(found.verdict, "B10_SPEND_DAY").left == 48
    assert found.order is not None
    step = perform(venue(), found.order, NOW)
    assert step.receipts[0].facts["quantity"] == Decimal(found.order.quantity).scaleb(-6)
    assert Decimal("1.999") < Decimal(step.receipts[0].facts["cost"]) <= 2


def test_a_hold_and_nothing_at_all_are_no_ops() -> None:
    for raw in (None, {"action": "hold", "reasoning": "quiet"}):
        found = judge(CAPS, venue(), NONE, raw, NOW)
        assert (found.verdict.outcome, found.order) == ("noop", None)


def test_b1_a_malformed_decision_is_refused() -> None:
    assert_refused(judge_mint(side="UP"), "B1_SHAPE", "side must be YES or NO")
    assert_refused(judge(CAPS, venue(), NONE, "mint", NOW), "B1_SHAPE", "JSON object")


def test_b2_without_a_market_it_is_the_one_of_the_expiry_or_the_nearest_with_the_strike_and_that_is_recorded() -> None:
    several = venue(markets=2)
    bare = {"side": "YES", "strike": 63_000, "spendDusdc": 2, "confidence": 0.6, "reasoning": "drift", "action": "mint"}
    nearest = assert_allowed(judge(CAPS, several, NONE, bare, NOW))
    assert nearest.order is not None
    assert nearest.order.contract.market_id == HOURLY
    assert Margin("B2_MARKET", "no market_id", HOURLY, None, "the nearest open market") in nearest.verdict.margins
    by_expiry = assert_allowed(judge(CAPS, several, NONE, {**bare, "expiry": iso(NOW + 2 * HOUR_MS)}, NOW))
    assert Margin("B2_MARKET", "no market_id", LATER, None, "the market of its expiry") in by_expiry.verdict.margins
    grid = replace(several.oracles[HOURLY].grid, min_strike=70_000 * FLOAT)
    moved = replace(several, oracles={**several.oracles, HOURLY: replace(several.oracles[HOURLY], grid=grid)})
    by_strike = assert_allowed(judge(CAPS, moved, NONE, bare, NOW))
    assert Margin("B2_MARKET", "no market_id", LATER, None, "the market of its strike") in by_strike.verdict.margins
    hasty = PredictCaps(min_ms_to_expiry=HOUR_MS + 1)
    assert assert_allowed(judge(hasty, several, NONE, bare, NOW)).order.contract.market_id == LATER
    assert_refused(
        judge(CAPS, several, NONE, {**bare, "expiry": iso(NOW + 1)}, NOW), "B2_MARKET", "no market with expiry"
    )
    assert_refused(judge(CAPS, several, NONE, {**bare, "expiry": "soon"}, NOW), "B1_SHAPE", "expiry must be a time")
    assert "B2_MARKET" not in {margin.code for margin in judge_mint(market_id=None).verdict.margins}


def test_b2_a_market_must_be_known_and_active() -> None:
    assert_refused(judge_mint(market_id="BTC-never"), "B2_MARKET", "no market")
    assert_allowed(judge_mint(market_id=None))
    assert_allowed(judge_mint(venue(markets=2), market_id=LATER))
    waiting = world_after(create_oracle(venue(), "idle", "BTC", NOW + HOUR_MS * 3, NOW))
    assert_refused(judge_mint(waiting, market_id="idle"), "B2_MARKET", "not activated")
    assert_refused(judge_mint(now=NOW + HOUR_MS), "B2_MARKET", "waits for its settlement")
    settled = world_after(push_price(venue(), HOURLY, SPOT, SPOT, NOW + HOUR_MS))
    assert_refused(judge_mint(settled, now=NOW + HOUR_MS), "B2_MARKET", "is settled")
    assert_refused(judge_mint(caps=PredictCaps(underlying="ETH")), "B2_MARKET", "not a market of ETH")


def test_b2_a_dead_twin_is_no_market() -> None:
    twins = with_open_market(venue(), "twin", NOW + HOUR_MS)
    world = push(twins, "BTC", SPOT, NOW + 5_000, silent=(HOURLY,)).world
    assert_refused(judge_mint(world, now=NOW + 5_000), "B2_MARKET", "twin is the market of this expiry")
    assert_allowed(judge_mint(world, now=NOW + 5_000, market_id="twin"))
    assert_allowed(judge_mint(world, now=NOW + 5_000, market_id=None))


def test_b3_a_market_too_near_its_expiry_is_refused() -> None:
    for left, fine in ((60_000, True), (59_999, False)):
        at = NOW + HOUR_MS - left
        world = world_after(push_price(venue(), HOURLY, SPOT, SPOT, at))
        found = judge(CAPS, world, NONE, MINT, at)
        assert_allowed(found) if fine else assert_refused(found, "B3_EXPIRY", "expires in 59.999 s")


def test_b4_an_old_price_or_a_late_execution_is_refused() -> None:
    assert_allowed(judge_mint(now=NOW + 30_000))
    assert_refused(judge_mint(now=NOW + 30_001), "B4_STALE")
    assert_allowed(judge_mint(caps=PredictCaps(max_price_age_ms=5_000), now=NOW + 5_000))
    assert_refused(judge_mint(caps=PredictCaps(max_price_age_ms=5_000), now=NOW + 5_001), "B4_STALE")
    fresh = world_after(push_price(venue(), HOURLY, SPOT, SPOT, NOW + 40_000))
    assert_refused(judge_mint(fresh, now=NOW + 40_000), "B4_STALE", "40 s later")
    # The venue's own limit is lower than that of the caps.
    assert_refused(judge_mint(caps=PredictCaps(max_price_age_ms=60_000), now=NOW + 30_001), "B4_STALE")


def test_b5_a_strike_must_be_on_the_grid_and_have_a_price() -> None:
    assert_refused(judge_mint(strike=Decimal("63000.5")), "B5_NOT_QUOTED", "not on the grid")
    assert_refused(judge_mint(strike=49_999), "B5_NOT_QUOTED", "not on the grid")
    assert_refused(judge_mint(strike=Decimal("1e300")), "B5_NOT_QUOTED", "not on the grid")
    assert_refused(judge_mint(strike=Decimal("63000.0000000001")), "B5_NOT_QUOTED", "not on the grid")
    assert_refused(judge_mint(strike=150_000), "B5_NOT_QUOTED", "0 or 1")
    assert_refused(judge_mint(spend=Decimal("1e-9")), "B5_NOT_QUOTED", "buys nothing")
    assert_refused(judge_mint(spend=Decimal("1e-6")), "B5_NOT_QUOTED", "buys nothing")
    assert_allowed(judge_mint(spend=Decimal("2e-6")))
    assert_allowed(judge_mint(strike=63_001))


def test_b6_an_ask_outside_the_bounds_is_refused() -> None:
    ask = judge(CAPS, venue(), NONE, MINT, NOW).order
    assert ask is not None
    just = world_after(set_ask_bounds(venue(), HOURLY, (ask.price, 900_000_000), NOW))
    assert_allowed(judge_mint(just))
    above = world_after(set_ask_bounds(venue(), HOURLY, (ask.price + 1, 900_000_000), NOW))
    assert_refused(judge_mint(above), "B6_ASK_BOUNDS", "outside")


def test_b7_an_ask_too_far_above_the_one_shown_is_refused() -> None:
    order = judge(CAPS, venue(), NONE, MINT, NOW).order
    assert order is not None
    edge = order.price * 10_000 // 10_200
    shown = Spent(shown={yes().key: edge + 1})
    assert_allowed(judge_mint(spent=shown))
    assert_refused(judge_mint(spent=Spent(shown={yes().key: edge - 1})), "B7_SLIPPAGE", "bps above")
    assert_allowed(judge_mint(spent=Spent(shown={no().key: 1})))  # another contract says nothing about this one
    assert_allowed(judge_mint(spent=Spent(shown={yes().key: FLOAT})))  # cheaper than shown is fine


def test_b8_an_edge_below_the_least_is_refused_when_one_is_set() -> None:
    assert_allowed(judge_mint(confidence=0.1))
    order = judge(CAPS, venue(), NONE, MINT, NOW).order
    assert order is not None
    exactly = Decimal(order.price + 50_000_000).scaleb(-9)
    caps = PredictCaps(min_edge=50_000_000)
    assert_allowed(judge_mint(caps=caps, confidence=exactly))
    assert_refused(judge_mint(caps=caps, confidence=exactly - Decimal("1e-12")), "B8_EDGE")
    assert_refused(judge_mint(caps=caps, confidence=None), "B8_EDGE", "needs a confidence")


def test_b9_a_spend_above_the_cap_is_reduced_to_it_and_reported() -> None:
    found = judge_mint(spend=1_000)
    assert (found.verdict.outcome, found.verdict.code) == ("reduced", "B9_SPEND_TICK")
    assert found.verdict.detail == "spend 1000 reduced to 2"
    assert found.order is not None
    assert found.order.spend == 2 * QUOTE
    used = NONE.after(1_500_000, NOW, NOW)
    assert judge_mint(spent=used).order is not None
    assert judge_mint(spent=used).order.spend == 500_000  # type: ignore[union-attr]
    assert_refused(judge_mint(spent=NONE.after(2_000_000, NOW, NOW)), "B9_SPEND_TICK", "nothing is left")
    assert_allowed(judge_mint(spent=NONE.after(2_000_000, NOW - 60_000, NOW - 60_000)))


def test_b10_a_day_has_its_budget_and_a_new_day_a_new_one() -> None:
    assert_allowed(judge_mint(spent=Spent(today=48 * QUOTE, day=day_of(NOW))))
    assert_refused(judge_mint(spent=Spent(today=48 * QUOTE + 1, day=day_of(NOW))), "B10_SPEND_DAY", "the cap is 50")
    assert_allowed(judge_mint(spent=Spent(today=50 * QUOTE, day=day_of(NOW - DAY_MS))))


def test_b11_the_whole_has_its_budget() -> None:
    assert_allowed(judge_mint(spent=Spent(total=198 * QUOTE)))
    assert_refused(judge_mint(spent=Spent(total=198 * QUOTE + 1)), "B11_SPEND_TOTAL", "the cap is 200")


def test_b12_one_expiry_has_its_budget_over_all_its_strikes() -> None:
    world = world_after(mint(venue(markets=2), ACCOUNT, no(64_000), 20 * QUOTE, NOW))
    cost = world.accounts[ACCOUNT].positions[no(64_000).key].cost
    assert_allowed(judge_mint(world, PredictCaps(max_exposure_per_expiry=cost + 2 * QUOTE)))
    assert_refused(judge_mint(world, PredictCaps(max_exposure_per_expiry=cost + 2 * QUOTE - 1)), "B12_EXPOSURE")
    assert_allowed(judge_mint(world, PredictCaps(max_exposure_per_expiry=cost + 2 * QUOTE - 1), market_id=LATER))


def test_b13_a_spend_beyond_the_balance_is_refused() -> None:
    assert_allowed(judge_mint(venue(cash=2 * QUOTE)))
    assert_refused(judge_mint(venue(cash=2 * QUOTE - 1)), "B13_BALANCE")


def test_b14_the_same_intent_is_answered_once() -> None:
    first = judge_mint()
    again = judge_mint(seen={first.key: first.verdict})
    assert again.verdict == replace(first.verdict, duplicate=True)
    assert again.order is None
    other_tick = judge(CAPS, venue(), NONE, MINT, NOW, NOW - 1, seen={first.key: first.verdict})
    assert_allowed(other_tick)


def test_b15_what_the_venue_would_abort_is_refused_with_its_own_words() -> None:
    assert_refused(judge_mint(venue(terms=MarketTerms(paused=True))), "B15_VENUE", "paused")
    world = venue(vault=QUOTE, cash=100 * QUOTE, terms=MarketTerms(max_exposure=100_000_000))
    assert_refused(judge_mint(world), "B15_VENUE", "vault:1")


def test_a_redeem_is_judged_by_shape_market_and_venue_only() -> None:
    world = world_after(mint(venue(markets=2), ACCOUNT, yes(), 3 * QUOTE, NOW))
    broke = Spent(today=10**12, day=day_of(NOW), total=10**12, tick=10**12, tick_at=NOW)
    found = judge(PredictCaps(min_ms_to_expiry=10**9), world, broke, REDEEM, NOW)
    assert_allowed(found)
    assert found.order is not None
    assert (found.order.action, found.order.quantity) == ("redeem", 3 * QUOTE)
    step = perform(world, found.order, NOW)
    assert step.world.accounts[ACCOUNT].positions == {}
    unnamed = {key: value for key, value in REDEEM.items() if key != "market_id"}
    assert_allowed(judge(CAPS, world, NONE, unnamed, NOW))
    both = world_after(mint(world, ACCOUNT, yes(market_id=LATER), QUOTE, NOW))
    assert_refused(judge(CAPS, both, NONE, unnamed, NOW), "B2_MARKET", "2 positions match")
    assert_refused(judge(CAPS, world, NONE, {**REDEEM, "side": "NO"}, NOW), "B2_MARKET", "no NO position")
    assert_refused(judge(CAPS, world, NONE, {**REDEEM, "strike": 63_001}, NOW), "B2_MARKET", "no YES position")
    assert_refused(judge(CAPS, world, NONE, {**REDEEM, "market_id": "x"}, NOW), "B2_MARKET", "no market")
    assert_refused(judge(CAPS, world, NONE, REDEEM, NOW + HOUR_MS), "B2_MARKET", "waits for its settlement")
    assert_refused(judge(CAPS, world, NONE, REDEEM, NOW + 31_000), "B15_VENUE", "stale")


def test_a_settled_position_may_be_redeemed() -> None:
    world = world_after(mint(venue(), ACCOUNT, yes(), 3 * QUOTE, NOW))
    world = world_after(push_price(world, HOURLY, SPOT, SPOT, NOW + HOUR_MS))
    found = judge(CAPS, world, NONE, REDEEM, NOW + DAY_MS)
    assert_allowed(found)
    assert found.order is not None
    assert found.order.price == FLOAT


def test_no_is_the_mirror_of_yes_in_price_and_never_the_same_contract() -> None:
    yes_order, no_order = judge_mint().order, judge_mint(side="NO").order
    assert yes_order is not None
    assert no_order is not None
    assert yes_order.contract == yes()
    assert no_order.contract == no()
    shown = preview(venue(), yes(), NOW)
    assert yes_order.price + no_order.price == FLOAT + 2 * shown.spread  # type: ignore[union-attr]


def test_a_rule_that_breaks_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> Margin:
        raise ZeroDivisionError("oops")

    changed = tuple(replace(rule, check=broken) if rule.code == "B8_EDGE" else rule for rule in RULES)
    monkeypatch.setattr("pitboss.venues.predict.rule_book.RULES", changed)
    found = judge_mint()
    assert_refused(found, "B8_EDGE", "the rule itself failed")
    assert found.broken


def test_limits_as_a_skill_writes_them_become_the_venues_units() -> None:
    assert make_caps() == PredictCaps()
    odd = make_caps(
        max_spend_per_tick=Decimal("1.2345678"), min_edge=Decimal("0.05"), min_seconds_to_expiry=Decimal("0.0001")
    )
    assert (odd.max_spend_per_tick, odd.min_edge, odd.min_ms_to_expiry) == (1_234_567, 50_000_000, 1)


def test_what_is_left_of_every_amount_is_reported() -> None:
    world = world_after(mint(venue(), ACCOUNT, yes(), 3 * QUOTE, NOW))
    lines = {line.code.split()[0]: line for line in room(CAPS, world, NONE.after(QUOTE, NOW, NOW), ACCOUNT, NOW)}
    assert list(lines) == ["B9_SPEND_TICK", "B10_SPEND_DAY", "B11_SPEND_TOTAL", "B12_EXPOSURE", "B13_BALANCE"]
    assert lines["B9_SPEND_TICK"].left == 1
    assert lines["B11_SPEND_TOTAL"].left == 199
