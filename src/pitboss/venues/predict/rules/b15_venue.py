"""The venue accepts the trade.

The paper venue is checked beforehand: paused trading, the vault's exposure cap, a stale price at a redeem. Other venues
answer when the transaction is sent; their reason is recorded under this code.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.predict.aborts import Abort
from pitboss.venues.predict.case import PredictCase, Scope

CODE = "B15_VENUE"
SCOPE: Scope = "every"


def check(case: PredictCase) -> Finding:
    """Refuse a trade that the venue would abort."""
    admitted = case.admitted
    return Finding(f"{admitted.reason} ({admitted.name})") if isinstance(admitted, Abort) else PASS
