"""The exposure to one expiry stays within its cap.

The cost of the open contracts of the market's expiry plus this spend must not exceed `max_exposure_per_expiry`. Twin
markets of one expiry count together.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.predict.caps import amount_margin, exposure
from pitboss.venues.predict.case import PredictCase, Scope, dusdc

CODE = "B12_EXPOSURE"
SCOPE: Scope = "mints"


def check(case: PredictCase) -> Finding | Margin:
    """Refuse a mint that would exceed the exposure cap of its expiry."""
    if case.spend is None or case.market is None:
        return PASS
    limit = case.caps.max_exposure_per_expiry
    used = exposure(case.world, case.account_id, case.market.expiry_at) + case.spend
    margin = amount_margin(CODE, limit, used)
    if used > limit:
        return Finding(
            f"cost of open contracts at this expiry would be {dusdc(used)}, the cap is {dusdc(limit)}", margin
        )
    return margin
