"""The day's cost stays within its limit.

Values sent and fees, each transaction's at its cap of gas and price, are at most `spend_wei_per_day` per UTC day.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.community.case import CommunityCase, CommunityScope

CODE = "C16_SPEND_DAY"
SCOPE: CommunityScope = "transactions"


def check(case: CommunityCase) -> Finding | Margin:
    """Refuse a transaction that could exceed the day's limit."""
    if not case.is_sent:
        return PASS
    limit, used = case.caps.spend_wei_per_day, case.use.spend_wei + case.spend_wei
    margin = Margin(CODE, limit, used, limit - used, "wei")
    return Finding(f"at most {limit} wei per day, fees included", margin) if used > limit else margin
