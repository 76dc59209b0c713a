"""The price is fresh.

The market's newest price must not be older than `max_price_age_s` (and never older than the venue accepts), and the
time between decision and execution must not exceed the same limit.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.predict.caps import seconds
from pitboss.venues.predict.case import PredictCase, Scope

CODE = "B4_STALE"
SCOPE: Scope = "mints"


def check(case: PredictCase) -> Finding | Margin:
    """Refuse a mint on an old or missing price, or too long after the decision."""
    market = case.market
    if market is None:
        return PASS
    if market.priced_at is None or market.priced_at > case.now:
        return Finding(f"{market.id} has no price yet")
    most = min(case.caps.max_price_age_ms, case.world.terms.freshness_ms)
    waited = case.now - case.tick_at
    if waited > case.caps.max_price_age_ms:
        return Finding(f"the first price after the decision came {waited / 1000:g} s later")
    age = case.now - market.priced_at
    margin = Margin(CODE, seconds(most), seconds(age), seconds(most - age), "s")
    if age > most:
        return Finding(f"the last price of {market.id} is {age / 1000:g} s old, the cap is {most / 1000:g} s", margin)
    return margin
