"""The strike is quoted at execution.

The strike is quoted again, for the size that would be bought. Refuses a strike off the market's grid, a fair price of 0
or 1, a surface that gives no price there, and a spend too small to buy anything. The margin holds the fair price and
its distance from either end.
"""

from decimal import Decimal

from pitboss.core.money import text
from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.predict.aborts import NO_QUANTITY, OFF_GRID, UNQUOTED
from pitboss.venues.predict.case import PredictCase, Scope, shown_strike
from pitboss.venues.predict.state import usd
from pitboss.venues.predict.trade import ContractTrade

CODE = "B5_NOT_QUOTED"
SCOPE: Scope = "mints"
_ONE = Decimal(1)


def check(case: PredictCase) -> Finding | Margin:
    """Refuse a strike without a quote."""
    quoted, decision, market = case.quoted, case.decision, case.market
    if isinstance(quoted, ContractTrade) and quoted.amount == 0:
        return Finding("the spend buys nothing")  # the quantity is so small that its cost rounds to zero
    if isinstance(quoted, ContractTrade):
        fair = usd(quoted.quote.fair)
        return Margin(CODE, "0 to 1", fair, min(fair, _ONE - fair), "probability")
    if quoted is None or decision is None or market is None:
        return PASS
    if quoted == NO_QUANTITY:
        # If the tick has nothing left to spend, the tick's cap refuses instead, in a later rule.
        return Finding("the spend buys nothing") if case.spend or not case.requested else PASS
    if quoted not in UNQUOTED:
        return PASS
    if quoted == OFF_GRID:
        grid = market.grid
        low, high, step = (text(usd(units)) for units in (grid.min_strike, grid.max_strike, grid.tick))
        return Finding(f"strike {shown_strike(decision.strike)} is not on the grid: {low} to {high} in steps of {step}")
    return Finding(f"strike {shown_strike(decision.strike)} does not quote: {quoted.reason}")
