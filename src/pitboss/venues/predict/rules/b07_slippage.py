"""The price has not moved too far since the model saw it.

The executed ask may be at most `max_slippage_bps` above the ask of the same contract that the model was shown at this
tick. An ask of an earlier tick does not count, so the rule does not apply to a contract that was not shown at this one.
"""

from decimal import Decimal

from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.predict.case import PredictCase, Scope, cents

CODE = "B7_SLIPPAGE"
SCOPE: Scope = "mints"


def check(case: PredictCase) -> Finding | Margin:
    """Refuse an ask too far above the one shown at the tick."""
    trade = case.trade
    shown = None if trade is None else case.spent.shown.get(trade.contract.key)
    if trade is None or shown is None or shown <= 0:
        return PASS
    most = Decimal(case.caps.max_slippage_bps)
    moved = Decimal((trade.price - shown) * 10_000) / shown
    margin = Margin(CODE, most, moved, most - moved, "bps")
    if moved > most:
        return Finding(f"ask {cents(trade.price)} is {moved:.0f} bps above the {cents(shown)} shown to you", margin)
    return margin
