"""Closes as whole numbers, so that sums and comparisons of prices are exact and never depend on later bars.

Prices come as decimals with few digits; counted in hundred-millionths they are integers, and a tie is a tie. A price
that does not fit (more decimals, or ninety million and above) is marked, and whoever needs it takes `Decimal` for that
bar: same answer, only slower.
"""

from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pitboss.core.market import Floats, Ints
from pitboss.core.money import decimal

UNIT = 1e8
_LIMIT = float(2**53)
"""Whole floats are exact below this; windows of 50 of them times 20 still fit in 63 bits."""


class Scaled(NamedTuple):
    """`units` holds the price in hundred-millionths where `exact`, else 0."""

    units: Ints
    exact: NDArray[np.bool_]


def scale(close: Floats) -> Scaled:
    """Each price on its own: whether one fits has nothing to do with the others."""
    with np.errstate(all="ignore"):
        units = np.rint(close * UNIT)
        # Division is correctly rounded, so it gives the price back only if these are the price's own digits.
        fits = (np.abs(units) < _LIMIT) & (units / UNIT == close)
    return Scaled(np.where(fits, units, 0.0).astype(np.int64), fits)


def decimals(values: Floats) -> list[Decimal]:
    """The same prices by their shortest decimal text."""
    return [decimal(value) for value in values.tolist()]
