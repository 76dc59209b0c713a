"""Converts the risk section of a skill into the exact caps that the rules use."""

from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.skill import PerpSkill


def caps_of(skill: PerpSkill) -> PerpCaps:
    """Return the caps of a skill, with defaults resolved."""
    risk = skill.risk
    return PerpCaps(
        max_position_pct=risk.max_position_pct,
        max_total_exposure_pct=risk.max_total_exposure_pct,
        max_leverage=risk.max_leverage,
        min_order_usd=risk.min_order_usd,
        max_order_usd=risk.max_order_usd,
        max_orders_per_hour=risk.max_orders_per_hour,
        daily_loss_halt_pct=risk.daily_loss_halt_pct,
        drawdown_halt_pct=risk.drawdown_halt_pct,
        price_band_pct=risk.price_band_pct,
        max_data_age_ms=skill.max_data_age_ms,
        symbols=skill.context.sorted_symbols,
        allowed_symbols=tuple(sorted(risk.allowed_symbols)),
    )
