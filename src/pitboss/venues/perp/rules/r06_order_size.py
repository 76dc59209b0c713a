"""The order is neither too small nor too large.

The size rounded down to the lot, at mark, must be at least `min_order_usd` and the venue's 10 USD, at most
`max_order_usd` when set, and more than zero lots.
"""

from pitboss.core.money import text
from pitboss.core.rule_message import ExactNumber, rule_message
from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.perp.caps import min_order
from pitboss.venues.perp.case import PerpCase, Scope

CODE = "R6_ORDER_SIZE"
SCOPE: Scope = "opens"


def check(case: PerpCase) -> Finding | Margin:
    """Refuse an order outside its size bounds."""
    notional = case.notional
    if notional is None:
        return PASS
    least, most = min_order(case.caps), case.caps.max_order_usd
    remaining = notional - least if most is None else min(notional - least, most - notional)
    margin = Margin(CODE, least if most is None else f"{text(least)}..{text(most)}", notional, remaining, "usd")
    if case.size is not None and case.size <= 0:
        return Finding(rule_message("the size rounds down to zero lots"), margin)
    if notional < least:
        message = "{notional:.2f} USD after rounding to the lot is below the minimum of {least}"
        return Finding(rule_message(message, notional=notional, least=ExactNumber(least)), margin)
    if most is not None and notional > most:
        message = "{notional:.2f} USD is above max_order_usd {most}"
        return Finding(rule_message(message, notional=notional, most=ExactNumber(most)), margin)
    return margin
