"""The ask is within the venue's bounds.

The executed ask must lie between the lowest and highest ask the venue admits, including the market's own tighter
bounds.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.predict.case import PredictCase, Scope, cents
from pitboss.venues.predict.quote import ask_bounds
from pitboss.venues.predict.state import usd

CODE = "B6_ASK_BOUNDS"
SCOPE: Scope = "mints"


def check(case: PredictCase) -> Finding | Margin:
    """Refuse an ask that the venue would not admit."""
    trade, market = case.trade, case.market
    if trade is None or market is None:
        return PASS
    lowest, highest = ask_bounds(case.world.terms, market.ask_bounds)
    left = min(trade.price - lowest, highest - trade.price)
    margin = Margin(CODE, f"{cents(lowest)} to {cents(highest)}", usd(trade.price), usd(left), "price")
    if left < 0:
        return Finding(f"ask {cents(trade.price)} is outside {cents(lowest)} to {cents(highest)}", margin)
    return margin
