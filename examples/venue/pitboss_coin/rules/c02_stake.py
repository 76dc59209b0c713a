"""The stake is within the cap and the account can pay it.

One bet may be open at a time, and its stake may not exceed `max_stake` or the cash at hand.
"""

from decimal import Decimal
from typing import Any

from pitboss.core.rulebook import Finding
from pitboss.core.verdict import Margin

CODE = "C2_STAKE"
SCOPE = "every"


def check(case: Any) -> Finding:
    """Refuse a stake above the limit."""
    limit = min(case.max_stake, case.world.cash) if case.world.bet is None else Decimal(0)
    stake = case.bet.stake if case.bet else Decimal(0)
    margin = Margin(CODE, limit, stake, limit - stake, "USD")
    return Finding(f"stake {stake} is above {limit}" if stake > limit else "", margin)
