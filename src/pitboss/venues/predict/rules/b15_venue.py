"""The venue accepts it.

The paper venue is asked beforehand: paused trading, the vault's exposure cap, a stale price at a redeem. Elsewhere the
venue answers when the transaction is sent, and its own reason is kept under this code.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.predict.aborts import Abort
from pitboss.venues.predict.case import PredictCase, Scope

CODE = "B15_VENUE"
SCOPE: Scope = "every"


def check(case: PredictCase) -> Finding:
    """Refuse what the venue would abort."""
    found = case.admitted
    return Finding(f"{found.words} ({found.name})") if isinstance(found, Abort) else PASS
