"""The heuristics of the predict venue: walk $50 strikes outward from spot and mint the first whose ask is admitted.

Plain Python deciders that keep nothing between ticks; what differs between them is the side of a tick. They take the
market that expires soonest with time and budget left, spend what a tick may spend, and hold where nothing can be minted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pitboss.agent.decider import Judge
from pitboss.core.errors import InvariantError
from pitboss.core.intent import Decision
from pitboss.venues.predict.caps import exposure
from pitboss.venues.predict.case import cents
from pitboss.venues.predict.desk import reckoned
from pitboss.venues.predict.ladder import Rung, first_rung
from pitboss.venues.predict.observation import PredictObservation
from pitboss.venues.predict.state import NO_ACCOUNT, QUOTE, Oracle, PredictWorld, Side, contracts, usd

LEAST = QUOTE // 100
"""A spend below a cent is not worth a trade."""

REACH = (0, 20)
"""How many strikes on either side are walked: the nearest alone first, which nearly always does."""


@dataclass(frozen=True, slots=True)
class Rungs:
    """A heuristic: `side` gives the side of a tick by its number."""

    name: str
    summary: str
    side: Callable[[int], Side]

    async def decide(self, observation: PredictObservation, judge: Judge) -> Decision:
        """One mint, or nothing."""
        del judge
        intent = self.intent(observation)
        return Decision() if intent is None else Decision((intent,), intent["reasoning"])

    def intent(self, observation: PredictObservation) -> dict[str, Any] | None:
        """The mint of this tick, if there is one."""
        side, desk, at = self.side(observation.ticks), observation.desk, observation.at
        caps, spent = observation.caps, reckoned(desk, at)
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
        found = first_rung(world, market.id, side, at, count=count)
        if found is not None:
            return found
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


def define_heuristic(name: str, summary: str, side: Callable[[int], Side]) -> Rungs:
    """Define a heuristic; it is asked for as `policy/<name>`."""
    if not name.isidentifier() or name != name.lower():
        raise InvariantError(f"policy name {name!r} is not snake_case")
    return Rungs(f"policy/{name}", summary, side)
