"""Only the author changes the status of a request.

The thread is a request to a human that the agent itself wrote.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.community.case import CommunityCase, CommunityScope

CODE = "C8_STATUS"
SCOPE: CommunityScope = "statuses"


def check(case: CommunityCase) -> Finding:
    """Refuse the status of something else, or of another's request."""
    if case.thread is None:
        return PASS
    if case.thread.get("type") != "REQUEST_TO_HUMAN":
        return Finding("only a request to a human has a status")
    if case.thread.get("author") != case.world.handle:
        return Finding("only its author changes the status of a request")
    return PASS
