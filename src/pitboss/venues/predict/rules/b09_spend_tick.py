"""One tick does not spend too much.

A spend above what `max_spend_per_tick` leaves at this tick is reduced to it, not refused; where nothing is left there
is nothing to reduce to.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.predict.caps import amount_margin
from pitboss.venues.predict.case import PredictCase, Scope, dusdc

CODE = "B9_SPEND_TICK"
SCOPE: Scope = "mints"


def check(case: PredictCase) -> Finding:
    """Tell the cut that the case has made."""
    if case.asked is None or case.spend is None:
        return PASS
    limit = case.caps.max_spend_per_tick
    margin = amount_margin(CODE, limit, case.spent.tick_spend(case.tick_at) + case.spend)
    if case.spend >= case.asked:
        return Finding(margin=margin)
    if case.spend == 0:
        return Finding(f"nothing is left of the {dusdc(limit)} of this tick", margin)
    return Finding(margin=margin, reduced=f"spend {dusdc(case.asked)} reduced to {dusdc(case.spend)}")
