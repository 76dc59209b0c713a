"""Fees by tier: rates of takers and makers from the volume of 14 days, and the schedule as clients read it."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.money import ZERO
from pitboss.testing.hyperliquid.account import FakeAccount
from pitboss.testing.hyperliquid.replies import venue_text

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


def user_fees(account: FakeAccount, at: Instant) -> dict[str, Any]:
    """The reply to `userFees`."""
    taker, maker = fee_rates(account, at)
    today = at // DAY_MS
    _, base_taker, base_maker = TIERS[0]
    return {
        "dailyUserVlm": [
            {
                "date": datetime.fromtimestamp(day * DAY_MS / 1000, UTC).strftime("%Y-%m-%d"),
                "userCross": venue_text(account.volume_by_day.get(day, ZERO)),
                "userAdd": "0.0",
                "exchange": "1000000000.0",
            }
            for day in range(today - WINDOW_DAYS, today + 1)
        ],
        "feeSchedule": {
            "cross": venue_text(base_taker),
            "add": venue_text(base_maker),
            "spotCross": "0.0007",
            "spotAdd": "0.0004",
            "tiers": {
                "vip": [
                    {
                        "ntlCutoff": venue_text(volume),
                        "cross": venue_text(cross),
                        "add": venue_text(add),
                        "spotCross": "0.0006",
                        "spotAdd": "0.0003",
                    }
                    for volume, cross, add in TIERS[1:]
                ],
                "mm": [
                    {"makerFractionCutoff": "0.005", "add": "-0.00001"},
                    {"makerFractionCutoff": "0.015", "add": "-0.00002"},
                    {"makerFractionCutoff": "0.03", "add": "-0.00003"},
                ],
            },
            "referralDiscount": "0.04",
            "stakingDiscountTiers": [{"bpsOfMaxSupply": "0.0", "discount": "0.0"}],
        },
        "userCrossRate": venue_text(taker),
        "userAddRate": venue_text(maker),
        "userSpotCrossRate": "0.0007",
        "userSpotAddRate": "0.0004",
        "activeReferralDiscount": "0.0",
        "trial": None,
        "feeTrialReward": "0.0",
        "nextTrialAvailableTimestamp": None,
        "stakingLink": None,
        "activeStakingDiscount": {"bpsOfMaxSupply": "0.0", "discount": "0.0"},
    }
