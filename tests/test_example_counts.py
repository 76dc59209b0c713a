"""How many examples properties are tried with, in quick runs and long ones."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from example_counts import FEWEST, SETTINGS, scale


class Counter(RuleBasedStateMachine):
    @rule()
    def count(self) -> None:
        pass


@pytest.mark.parametrize(
    ("named", "factor", "scaled"), [(100, 0.4, 40), (100, 20, 2_000), (8, 0.4, FEWEST), (4, 0.4, 4)]
)
def test_a_property_is_tried_with_the_examples_it_names_times_the_factor(
    request: pytest.FixtureRequest, named: int, factor: float, scaled: int
) -> None:
    @settings(max_examples=named)
    @given(st.none())
    def holds(nothing: None) -> None:
        del nothing

    item = pytest.Function.from_parent(request.node.parent, name="holds", callobj=holds)
    scale([item, item], factor)  # as if it had two parameters: it is scaled once
    assert getattr(holds, SETTINGS).max_examples == scaled


@pytest.mark.parametrize(("is_long", "scaled"), [(False, 200), (True, 100)])
def test_a_long_version_keeps_the_examples_it_names(request: pytest.FixtureRequest, is_long: bool, scaled: int) -> None:
    @settings(max_examples=100)
    @given(st.none())
    def holds(nothing: None) -> None:
        del nothing

    item = pytest.Function.from_parent(request.node.parent, name="holds", callobj=holds)
    if is_long:
        item.add_marker("proof")
    scale([item], 2)
    assert getattr(holds, SETTINGS).max_examples == scaled


def test_a_state_machine_is_scaled_too(request: pytest.FixtureRequest) -> None:
    class Counting(Counter.TestCase):
        settings = settings(max_examples=50)

    collected = pytest.Class.from_parent(request.node.parent, name="Counting")
    collected.obj = Counting
    scale([pytest.Function.from_parent(collected, name="runTest", callobj=Counting("runTest").runTest)], 2)
    assert Counting.settings.max_examples == 100
