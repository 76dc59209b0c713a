"""Opens stay within the hourly rate.

At most `max_orders_per_hour` opens may be accepted in any sliding hour.
"""

from decimal import Decimal

from pitboss.core.rule_message import rule_message
from pitboss.core.rulebook import Finding
from pitboss.core.verdict import Margin
from pitboss.venues.perp.caps import recent_opens
from pitboss.venues.perp.case import PerpCase, Scope

CODE = "R7_ORDER_RATE"
SCOPE: Scope = "opens"


def check(case: PerpCase) -> Finding | Margin:
    """Refuse an open beyond the hourly rate."""
    used, most = recent_opens(case.accepted_opens, case.now), case.caps.max_orders_per_hour
    margin = Margin(CODE, Decimal(most), Decimal(used), Decimal(most - used - 1), "opens/h")
    if used >= most:
        message = "{used} opens accepted in the last hour, the cap is {most}"
        return Finding(rule_message(message, used=used, most=most), margin)
    return margin
