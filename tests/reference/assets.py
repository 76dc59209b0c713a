"""Assets of the reference: what is listed, how sizes and prices are rounded, what maintenance a notional needs.

Bottom of the reference package. Not a catalogue to extend: other assets are handed to `run(assets=...)`.
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import cache

MILLION = 1_000_000


@dataclass(frozen=True)
class Asset:
    size_decimals: int
    max_leverage: int
    # (notional from which the tier applies, its maximum leverage), without the first tier (0, max_leverage)
    further_tiers: tuple[tuple[int, int], ...] = ()


# §6 "Assets shipped (size decimals; maximum leverage; second tier from notional → leverage)"
SHIPPED = {
    "BTC": Asset(5, 40, ((150 * MILLION, 20),)),
    "ETH": Asset(4, 25, ((100 * MILLION, 15),)),
    "SOL": Asset(2, 20, ((70 * MILLION, 10),)),
    "XRP": Asset(0, 20, ((40 * MILLION, 10),)),
    "DOGE": Asset(0, 10),
    "BNB": Asset(3, 10),
    "AVAX": Asset(2, 10),
    "HYPE": Asset(2, 10),
    "LINK": Asset(1, 10),
    "SUI": Asset(1, 10),
    "LTC": Asset(2, 10),
    "ARB": Asset(1, 10),
    "ADA": Asset(0, 10),
}


def lot(asset: Asset) -> Decimal:
    """One lot: the smallest step of a size (HYPERLIQUID §3 "Size: ≤ szDecimals decimals")."""
    return Decimal(1).scaleb(-asset.size_decimals)


def round_size_down(asset: Asset, size: Decimal) -> Decimal:
    """§5 "Sizes round down to the lot". The page is silent on negative sizes: they are cut toward zero."""
    lots = size.scaleb(asset.size_decimals).to_integral_value(rounding=ROUND_DOWN)
    return lots.scaleb(-asset.size_decimals)


def _round_price(asset: Asset, price: Decimal, rounding: str) -> Decimal:
    """HYPERLIQUID §3: ≤ 5 significant figures and ≤ (6 − szDecimals) decimals; integers always allowed."""
    if price == 0:
        return Decimal(0)
    decimals_by_figures = 4 - price.adjusted()  # adjusted() is the exponent of the first significant figure
    decimals_by_asset = 6 - asset.size_decimals
    decimals = max(0, min(decimals_by_figures, decimals_by_asset))
    steps = price.scaleb(decimals).to_integral_value(rounding=rounding)
    return steps.scaleb(-decimals)


def round_price_down(asset: Asset, price: Decimal) -> Decimal:
    return _round_price(asset, price, ROUND_FLOOR)


def round_price_up(asset: Asset, price: Decimal) -> Decimal:
    return _round_price(asset, price, ROUND_CEILING)


def round_limit(asset: Asset, side: int, price: Decimal) -> Decimal:
    """§5 "buy limit down, sell limit up"."""
    if side > 0:
        return round_price_down(asset, price)
    return round_price_up(asset, price)


def round_toward_mark(asset: Asset, price: Decimal, mark: Decimal) -> Decimal:
    """§5 "stop and take-profit toward mark". Silent when price = mark: rounded down."""
    if price < mark:
        return round_price_up(asset, price)
    return round_price_down(asset, price)


@cache
def tiers(asset: Asset) -> list[tuple[Fraction, Fraction, Fraction]]:
    """(lower bound, rate, deduction) of every tier, HYPERLIQUID §7:
    "rate(tier n) = 1/(2·maxLeverage_n); deduction_0 = 0,
    deduction_n = deduction_{n−1} + lowerBound_n·(rate_n − rate_{n−1})".
    """
    result = [(Fraction(0), Fraction(1, 2 * asset.max_leverage), Fraction(0))]
    for lower_bound, leverage in asset.further_tiers:
        _, previous_rate, previous_deduction = result[-1]
        rate = Fraction(1, 2 * leverage)
        deduction = previous_deduction + Fraction(lower_bound) * (rate - previous_rate)
        result.append((Fraction(lower_bound), rate, deduction))
    return result


def maintenance(asset: Asset, notional: Fraction) -> Fraction:
    """§6 "Maintenance per position = notional × rate − deduction" of the tier the notional is in."""
    needed = Fraction(0)
    for lower_bound, rate, deduction in tiers(asset):
        if notional >= lower_bound:
            needed = notional * rate - deduction
    return needed
