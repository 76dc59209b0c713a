"""What a study varies: reading it, all of it, some of it at random."""

from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.errors import UserError
from pitboss.sim.study.axis import Axis, NumberRange, parse_axes, parse_axis
from pitboss.sim.study.grid import grid
from pitboss.sim.study.random import point_count, random_points

WORDS = st.from_regex(r"[a-z]{1,6}", fullmatch=True)
VALUES = st.lists(WORDS, min_size=1, max_size=5, unique=True)
SPANS = st.tuples(st.integers(-50, 50), st.integers(1, 60), st.none() | st.integers(1, 9)).map(
    lambda one: NumberRange(Decimal(one[0]), Decimal(one[0] + one[1]), None if one[2] is None else Decimal(one[2]))
)
AXES = st.lists(
    st.builds(Axis, WORDS, st.lists(WORDS | SPANS, min_size=1, max_size=4, unique=True).map(tuple)),
    min_size=1,
    max_size=3,
    unique_by=lambda axis: axis.name,
)


def test_a_list_of_values_keeps_its_text():
    assert parse_axis("risk.max_leverage=1, 2,5").grid_values() == ("1", "2", "5")
    assert parse_axis("model=groq/a,policy/hold").grid_values() == ("groq/a", "policy/hold")


def test_commas_inside_brackets_do_not_separate_values():
    assert parse_axis("context.symbols=[BTC,ETH],[SOL]").grid_values() == ("[BTC,ETH]", "[SOL]")


def test_a_range_with_a_step_is_every_multiple():
    assert parse_axis("context.bars_lookback=50..200:50").grid_values() == ("50", "100", "150", "200")
    assert parse_axis("x=0.5..1.2:0.25").grid_values() == ("0.5", "0.75", "1", "1.25")[:3]


def test_a_range_of_seeds_needs_no_step():
    assert parse_axis("seed=3..6").grid_values() == ("3", "4", "5", "6")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("risk.max_leverage", "the field or its values are missing"),
        ("=1,2", "the field or its values are missing"),
        ("a=1,,2", "a value is empty"),
        ("a=", "a value is empty"),
        ("a=5..1", "ends before it begins"),
        ("a=1..5:0", "a step must be above zero"),
    ],
)
def test_an_invalid_axis_is_refused_with_its_reason(spec: str, reason: str):
    with pytest.raises(UserError, match=reason):
        parse_axis(spec)


def test_a_grid_of_a_range_without_a_step_is_refused():
    with pytest.raises(UserError, match="a grid needs a step") as caught:
        grid([parse_axis("context.bars_lookback=50..200")])
    assert "50..200:37.5" in caught.value.hint


def test_a_field_may_be_varied_once():
    with pytest.raises(UserError, match="given twice"):
        parse_axes(["a=1", "b=2", "a=3"])


def test_a_grid_that_is_too_large_is_refused():
    with pytest.raises(UserError, match="too large"):
        grid([parse_axis(f"{name}=1..1000:1") for name in "ab"])


@settings(max_examples=20)
@given(AXES)
def test_the_spec_of_an_axis_parses_to_the_same_axis(axes: list[Axis]):
    assert parse_axes(axis.spec for axis in axes) == tuple(axes)


@given(st.dictionaries(WORDS, VALUES, min_size=1, max_size=3))
def test_a_grid_is_every_combination_once(axes: dict[str, list[str]]):
    found = grid([Axis(name, tuple(values)) for name, values in axes.items()])
    assert [tuple(point.values()) for point in found] == list(product(*axes.values()))
    assert all(list(point) == list(axes) for point in found)


@settings(max_examples=20)
@given(AXES, st.integers(1, 30), st.integers(0, 2**62))
def test_random_points_are_within_the_axes_distinct_and_reproducible(axes: list[Axis], count: int, seed: int):
    found = random_points(axes, count, seed)
    assert found == random_points(axes, count, seed)
    assert len({tuple(point.values()) for point in found}) == len(found) <= count
    for axis in axes:
        for point in found:
            assert any(_within(point[axis.name], part) for part in axis.parts)
    if point_count(axes) >= 20 * count:
        assert len(found) == count


@settings(max_examples=20)
@given(AXES, st.integers(1, 10), st.integers(0, 99))
def test_a_larger_sample_begins_with_the_smaller_one(axes: list[Axis], count: int, seed: int):
    assert random_points(axes, count + 5, seed)[: len(random_points(axes, count, seed))] == random_points(
        axes, count, seed
    )


def test_all_points_of_a_small_space_are_drawn():
    axes = [parse_axis("a=1..4:1"), parse_axis("b=x,y")]
    assert {tuple(point.values()) for point in random_points(axes, 100)} == set(product("1234", "xy"))


def test_fractions_are_drawn_over_the_entire_range():
    found = [Decimal(point["a"]) for point in random_points([parse_axis("a=0.1..0.9")], 400, 1)]
    assert min(found) >= Decimal("0.1")
    assert max(found) <= Decimal("0.9")
    assert abs(sum(found, Decimal(0)) / len(found) - Decimal("0.5")) < Decimal("0.05")


def _within(value: str, part: str | NumberRange) -> bool:
    if isinstance(part, str):
        return value == part
    try:
        number = Decimal(value)
    except ArithmeticError:
        return False
    fits = part.step is None or (number - part.low) % part.step == 0
    return part.low <= number <= part.high and fits
