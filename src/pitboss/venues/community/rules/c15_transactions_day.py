"""Not too many transactions on one day.

At most `transactions_per_day` per UTC day. Calls of read-only functions are not counted.
"""

from decimal import Decimal

from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.community.case import CommunityCase, CommunityScope

CODE = "C15_TX_DAY"
SCOPE: CommunityScope = "transactions"


def check(case: CommunityCase) -> Finding | Margin:
    """Refuse one transaction too many."""
    if not case.is_sent:
        return PASS
    limit, used = Decimal(case.caps.transactions_per_day), Decimal(case.use.transactions + 1)
    margin = Margin(CODE, limit, used, limit - used, "transactions")
    return Finding(f"at most {limit} transactions per day", margin) if used > limit else margin
