"""The decision refers to exactly one tradable market.

A mint needs an existing market of the skill's underlying that is activated, not expired, and not a twin with an older
price. Without `market_id` it is the open market of its `expiry`, or else the nearest open one that has its strike; the
margin of this rule then names the market and how it was chosen. A redeem needs a position in an open or settled market.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.predict.case import PredictCase, Scope, shown_strike
from pitboss.venues.predict.state import fresher_twin, status

CODE = "B2_MARKET"
SCOPE: Scope = "every"


def check(case: PredictCase) -> Finding | Margin:
    """Refuse a decision that matches no market, several markets, or one that cannot be traded."""
    decision, market = case.decision, case.market
    if decision is None:
        return PASS
    if market is None:
        return Finding(case.unclear or "no market is named")
    phase = status(market, case.now)
    if decision.action == "redeem":
        if case.position is None:
            return Finding(f"no {decision.side} position at strike {shown_strike(decision.strike)} in {market.id}")
        return Finding(f"{market.id} has expired and waits for its settlement") if phase == "pending" else PASS
    if case.caps.underlying is not None and market.underlying != case.caps.underlying:
        return Finding(f"{market.id} is not a market of {case.caps.underlying}")
    if phase != "active":
        phases = {"pending": "has expired and waits for its settlement", "settled": "is settled"}
        return Finding(f"{market.id} {phases.get(phase, 'is not activated')}")
    twin = fresher_twin(case.world, market, case.now)
    if twin:
        return Finding(f"{market.id} no longer gets prices: {twin.id} is the market of this expiry")
    return Margin(CODE, "no market_id", market.id, None, case.chosen_by) if case.chosen_by else PASS
