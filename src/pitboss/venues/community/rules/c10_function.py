"""The function is one of the contract's.

It is in the registered ABI, by its full signature or by a name that the arguments leave no doubt about, and, if the skill lists functions, one of these.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.community.case import CommunityCase, CommunityScope

CODE = "C10_FUNCTION"
SCOPE: CommunityScope = "transactions"


def check(case: CommunityCase) -> Finding:
    """Refuse a function that the ABI or the skill does not have."""
    if case.action is None or case.abi is None:
        return PASS
    if not case.abi.named(case.action.function_name or ""):
        return Finding("the contract has no function of that name or signature")
    if case.call is not None and case.caps.functions and case.call.function.signature not in case.caps.functions:
        return Finding(f"the skill does not allow {case.call.function.signature}")
    return PASS
