"""The stake is within the cap and the account can pay it.

Refuses a stake above the cap or the cash at hand, and a second bet while one is open.
"""

from decimal import Decimal

from pitboss.core.rulebook import Finding, RuleCase
from pitboss.core.verdict import Margin

CODE = "C2_STAKE"
SCOPE = "every"


def check(case: RuleCase) -> Finding:
    """Refuse a stake above the limit."""
    world = case.book.world
    limit = min(case.book.max_stake, world.cash) if world.bet is None else Decimal(0)
    stake = case.proposal.stake if case.proposal else Decimal(0)
    margin = Margin(CODE, limit, stake, limit - stake, "USD")
    return Finding(f"stake {stake} is above {limit}" if stake > limit else "", margin)
