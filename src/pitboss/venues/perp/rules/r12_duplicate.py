"""The same intent is judged only once.

An intent whose key (its tick and its content) has been judged before gets the stored verdict again, and nothing new is
sent.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.perp.case import PerpCase, Scope

CODE = "R12_DUPLICATE"
SCOPE: Scope = "every"


def check(case: PerpCase) -> Finding:
    """Pass: the guard answers a repeated intent with its stored verdict before any rule is checked."""
    del case
    return PASS
