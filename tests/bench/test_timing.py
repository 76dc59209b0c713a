"""Alternating sides, medians, percentiles."""

from hypothesis import given
from hypothesis import strategies as st

from pitboss_dev.bench.timing import each_call, interleave, per_call, percentile, seconds


def test_sides_take_turns_after_one_warm_up_each() -> None:
    order: list[str] = []

    def side(name: str):
        def run() -> float:
            order.append(name)
            return 1.0

        return run

    interleave({"a": side("a"), "b": side("b")}, 2)
    assert order == ["a", "b", "a", "b", "a", "b"]


def test_the_result_is_the_median_and_the_warm_up_does_not_count() -> None:
    values = iter([100.0, 3.0, 1.0, 2.0])
    assert interleave({"a": lambda: next(values)}, 3) == {"a": 2.0}


def test_a_side_is_timed_at_least_once() -> None:
    assert interleave({"a": lambda: 5.0}, 0, warm=False) == {"a": 5.0}


def test_times_are_never_negative_and_every_call_is_made() -> None:
    calls: list[int] = []
    assert seconds(lambda: calls.append(1)) >= 0
    assert per_call(lambda: calls.append(1), 3) >= 0
    assert len(each_call(lambda: calls.append(1), 4)) == 4
    assert len(calls) == 8


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300), st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]))
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(values: list[float], share: float) -> None:
    result = percentile(values, share)
    assert result in values
    assert sum(value <= result for value in values) >= share * len(values)
