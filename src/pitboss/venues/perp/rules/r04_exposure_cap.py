"""The notional of all symbols together stays within its cap.

The notional of every symbol, counted as for the position cap, may not exceed `max_total_exposure_pct` percent of equity
in total.
"""

from pitboss.core.money import PERCENT
from pitboss.core.rule_message import rule_message
from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.perp.caps import total_exposure
from pitboss.venues.perp.case import PerpCase, Scope

CODE = "R4_EXPOSURE_CAP"
SCOPE: Scope = "opens"


def check(case: PerpCase) -> Finding | Margin:
    """Refuse an open that would exceed the account's cap."""
    if case.added_exposure is None:
        return PASS
    used = total_exposure(case.world) + case.added_exposure
    limit = case.caps.max_total_exposure_pct * case.equity * PERCENT
    margin = Margin(CODE, limit, used, limit - used, "usd")
    if used > limit:
        message = "total exposure would be {used:.2f} USD, the cap is {limit:.2f}"
        return Finding(rule_message(message, used=used, limit=limit), margin)
    return margin
