"""The same intent is judged once.

An intent whose key (its tick and its content) was judged before gets the stored verdict again; no new order is sent.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.predict.case import PredictCase, Scope

CODE = "B14_DUPLICATE"
SCOPE: Scope = "every"


def check(case: PredictCase) -> Finding:
    """Refuse an intent that was judged before."""
    return Finding("already answered at this tick") if case.repeated else PASS
