"""The action is well formed.

Refuses anything that is not a valid action: an unknown action or field, a required field missing, a value of another type.
"""

from pitboss.core.rulebook import Finding, refuse_malformed
from pitboss.venues.community.case import CommunityCase, CommunityScope

CODE = "C1_SHAPE"
SCOPE: CommunityScope = "every"


def check(case: CommunityCase) -> Finding:
    """Refuse what could not be parsed."""
    return refuse_malformed(case)
