"""The arguments are of the function's types.

Number, types and ranges are checked against the ABI, and the call is encoded here: what was checked is what is sent.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.community.case import CommunityCase, CommunityScope

CODE = "C11_ARGUMENTS"
SCOPE: CommunityScope = "transactions"


def check(case: CommunityCase) -> Finding:
    """Refuse arguments that cannot be encoded."""
    if case.abi is None or case.action is None or not case.abi.named(case.action.function_name or ""):
        return PASS
    return Finding("; ".join(case.call_problems)) if case.call_problems else PASS
