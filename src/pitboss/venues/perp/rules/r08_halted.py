"""No position is opened while a halt is active.

Halts: the day's loss or the drawdown reached its threshold, an operator's stop, a broken invariant. Also refuses when
equity is not positive or any number of the account is not finite.
"""

from pitboss.core.money import PERCENT
from pitboss.core.rule_message import rule_message
from pitboss.core.rulebook import Finding
from pitboss.core.verdict import Margin
from pitboss.venues.perp.case import PerpCase, Scope
from pitboss.venues.perp.state import day_reference_at, halts_at

CODE = "R8_HALTED"
SCOPE: Scope = "opens"


def check(case: PerpCase) -> Finding | Margin:
    """Refuse opens while a halt is active."""
    if not case.finite:
        return Finding(rule_message("a number of the account is missing or not finite"))
    world, caps = case.world, case.caps
    day_start, halts = day_reference_at(world, case.now), halts_at(world, case.now)
    lost_today, lost_peak = day_start - case.equity, world.peak - case.equity
    day_limit = caps.daily_loss_halt_pct * day_start * PERCENT
    peak_limit = caps.drawdown_halt_pct * world.peak * PERCENT
    left_today, left_peak = day_limit - lost_today, peak_limit - lost_peak
    if left_today <= left_peak:
        remaining, margin = left_today, Margin(CODE, day_limit, lost_today, left_today, "usd")
    else:
        remaining, margin = left_peak, Margin(CODE, peak_limit, lost_peak, left_peak, "usd")
    if halts:
        return Finding(rule_message("halted: {halts}", halts=", ".join(halts)), margin)
    if case.equity <= 0:
        return Finding(rule_message("equity is not positive"), margin)
    if remaining <= 0:
        return Finding(rule_message("a loss threshold has been reached"), margin)
    return margin
