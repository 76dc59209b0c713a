"""The proposal is well formed.

Refuses any value that is not a valid proposal: an unknown key, a missing field that the action requires, a number that
is a string, a boolean or not finite, a limit order without a price.
"""

from pitboss.core.rulebook import Finding, refuse_malformed
from pitboss.venues.perp.case import PerpCase, Scope

CODE = "R1_SHAPE"
SCOPE: Scope = "every"


def check(case: PerpCase) -> Finding:
    """Refuse what could not be parsed."""
    return refuse_malformed(case)
