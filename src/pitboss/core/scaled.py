"""Prices as whole numbers, so that sums and comparisons of columns are exact and never depend on later bars.

Prices come as decimals with few digits; counted in small enough parts they are integers, and a tie is a tie. A price
that does not fit is marked, and whoever needs it takes `Decimal` for that bar: same answer, only slower.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pitboss.core.market import Floats, Ints

UNIT = 1e8
_LIMIT = 1e15
"""Fifteen digits are a float's own: only one decimal that short is nearest to it. Fifty of them times 20 fit in 63 bits."""

MOST_DECIMALS = 10


class Scaled(NamedTuple):
    """`units` holds the price in hundred-millionths where `exact`, else 0."""

    units: Ints
    exact: NDArray[np.bool_]


class Whole(NamedTuple):
    """A column of numbers that all have so few decimals, as whole numbers; 0 where there is none."""

    decimals: int
    units: Ints
    largest: int


def scale(values: Floats, unit: float = UNIT) -> Scaled:
    """Each price on its own: whether one fits has nothing to do with the others."""
    with np.errstate(all="ignore"):
        units = np.rint(values * unit)
        # Division is correctly rounded, so it gives the price back only if these are the price's own digits.
        fits = (np.abs(units) < _LIMIT) & (units / unit == values)
    return Scaled(np.where(fits, units, 0.0).astype(np.int64), fits)


def whole(values: Floats) -> Whole | None:
    """A column with as few decimals as all its numbers have, if there is such a number of decimals; NaN counts as 0."""
    known = np.where(np.isnan(values), 0.0, values)
    for decimals in range(MOST_DECIMALS + 1):
        units, fits = scale(known, 10.0**decimals)
        if fits.all():
            return Whole(decimals, units, int(np.abs(units).max(initial=0)))
    return None
