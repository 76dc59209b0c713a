"""The account can pay.

The spend must not exceed the account's cash.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.predict.caps import amount_margin
from pitboss.venues.predict.case import PredictCase, Scope, dusdc
from pitboss.venues.predict.state import NO_ACCOUNT

CODE = "B13_BALANCE"
SCOPE: Scope = "mints"


def check(case: PredictCase) -> Finding | Margin:
    """Refuse a mint beyond the balance."""
    if case.spend is None:
        return PASS
    cash = case.world.accounts.get(case.account_id, NO_ACCOUNT).cash
    margin = amount_margin(CODE, cash, case.spend)
    if case.spend > cash:
        return Finding(f"spend {dusdc(case.spend)} is more than the balance of {dusdc(cash)}", margin)
    return margin
