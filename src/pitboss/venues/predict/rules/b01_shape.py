"""The decision is well formed.

Refuses anything that is not a valid decision: an unknown key, a field missing for its action, a number given as a
string or boolean or not finite, a spend that is not above zero, a confidence outside 0 to 1.
"""

from pitboss.core.rulebook import Finding, refuse_malformed
from pitboss.venues.predict.case import PredictCase, Scope

CODE = "B1_SHAPE"
SCOPE: Scope = "every"


def check(case: PredictCase) -> Finding:
    """Refuse what could not be parsed."""
    return refuse_malformed(case)
