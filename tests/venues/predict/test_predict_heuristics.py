"""The heuristics of the predict venue: which side, which strike, how much, and when they hold."""

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest

from pitboss.core.errors import UserError
from pitboss.core.instant import MINUTE_MS
from pitboss.core.verdict import Verdict
from pitboss.venues.predict.caps import PredictCaps, Spent
from pitboss.venues.predict.desk import Desk
from pitboss.venues.predict.heuristics import heuristic, heuristics
from pitboss.venues.predict.ladder import ladder
from pitboss.venues.predict.observation import PredictObservation
from pitboss.venues.predict.state import QUOTE, MarketTerms, open_world
from pitboss.venues.predict.svi import FLOAT
from pitboss.venues.predict.world import feed
from venues.predict.predict_ticks import new_state, ports, price_path, run
from venues.predict.scene import NOW, observe

FIRST = "BTC-2026-05-27T12:15:00Z"
DESK = Desk(feed(open_world(10**12, 100 * QUOTE), "BTC", 63_213 * FLOAT, NOW, 0.5).world)


def heuristic_intent(name: str, observation: PredictObservation) -> dict | None:
    decision = asyncio.run(heuristic(name).decide(observation, lambda intent: Verdict("noop")))
    return decision.intents[0] if decision.intents else None


def test_the_three_of_the_original_are_there() -> None:
    assert set(heuristics()) == {"alternate", "yes_only", "no_only"}
    assert heuristic("policy/yes_only") is heuristic("yes-only")
    with pytest.raises(UserError, match="unknown policy 'policy/momentum'"):
        heuristic("momentum")


@pytest.mark.parametrize(
    ("name", "sides"), [("alternate", "YES NO YES"), ("yes_only", "YES YES YES"), ("no_only", "NO NO NO")]
)
def test_sides_follow_the_name(name: str, sides: str) -> None:
    found = [heuristic_intent(name, replace(observe(DESK, NOW), ticks=ticks)) for ticks in range(3)]
    assert [one and one["side"] for one in found] == sides.split()


def test_the_first_rung_from_spot_of_the_soonest_market_is_minted_for_the_tick_s_cap() -> None:
    found = heuristic_intent("yes_only", observe(DESK, NOW))
    assert found is not None
    assert (found["market_id"], found["strike"], found["spend"]) == (FIRST, 63_200, 2)


def test_a_rung_whose_ask_is_not_admitted_is_passed_over() -> None:
    terms = MarketTerms(max_ask=480_000_000)
    desk = replace(DESK, world=replace(DESK.world, terms=terms))
    found = heuristic_intent("yes_only", observe(desk, NOW))
    assert found is not None
    assert found["strike"] == next(
        rung.strike // FLOAT for rung in ladder(desk.world, FIRST, NOW) if "YES" in rung.sides
    )
    assert found["strike"] == 63_250
    none = replace(DESK, world=replace(DESK.world, terms=MarketTerms(min_ask=400_000_000, max_ask=400_000_001)))
    assert heuristic_intent("yes_only", observe(none, NOW)) is None


def test_it_goes_on_to_the_next_expiry_when_one_is_near_or_full_and_holds_when_nothing_is_left() -> None:
    late = observe(DESK, NOW + 14 * MINUTE_MS + 1)
    stale = heuristic_intent("yes_only", late)
    assert stale is None  # no price any more
    patient = PredictCaps(min_ms_to_expiry=16 * MINUTE_MS)
    assert heuristic_intent("yes_only", observe(DESK, NOW, patient))["market_id"] != FIRST  # type: ignore[index]
    spent = replace(DESK, spent=Spent(total=199 * QUOTE))
    assert heuristic_intent("yes_only", observe(spent, NOW))["spend"] == 1  # type: ignore[index]
    assert heuristic_intent("yes_only", observe(replace(DESK, spent=Spent(total=200 * QUOTE)), NOW)) is None


def test_a_run_of_alternate_is_never_refused_and_stays_within_its_budgets() -> None:
    caps = PredictCaps(max_spend_per_day=40 * QUOTE, max_exposure_per_expiry=10 * QUOTE)
    given = ports(heuristic("alternate"), caps, build_prompts=False)
    state, records = run(new_state(), given, price_path(9, 60))
    verdicts = [one for record in records for one in record.body()["verdicts"]]
    assert {one["outcome"] for one in verdicts} == {"allowed"}
    sides = [one["side"] for record in records[:6] for one in record.body()["proposals"]]
    assert sides == ["YES", "NO"] * 3
    assert 39 * QUOTE < state.world.spent.total <= 40 * QUOTE
    assert len({one["market_id"] for record in records for one in record.body()["proposals"]}) > 3
    assert Decimal(records[-1].body()["after"]["equity"]) > 0
