"""All symbols together do not grow too large.

The notional of every symbol, counted as for the position cap, may not exceed `max_total_exposure_pct` percent of equity.
"""

from decimal import Decimal

from pitboss.core.money import ZERO
from pitboss.core.verdict import Margin
from pitboss.venues.perp.caps import exposed_symbols, exposure
from pitboss.venues.perp.case import PASS, Case, Finding, Scope

CODE = "R4_EXPOSURE_CAP"
SCOPE: Scope = "opens"


def check(case: Case) -> Finding:
    """Refuse an open that would make the account too large."""
    if case.size is None or case.mark is None:
        return PASS
    used = sum((exposure(case.world, symbol) for symbol in exposed_symbols(case.world)), ZERO)
    used += case.size * max(case.mark, case.limit or Decimal(0))
    limit = (case.caps.max_total_exposure_pct * case.equity).scaleb(-2)
    margin = Margin(CODE, limit, used, limit - used, "usd")
    if used > limit:
        return Finding(f"total exposure would be {used:.2f} USD, the cap is {limit:.2f}", margin)
    return Finding(margin=margin)
