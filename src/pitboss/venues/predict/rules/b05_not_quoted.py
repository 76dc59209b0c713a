"""The strike quotes at the moment of execution.

The strike is quoted again, for the size that would be bought. Refuses a strike off the market's grid, one whose fair
price is 0 or 1, a surface that gives no price there, and a spend too small to buy anything.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.predict.aborts import NO_QUANTITY, OFF_GRID, UNQUOTED, Abort
from pitboss.venues.predict.case import Case, Scope
from pitboss.venues.predict.state import usd
from pitboss.venues.predict.trade import Trade

CODE = "B5_NOT_QUOTED"
SCOPE: Scope = "mints"


def check(case: Case) -> Finding:
    """Refuse a strike without a quote."""
    quoted, decision, market = case.quoted, case.decision, case.market
    if isinstance(quoted, Trade) and quoted.amount == 0:
        return Finding("the spend buys nothing")  # a part of a contract so small that the venue would give it away
    if not isinstance(quoted, Abort) or decision is None or market is None:
        return PASS
    if quoted == NO_QUANTITY:
        # With nothing left to spend at this tick it is the tick's cap that refuses, further on.
        return Finding("the spend buys nothing") if case.spend or not case.asked else PASS
    if quoted not in UNQUOTED:
        return PASS
    if quoted == OFF_GRID:
        grid = market.grid
        low, high, step = (usd(units) for units in (grid.min_strike, grid.max_strike, grid.tick))
        return Finding(f"strike {decision.strike:.12g} is not on the grid: {low:f} to {high:f} in steps of {step:f}")
    return Finding(f"strike {decision.strike:.12g} does not quote: {quoted.words}")
