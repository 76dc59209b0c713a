"""The agent does not spend more than its total cap.

The amount ever spent plus this spend must not exceed `max_total_spend`; winnings are not subtracted.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.predict.caps import amount_margin
from pitboss.venues.predict.case import PredictCase, Scope, dusdc

CODE = "B11_SPEND_TOTAL"
SCOPE: Scope = "mints"


def check(case: PredictCase) -> Finding | Margin:
    """Refuse a mint beyond the total budget."""
    if case.spend is None:
        return PASS
    limit, used = case.caps.max_total_spend, case.spent.total + case.spend
    margin = amount_margin(CODE, limit, used)
    if used > limit:
        return Finding(f"total spend would be {dusdc(used)}, the cap is {dusdc(limit)}", margin)
    return margin
