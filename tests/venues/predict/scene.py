"""A small predict venue for tests: one agent, a few markets, a price of 63,200."""

from dataclasses import replace
from typing import Any

from pitboss.core.asof import View
from pitboss.core.instant import HOUR_MS, Instant, parse_instant
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.desk import Desk
from pitboss.venues.predict.observation import PredictObservation, Shown, no_tape
from pitboss.venues.predict.state import (
    ACCOUNT,
    QUOTE,
    Account,
    Contract,
    MarketTerms,
    PredictWorld,
    binary,
    open_world,
)
from pitboss.venues.predict.svi import FLOAT, Svi
from pitboss.venues.predict.trade import WorldStep
from venues.predict.single_markets import activate, create_oracle, push_price, push_svi

NOW = parse_instant("2026-05-27T12:00:00Z")
HOURLY = "BTC-hourly"
LATER = "BTC-later"
SPOT = 63_200 * FLOAT
SMILE = Svi(0.0004, 0.01, -0.2, 0.0, 0.01)
MINT: dict[str, Any] = {
    "action": "mint",
    "market_id": HOURLY,
    "side": "YES",
    "strike": 63_000,
    "spend": 2,
    "confidence": 0.7,
    "reasoning": "because",
}


def world_after(step: WorldStep) -> PredictWorld:
    """The world after something that must not abort."""
    assert step.abort is None, step.abort
    return step.world


def with_open_market(
    world: PredictWorld, market_id: str, expiry_at: int, at: int = NOW, svi: Svi = SMILE, spot: int = SPOT
) -> PredictWorld:
    """The world with one more market, active, priced and with a surface."""
    world = world_after(create_oracle(world, market_id, "BTC", expiry_at, at))
    world = world_after(activate(world, market_id, at))
    world = world_after(push_price(world, market_id, spot, spot, at))
    return world_after(push_svi(world, market_id, svi, at))


def venue(
    vault: int = 1_000_000 * QUOTE, cash: int = 1_000 * QUOTE, terms: MarketTerms | None = None, markets: int = 1
) -> PredictWorld:
    """A venue with one market an hour ahead, or also one two hours ahead."""
    world = with_open_market(open_world(vault, cash, terms), HOURLY, NOW + HOUR_MS)
    return with_open_market(world, LATER, NOW + 2 * HOUR_MS) if markets > 1 else world


def with_account(world: PredictWorld, name: str, cash: int) -> PredictWorld:
    """One more owner."""
    return replace(world, accounts={**world.accounts, name: Account(cash)})


def yes(strike: int = 63_000, market_id: str = HOURLY) -> Contract:
    return binary(market_id, "YES", strike * FLOAT)


def no(strike: int = 63_000, market_id: str = HOURLY) -> Contract:
    return binary(market_id, "NO", strike * FLOAT)


def between(lower: int, higher: int, market_id: str = HOURLY) -> Contract:
    return Contract(market_id, lower * FLOAT, higher * FLOAT)


def money(world: PredictWorld) -> int:
    """Return the total money of vault and accounts."""
    return world.vault.balance + sum(account.cash for account in world.accounts.values())


def observe(desk: Desk, at: Instant, caps: PredictCaps | None = None, view: View | None = None) -> PredictObservation:
    """Build an observation outside a run."""
    nothing = (), None, Shown()
    return PredictObservation(at, 0, desk, caps or PredictCaps(), view, None, no_tape, 60, "BTC", ACCOUNT, *nothing)
