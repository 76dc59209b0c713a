"""A person approves large transactions.

A transaction that sends more than `approval_above_wei` is refused until a person has approved it.
"""

from decimal import Decimal

from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.community.case import CommunityCase, CommunityScope

CODE = "C17_APPROVAL"
SCOPE: CommunityScope = "transactions"


def check(case: CommunityCase) -> Finding | Margin:
    """Refuse a large transaction that nobody has approved."""
    limit = case.caps.approval_above_wei
    if case.action is None or limit is None or not case.is_sent:
        return PASS
    used = Decimal(case.action.value_wei)
    margin = Margin(CODE, limit, used, limit - used, "wei")
    if used <= limit or case.approval_key in case.world.approved:
        return margin
    return Finding(f"a person has to approve it: {case.approval_key[:16]}", margin)
