"""The heuristics of the predict venue: try $50 strikes outward from spot and mint the first whose ask is admitted.

They are stateless deciders that differ only in the side chosen at a tick. Each picks the market that expires soonest
with enough time and budget left, spends the tick's cap, and holds if nothing can be minted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pitboss.agent.decider import Judge
from pitboss.core.errors import InvariantError
from pitboss.core.intent import Decision
from pitboss.venues.predict.caps import exposure
from pitboss.venues.predict.case import cents
from pitboss.venues.predict.desk import spend_with_reserves
from pitboss.venues.predict.ladder import Rung, first_rung
from pitboss.venues.predict.observation import PredictObservation
from pitboss.venues.predict.state import NO_ACCOUNT, QUOTE, Oracle, PredictWorld, Side, contracts, usd

LEAST = QUOTE // 100
"""Minimum spend: less than a cent is not traded."""

REACH = (0, 20)
"""Numbers of strikes tried on either side of the nearest one.

The nearest alone comes first, because it nearly always suffices.
"""


@dataclass(frozen=True, slots=True)
class LadderPolicy:
    """A heuristic; `side` returns the side for a tick number."""

    name: str
    summary: str
    side: Callable[[int], Side]

    async def decide(self, observation: PredictObservation, judge: Judge) -> Decision:
        """Decide on one mint, or hold."""
        del judge
        intent = self.intent(observation)
        return Decision() if intent is None else Decision((intent,), intent["reasoning"])

    def intent(self, observation: PredictObservation) -> dict[str, Any] | None:
        """Return the mint of this tick, if any."""
        side, desk, at = self.side(observation.ticks), observation.desk, observation.at
        caps, spent = observation.caps, spend_with_reserves(desk, at)
        account = desk.world.accounts.get(observation.account_id, NO_ACCOUNT)
        budget = min(
            caps.max_spend_per_tick,
            caps.max_spend_per_day - spent.today_at(at),
            caps.max_total_spend - spent.total,
            account.cash,
        )
        if budget < LEAST:
            return None
        for market in observation.markets(priced=False):
            room = caps.max_exposure_per_expiry - exposure(desk.world, observation.account_id, market.expiry_at)
            spend = min(budget, room)
            if spend < LEAST or market.expiry_at - at < caps.min_ms_to_expiry:
                continue
            rung = _rung(desk.world, market, side, at)
            if rung is not None:
                return _mint(market, side, rung, spend)
        return None


def _rung(world: PredictWorld, market: Oracle, side: Side, at: int) -> Rung | None:
    for count in REACH:
        rung = first_rung(world, market.id, side, at, count=count)
        if rung is not None:
            return rung
    return None


def _mint(market: Oracle, side: Side, rung: Rung, spend: int) -> dict[str, Any]:
    return {
        "action": "mint",
        "market_id": market.id,
        "side": side,
        "strike": usd(rung.strike),
        "spend": contracts(spend),
        "reasoning": f"{side} at the first rung from spot that is admitted, ask {cents(rung.ask(side))}",
    }


def define_heuristic(name: str, summary: str, side: Callable[[int], Side]) -> LadderPolicy:
    """Define a heuristic, available as the model `policy/<name>`."""
    if not name.isidentifier() or name != name.lower():
        raise InvariantError(f"policy name {name!r} is not snake_case")
    return LadderPolicy(f"policy/{name}", summary, side)
