"""`plain_ints`: the same integers as a list, as a range where they are evenly spaced."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.market import plain_ints


@given(st.sets(st.integers(-(1 << 60), 1 << 60), max_size=6))
def test_any_rising_values_are_kept(values: set[int]) -> None:
    rising = sorted(values)
    assert list(plain_ints(np.array(rising, np.int64))) == rising


@given(st.integers(-(10**15), 10**15), st.integers(1, 10**9), st.integers(2, 50))
def test_evenly_spaced_values_are_a_range(first: int, step: int, count: int) -> None:
    values = [first + step * index for index in range(count)]
    plain = plain_ints(np.array(values, np.int64))
    assert isinstance(plain, range)
    assert list(plain) == values


@given(st.integers(0, 5), st.integers(1, 5))
def test_repeated_values_are_kept(first: int, count: int) -> None:
    """Several ticks can lie between two updates."""
    values = [first] * count + [first + 1]
    assert list(plain_ints(np.array(values, np.int64))) == values
