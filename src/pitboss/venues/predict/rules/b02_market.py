"""The decision is about one market that is open.

A mint needs a market that is known, of the skill's underlying, activated, not expired and not the dead twin of another;
without `market_id` exactly one such market must be open. A redeem needs a position, in a market that is open or settled.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.predict.case import PredictCase, Scope, shown_strike
from pitboss.venues.predict.state import fresher_twin, status

CODE = "B2_MARKET"
SCOPE: Scope = "every"


def check(case: PredictCase) -> Finding:
    """Refuse what names no market, several, or one that cannot be traded."""
    decision, market = case.decision, case.market
    if decision is None:
        return PASS
    if market is None:
        return Finding(case.unclear or "no market is named")
    phase = status(market, case.now)
    if decision.action == "redeem":
        if case.held is None:
            return Finding(f"no {decision.side} position at strike {shown_strike(decision.strike)} in {market.id}")
        return Finding(f"{market.id} has expired and waits for its settlement") if phase == "pending" else PASS
    if case.caps.underlying is not None and market.underlying != case.caps.underlying:
        return Finding(f"{market.id} is not a market of {case.caps.underlying}")
    if phase != "active":
        words = {"pending": "has expired and waits for its settlement", "settled": "is settled"}
        return Finding(f"{market.id} {words.get(phase, 'is not activated')}")
    twin = fresher_twin(case.world, market, case.now)
    return Finding(f"{market.id} no longer gets prices: {twin.id} is the market of this expiry") if twin else PASS
