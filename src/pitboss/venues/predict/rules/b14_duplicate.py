"""The same intent is answered once.

An intent whose key (its tick and its content) has been judged before gets the stored verdict again, and nothing new is
sent.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.predict.case import PredictCase, Scope

CODE = "B14_DUPLICATE"
SCOPE: Scope = "every"


def check(case: PredictCase) -> Finding:
    """Refuse what has been answered before."""
    return Finding("already answered at this tick") if case.repeated else PASS
