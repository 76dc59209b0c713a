"""The notional of one symbol stays within its cap.

The resulting notional of the symbol (position at mark, working opens and this one, each open at the worse of mark and
limit price) may not exceed `max_position_pct` percent of equity.
"""

from pitboss.core.money import PERCENT
from pitboss.core.rule_message import ExactNumber, Symbols, rule_message
from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.perp.caps import exposure
from pitboss.venues.perp.case import PerpCase, Scope

CODE = "R3_POSITION_CAP"
SCOPE: Scope = "opens"


def check(case: PerpCase) -> Finding | Margin:
    """Refuse an open that would exceed the symbol's cap."""
    if case.proposal is None or case.added_exposure is None:
        return PASS
    used = exposure(case.world, case.proposal.symbol) + case.added_exposure
    limit = case.caps.max_position_pct * case.equity * PERCENT
    margin = Margin(CODE, limit, used, limit - used, "usd")
    if used > limit:
        message = rule_message(
            "{symbol} would be {used:.2f} USD, the cap is {limit:.2f} ({share} % of equity)",
            symbol=Symbols((case.proposal.symbol,)),
            used=used,
            limit=limit,
            share=ExactNumber(case.caps.max_position_pct),
        )
        return Finding(message, margin)
    return margin
