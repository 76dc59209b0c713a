"""Columns as whole numbers: each stands for exactly the decimal text of its price, or is not used."""

import math
from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.scaled import MAX_DECIMALS, scale, scale_column

prices = st.one_of(
    st.decimals("0.00001", "200000", places=5).map(float),
    st.decimals("0.01", "200000", places=2).map(float),
    st.floats(1e-9, 1e9),
)


@given(st.lists(prices, max_size=30))
def test_a_price_that_fits_is_its_own_decimal(values: list[float]) -> None:
    units, fits = scale(np.array(values))
    for value, unit, fit in zip(values, units.tolist(), fits.tolist(), strict=True):
        assert not fit or Decimal(unit).scaleb(-8) == Decimal(repr(value))
        assert fit or unit == 0


@given(st.lists(prices, max_size=30), st.booleans())
def test_a_whole_column_stands_for_every_one_of_its_prices(values: list[float], hole: bool) -> None:
    column = np.array([*values, math.nan] if hole else values, dtype=np.float64)
    found = scale_column(column)
    exact = [Decimal(repr(value)) for value in values]
    few = all(-int(price.normalize().as_tuple().exponent) <= MAX_DECIMALS for price in exact)
    short = all(len(price.normalize().as_tuple().digits) <= 15 for price in exact)
    if found is None:
        assert not (few and short) or max(exact) * 10**MAX_DECIMALS >= 10**15
        return
    assert [Decimal(unit).scaleb(-found.decimals) for unit in found.units.tolist()[: len(values)]] == exact
    assert found.units.tolist()[len(values) :] == [0] * hole
    assert found.largest == max(map(abs, found.units.tolist()), default=0)
