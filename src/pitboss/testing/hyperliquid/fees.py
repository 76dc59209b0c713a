"""Fees by tier: rates of takers and makers from the volume of 14 days."""

from decimal import Decimal

from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.money import ZERO
from pitboss.testing.hyperliquid.account import FakeAccount

MILLION = 1_000_000
TIERS = (
    (Decimal(0), Decimal("0.00045"), Decimal("0.00015")),
    (Decimal(5 * MILLION), Decimal("0.0004"), Decimal("0.00012")),
    (Decimal(25 * MILLION), Decimal("0.00035"), Decimal("0.00008")),
    (Decimal(100 * MILLION), Decimal("0.0003"), Decimal("0.00004")),
    (Decimal(500 * MILLION), Decimal("0.00028"), ZERO),
    (Decimal(2_000 * MILLION), Decimal("0.00026"), ZERO),
    (Decimal(7_000 * MILLION), Decimal("0.00024"), ZERO),
)
"""Volume above which a tier holds, taker rate, maker rate."""
WINDOW_DAYS = 14


def fee_rates(account: FakeAccount, at: Instant) -> tuple[Decimal, Decimal]:
    """Taker and maker rate of an account: by the 14 days before today."""
    today = at // DAY_MS
    volume = sum((account.volume_by_day.get(day, ZERO) for day in range(today - WINDOW_DAYS, today)), ZERO)
    _, taker, maker = next(tier for tier in reversed(TIERS) if not tier[0] or volume > tier[0])
    return taker, maker
