"""The model's own probability exceeds the cost by the minimum edge.

With `min_edge` set, the confidence minus the executed ask must be at least `min_edge`; a mint without a confidence is
refused.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.predict.case import PredictCase, Scope, cents
from pitboss.venues.predict.state import usd

CODE = "B8_EDGE"
SCOPE: Scope = "mints"


def check(case: PredictCase) -> Finding | Margin:
    """Refuse a mint without sufficient edge by the model's own probability."""
    least, trade = case.caps.min_edge, case.trade
    if least is None or case.decision is None:
        return PASS
    confidence = case.decision.confidence
    if confidence is None:
        return Finding("min_edge is set, so a mint needs a confidence")
    if trade is None:
        return PASS
    edge = confidence - usd(trade.price)
    margin = Margin(CODE, usd(least), edge, edge - usd(least), "probability")
    if edge < usd(least):
        return Finding(f"confidence {confidence:.4f} less ask {cents(trade.price)} is below {cents(least)}", margin)
    return margin
