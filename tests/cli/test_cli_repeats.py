"""The summary of repeated runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.cli.repeat_summary import summary
from pitboss.sim.statistics.student import student_quantile


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [
        (1, 12.706205),
        (2, 4.302653),
        (3, 3.182446),
        (4, 2.776445),
        (5, 2.570582),
        (9, 2.262157),
        (30, 2.042272),
        (101, 1.983731),
    ],
)
def test_the_t_quantile_agrees_with_the_printed_tables(freedom: int, expected: float) -> None:
    assert student_quantile(freedom) == pytest.approx(expected, abs=2e-6)


def test_one_run_has_a_mean_and_no_interval() -> None:
    assert summary([{"sharpe": 1.5, "name": "x"}]) == {"sharpe": {"mean": 1.5, "lo": None, "hi": None}}


def test_only_numbers_are_summarised_and_runs_without_one_are_left_out_of_its_mean() -> None:
    found = summary([{"a": 1, "b": None, "c": [1, 2], "d": True}, {"a": 3, "b": 4.0, "c": None, "d": False}])
    assert set(found) == {"a", "b"}
    assert found["a"]["mean"] == 2
    assert found["b"] == {"mean": 4.0, "lo": None, "hi": None}


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12))
def test_the_interval_surrounds_the_mean_and_closes_when_all_runs_agree(values: list[float]) -> None:
    spread = summary([{"x": value} for value in values])["x"]
    assert spread["lo"] is not None
    assert spread["hi"] is not None
    assert spread["lo"] <= spread["mean"] <= spread["hi"]
    if len(set(values)) == 1:
        assert spread["hi"] - spread["lo"] == pytest.approx(0, abs=1e-6)
