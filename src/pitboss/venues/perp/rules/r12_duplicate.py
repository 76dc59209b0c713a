"""The same intent is judged only once.

An intent whose key (its tick and its content) has been judged before gets the stored verdict again, and nothing new is
sent.
"""

from pitboss.core.rule_message import rule_message
from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.perp.case import PerpCase, Scope

CODE = "R12_DUPLICATE"
SCOPE: Scope = "every"


def check(case: PerpCase) -> Finding:
    """Refuse an intent that has a stored verdict."""
    return Finding(rule_message("already answered at this tick")) if case.stored is not None else PASS
