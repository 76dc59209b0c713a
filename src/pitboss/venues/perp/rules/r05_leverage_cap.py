"""Leverage is a whole number within the caps.

The requested leverage (1 when left out) must be an integer, at least 1, at most `max_leverage` and at most the asset's
own maximum.
"""

from decimal import Decimal

from pitboss.core.money import ONE
from pitboss.core.rule_message import ExactNumber, rule_message
from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.perp.case import PerpCase, Scope

CODE = "R5_LEVERAGE_CAP"
SCOPE: Scope = "opens"


def check(case: PerpCase) -> Finding | Margin:
    """Refuse leverage outside the caps."""
    if case.proposal is None or case.asset is None:
        return PASS
    leverage = ONE if case.proposal.leverage is None else case.proposal.leverage
    cap = min(case.caps.max_leverage, Decimal(case.asset.max_leverage))
    margin = Margin(CODE, cap, leverage, cap - leverage, "x")
    if leverage != leverage.to_integral_value():
        return Finding(
            rule_message("leverage {leverage} is not a whole number", leverage=ExactNumber(leverage)), margin
        )
    if leverage < 1:
        return Finding(rule_message("leverage {leverage} is below 1", leverage=ExactNumber(leverage)), margin)
    if leverage > cap:
        message = "leverage {leverage} is above the cap of {cap}"
        return Finding(rule_message(message, leverage=ExactNumber(leverage), cap=ExactNumber(cap)), margin)
    return margin
