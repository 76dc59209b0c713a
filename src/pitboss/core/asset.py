"""Properties of a listed asset: lot, price precision, leverage and maintenance margin tiers."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from pitboss.core.money import ONE, ZERO, exact
from pitboss.core.noun import noun

MAX_SIGNIFICANT_FIGURES = 5
MAX_PRICE_DECIMALS = 6


@noun
class Tier:
    """From this notional on, this maximum leverage; maintenance = notional × rate − deduction."""

    from_notional: Decimal
    max_leverage: int
    rate: Decimal
    deduction: Decimal


@noun
class Asset:
    """One listed perpetual."""

    symbol: str
    size_decimals: int
    max_leverage: int
    tiers: tuple[Tier, ...]

    @property
    def lot(self) -> Decimal:
        """Smallest size step."""
        return ONE.scaleb(-self.size_decimals)

    @property
    def steepest_rate(self) -> float:
        """The highest maintenance rate of all tiers: a bound for looking ahead with floats."""
        lowest = self.max_leverage
        for tier in self.tiers:
            if tier.max_leverage < lowest:
                lowest = tier.max_leverage
        return 0.5 / lowest

    def tier(self, notional: Decimal) -> Tier:
        """The tier that a notional falls into."""
        matching = self.tiers[0]
        for tier in self.tiers[1:]:
            if notional >= tier.from_notional:
                matching = tier
        return matching

    def maintenance(self, notional: Decimal) -> Decimal:
        """Maintenance margin of a position of this notional."""
        tier = self.tier(notional)
        return notional * tier.rate - tier.deduction

    def round_price(self, price: Decimal, up: bool) -> Decimal:
        """Round to the venue's precision: 5 significant figures and 6 − size decimals; whole numbers are unchanged."""
        if price == price.to_integral_value():
            return price
        exponent = max(price.adjusted() - (MAX_SIGNIFICANT_FIGURES - 1), self.size_decimals - MAX_PRICE_DECIMALS)
        step = ONE.scaleb(min(exponent, 0))
        rounding = ROUND_CEILING if up else ROUND_FLOOR
        return (price / step).to_integral_value(rounding=rounding) * step


@exact
def make_asset(symbol: str, size_decimals: int, leverages: list[tuple[Decimal, int]]) -> Asset:
    """An asset from its (from notional, maximum leverage) ladder, lowest first; the deductions make it continuous."""
    tiers: list[Tier] = []
    for from_notional, leverage in leverages:
        rate = ONE / (2 * leverage)
        below = tiers[-1] if tiers else None
        deduction = below.deduction + from_notional * (rate - below.rate) if below else ZERO
        tiers.append(Tier(from_notional, leverage, rate, deduction))
    return Asset(symbol, size_decimals, leverages[0][1], tuple(tiers))
