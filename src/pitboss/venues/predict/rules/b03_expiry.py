"""Enough time remains before expiry.

At least `min_seconds_to_expiry` must remain before the market expires.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.predict.caps import seconds
from pitboss.venues.predict.case import PredictCase, Scope

CODE = "B3_EXPIRY"
SCOPE: Scope = "mints"


def check(case: PredictCase) -> Finding | Margin:
    """Refuse a mint too close to the expiry."""
    if case.market is None:
        return PASS
    left, least = case.market.expiry_at - case.now, case.caps.min_ms_to_expiry
    margin = Margin(CODE, seconds(least), seconds(left), seconds(left - least), "s")
    if left < least or left <= 0:
        return Finding(f"{case.market.id} expires in {left / 1000:g} s, the least is {least / 1000:g} s", margin)
    return margin
