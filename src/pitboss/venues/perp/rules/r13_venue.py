"""The venue accepts the order.

The venue itself decides when the order is sent, and its own reason is recorded. All other rules have passed by then.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.perp.case import PerpCase, Scope

CODE = "R13_VENUE"
SCOPE: Scope = "every"


def check(case: PerpCase) -> Finding:
    """Pass: the venue decides later, when the order is sent."""
    del case
    return PASS
