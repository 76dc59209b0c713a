"""The venue accepts it.

Judged by the venue itself when the order is sent; its own reason is kept. The engine's other rules have passed by then.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.perp.case import PerpCase, Scope

CODE = "R13_VENUE"
SCOPE: Scope = "every"


def check(case: PerpCase) -> Finding:
    """No objection before the venue has been asked."""
    del case
    return PASS
