"""The shipped asset table, copied from the exchange's public data; an imported `meta` file adds assets and replaces none."""

from collections.abc import Mapping
from decimal import Decimal

from pitboss.core.asset import Asset, make_asset
from pitboss.core.money import ZERO

_MILLION = Decimal(1_000_000)
_SHIPPED = (
    ("BTC", 5, 40, (150, 20)),
    ("ETH", 4, 25, (100, 15)),
    ("SOL", 2, 20, (70, 10)),
    ("XRP", 0, 20, (40, 10)),
    ("DOGE", 0, 10, None),
    ("BNB", 3, 10, None),
    ("AVAX", 2, 10, None),
    ("HYPE", 2, 10, None),
    ("LINK", 1, 10, None),
    ("SUI", 1, 10, None),
    ("LTC", 2, 10, None),
    ("ARB", 1, 10, None),
    ("ADA", 0, 10, None),
)
SHIPPED: Mapping[str, Asset] = {
    symbol: make_asset(
        symbol,
        decimals,
        [(ZERO, leverage)] + ([(second[0] * _MILLION, second[1])] if second else []),
    )
    for symbol, decimals, leverage, second in _SHIPPED
}
