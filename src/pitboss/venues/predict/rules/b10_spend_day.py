"""One day does not spend more than its cap.

The amount spent on this UTC day plus this spend must not exceed `max_spend_per_day`.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.predict.caps import amount_margin
from pitboss.venues.predict.case import PredictCase, Scope, dusdc

CODE = "B10_SPEND_DAY"
SCOPE: Scope = "mints"


def check(case: PredictCase) -> Finding | Margin:
    """Refuse a mint beyond the day's budget."""
    if case.spend is None:
        return PASS
    limit, used = case.caps.max_spend_per_day, case.spent.today_at(case.now) + case.spend
    margin = amount_margin(CODE, limit, used)
    if used > limit:
        return Finding(f"this day's spend would be {dusdc(used)}, the cap is {dusdc(limit)}", margin)
    return margin
