"""The pause before a request is repeated: it grows, it is spread, and it respects what the server asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.backoff import backoff_s


def test_the_bound_doubles_with_each_attempt_up_to_the_longest_pause() -> None:
    pauses = [backoff_s(attempt, 1.0, 0.5, 20.0) for attempt in range(1, 9)]
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 20.0, 20.0]


def test_the_pause_is_spread_over_the_whole_bound() -> None:
    assert [backoff_s(3, random, 0.5, 20.0) for random in (0.0, 0.25, 1.0)] == [0.0, 0.5, 2.0]


def test_a_requested_wait_is_kept_with_at_most_a_second_more() -> None:
    assert backoff_s(1, 0.0, 0.5, 20.0, 7.0) == 7.0
    assert backoff_s(1, 1.0, 0.5, 20.0, 7.0) == 7.5
    assert backoff_s(5, 1.0, 0.5, 20.0, 7.0) == 8.0


@given(st.integers(1, 10_000), st.floats(0, 1), st.none() | st.floats(0, 1e6))
def test_a_pause_is_never_negative_nor_longer_than_its_bound(attempt: int, random: float, wait_s: float | None) -> None:
    pause = backoff_s(attempt, random, 0.5, 20.0, wait_s)
    assert (wait_s or 0.0) <= pause <= (20.0 if wait_s is None else wait_s + 1.0) + 1e-9
    assert pause == pytest.approx(backoff_s(attempt, random, 0.5, 20.0, wait_s))
