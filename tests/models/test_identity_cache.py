"""Values cached by object identity: never the value of another object, and bounded."""

from hypothesis import given
from hypothesis import strategies as st

from pitboss.models.identity_cache import MOST_ENTRIES, IdentityCache


@given(st.lists(st.integers(0, 5), max_size=60))
def test_every_object_has_its_own_value_and_is_worked_out_once(indices: list[int]) -> None:
    objects = [[1], [1], [2], [2], [], []]  # equal ones are still others
    computed: list[int] = []
    remembered = IdentityCache[list[int], tuple[int, int]](
        lambda value: (computed.append(id(value)) or len(computed), id(value))
    )
    for index in indices:
        assert remembered(objects[index])[1] == id(objects[index])
    assert len(computed) == len(set(indices))


def test_objects_that_come_and_go_are_not_taken_for_each_other_and_do_not_accumulate() -> None:
    remembered = IdentityCache[list[int], int](lambda value: value[0])
    for number in range(3 * MOST_ENTRIES):
        assert remembered([number]) == number
        assert len(remembered._entries) <= MOST_ENTRIES
