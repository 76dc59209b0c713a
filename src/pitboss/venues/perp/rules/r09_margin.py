"""Free margin covers the order.

Free margin now must cover the notional divided by the requested leverage, plus the taker fee.
"""

from pitboss.core.money import ONE
from pitboss.core.rule_message import rule_message
from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.perp.case import PerpCase, Scope
from pitboss.venues.perp.state import margin_used

CODE = "R9_MARGIN"
SCOPE: Scope = "opens"


def check(case: PerpCase) -> Finding | Margin:
    """Refuse an open that exceeds the free margin."""
    notional = case.notional
    if case.proposal is None or notional is None:
        return PASS
    leverage = case.proposal.leverage or ONE
    need = notional / leverage + case.terms.taker * notional
    free = case.equity - margin_used(case.world)
    margin = Margin(CODE, free, need, free - need, "usd")
    if free < need:
        message = "needs {need:.2f} USD of margin, {free:.2f} is free"
        return Finding(rule_message(message, need=need, free=free), margin)
    return margin
