"""The agent does not spend too much in all.

Everything ever spent and this spend together may not exceed `max_total_spend`; what was won back does not count.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.predict.caps import amount_margin
from pitboss.venues.predict.case import PredictCase, Scope, dusdc

CODE = "B11_SPEND_TOTAL"
SCOPE: Scope = "mints"


def check(case: PredictCase) -> Finding | Margin:
    """Refuse a mint beyond the whole budget."""
    if case.spend is None:
        return PASS
    limit, used = case.caps.max_total_spend, case.spent.total + case.spend
    margin = amount_margin(CODE, limit, used)
    if used > limit:
        return Finding(f"total spend would be {dusdc(used)}, the cap is {dusdc(limit)}", margin)
    return margin
