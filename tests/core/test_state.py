"""A state derived from another: the written-out copy is `dataclasses.replace`, for every field and any number of them."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.state import State

NAMES = [field.name for field in dataclasses.fields(State)]


@given(st.dictionaries(st.sampled_from(NAMES), st.one_of(st.none(), st.integers(), st.text(max_size=3))))
def test_a_state_after_changes_is_a_replaced_one(changes: dict[str, object]) -> None:
    before = State(*(object() for _ in NAMES))
    after = before.after(**changes)
    assert after == dataclasses.replace(before, **changes)
    assert all(getattr(after, name) is getattr(before, name) for name in NAMES if name not in changes)
