"""Nothing new is opened while a halt is on.

Halts: the day's loss or the drawdown reached its threshold, an operator's stop, a broken invariant. Also refuses when
equity is not positive or any number of the account is not finite.
"""

from pitboss.core.money import HUNDRED
from pitboss.core.verdict import Margin
from pitboss.venues.perp.case import Case, Finding, Scope

CODE = "R8_HALTED"
SCOPE: Scope = "opens"


def check(case: Case) -> Finding:
    """Refuse opens while halted."""
    if not case.finite:
        return Finding("a number of the account is not finite")
    world, caps = case.world, case.caps
    lost_today, lost_peak = world.day_reference - case.equity, world.peak - case.equity
    left = min(
        caps.daily_loss_halt_pct * world.day_reference / HUNDRED - lost_today,
        caps.drawdown_halt_pct * world.peak / HUNDRED - lost_peak,
    )
    limit = f"{caps.daily_loss_halt_pct:f} % a day, {caps.drawdown_halt_pct:f} % from the peak"
    margin = Margin(CODE, limit, f"{lost_today:.2f} today, {lost_peak:.2f} from the peak", left, "usd")
    if world.halts:
        return Finding(f"halted: {', '.join(world.halts)}", margin)
    if case.equity <= 0:
        return Finding("equity is not positive", margin)
    if left <= 0:
        return Finding("a loss threshold has been reached", margin)
    return Finding(margin=margin)
