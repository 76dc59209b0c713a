"""The server and the chain accept the action.

Nothing is known beforehand; what the server, the simulation of a call or the signer refuses is recorded under this code.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.community.case import CommunityCase, CommunityScope

CODE = "C18_VENUE"
SCOPE: CommunityScope = "every"


def check(case: CommunityCase) -> Finding:
    """Refuse nothing beforehand."""
    del case
    return PASS
