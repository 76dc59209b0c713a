"""What the venue says about each asset is exact too, whatever context its numbers were worked out in."""

from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest

from pitboss.core.asset import make_asset
from pitboss.venues.perp.assets import SHIPPED


@pytest.mark.parametrize("symbol", sorted(SHIPPED))
def test_the_shipped_rates_carry_sixty_digits(symbol: str) -> None:
    for tier in SHIPPED[symbol].tiers:
        assert abs(Fraction(tier.rate) - Fraction(1, 2 * tier.max_leverage)) < Fraction(1, 10**59)


def test_an_asset_made_in_a_small_context_is_no_less_exact() -> None:
    with localcontext(Context(prec=6)):
        asset = make_asset("ETH", 4, [(Decimal(0), 25), (Decimal(100_000_000), 15)])
    assert asset == SHIPPED["ETH"]


def test_maintenance_is_continuous_where_a_tier_begins() -> None:
    for asset in SHIPPED.values():
        for below, tier in zip(asset.tiers, asset.tiers[1:], strict=False):
            edge = tier.from_notional
            before, after = edge * below.rate - below.deduction, edge * tier.rate - tier.deduction
            assert abs(before - after) < Decimal("1e-20")
