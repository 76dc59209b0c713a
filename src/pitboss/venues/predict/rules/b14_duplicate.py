"""The same intent is judged once.

An intent whose key (its tick and its content) was judged before gets the stored verdict again; no new order is sent.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.predict.case import PredictCase, Scope

CODE = "B14_DUPLICATE"
SCOPE: Scope = "every"


def check(case: PredictCase) -> Finding:
    """Pass: the guard answers a repeated intent with its stored verdict before any rule is checked."""
    del case
    return PASS
