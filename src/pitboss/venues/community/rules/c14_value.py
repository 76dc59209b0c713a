"""The value is within its limit.

A transaction sends at most `value_wei`, and only a payable function takes any.
"""

from decimal import Decimal

from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.community.case import CommunityCase, CommunityScope

CODE = "C14_VALUE"
SCOPE: CommunityScope = "transactions"


def check(case: CommunityCase) -> Finding | Margin:
    """Refuse too much value, or value for a function that takes none."""
    if case.action is None:
        return PASS
    limit, used = case.caps.value_wei, Decimal(case.action.value_wei)
    margin = Margin(CODE, limit, used, limit - used, "wei")
    if used and case.call is not None and case.call.function.mutability != "payable":
        return Finding(f"{case.call.function.signature} takes no value", margin)
    return Finding(f"at most {limit} wei per transaction", margin) if used > limit else margin
