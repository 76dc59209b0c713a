"""One tick does not spend more than its cap.

A spend above what `max_spend_per_tick` leaves at this tick is reduced to it, not refused; if nothing is left, the mint
is refused.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.predict.caps import amount_margin
from pitboss.venues.predict.case import PredictCase, Scope, dusdc

CODE = "B9_SPEND_TICK"
SCOPE: Scope = "mints"


def check(case: PredictCase) -> Finding:
    """Report the reduction made in the case."""
    if case.requested is None or case.spend is None:
        return PASS
    limit = case.caps.max_spend_per_tick
    margin = amount_margin(CODE, limit, case.spent.tick_spend(case.tick_at) + case.spend)
    if case.spend >= case.requested:
        return Finding(margin=margin)
    if case.spend == 0:
        return Finding(f"nothing is left of the {dusdc(limit)} of this tick", margin)
    return Finding(margin=margin, reduced=f"spend {dusdc(case.requested)} reduced to {dusdc(case.spend)}")
