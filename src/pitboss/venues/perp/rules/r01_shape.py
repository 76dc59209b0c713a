"""The proposal is well formed.

Refuses any value that is not a valid proposal: an unknown key, a missing field that the action requires, a number that
is a string, a boolean or not finite, a limit order without a price.
"""

from pitboss.core.rule_message import rule_message
from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.perp.case import PerpCase, Scope

CODE = "R1_SHAPE"
SCOPE: Scope = "every"


def check(case: PerpCase) -> Finding:
    """Refuse a proposal that could not be parsed."""
    return Finding(rule_message("{problems}", problems="; ".join(case.problems))) if case.problems else PASS
