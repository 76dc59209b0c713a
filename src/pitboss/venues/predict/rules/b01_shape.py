"""The decision is well formed.

Refuses anything that is not a valid decision: an unknown key, a missing field for its action, a number that is a string,
a boolean or not finite, a spend that is not above zero, a confidence outside 0 and 1.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.predict.case import PredictCase, Scope

CODE = "B1_SHAPE"
SCOPE: Scope = "every"


def check(case: PredictCase) -> Finding:
    """Refuse what could not be read."""
    return Finding("; ".join(case.problems)) if case.problems else PASS
