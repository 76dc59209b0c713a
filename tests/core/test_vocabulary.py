"""Untrusted JSON as texts and exact numbers: read or refused, never cast, never an exception."""

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.vocabulary import MAX_KEYS_LISTED, Vocabulary

WORDS = Vocabulary("a wish", frozenset({"action", "why"}), frozenset({"size", "at"}), {"amount": "size"})

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.decimals()
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))
keys = st.sampled_from(["action", "why", "size", "at", "amount"]) | st.text(max_size=60)


@given(values | st.dictionaries(keys, values, max_size=8))
def test_whatever_is_said_comes_out_as_texts_and_finite_numbers_or_as_what_is_wrong(raw: Any) -> None:
    texts, numbers, wrong = WORDS.read(raw)
    assert set(texts) <= WORDS.texts
    assert set(numbers) <= WORDS.numbers
    assert all(isinstance(text, str) and text.encode() for text in texts.values() if text)
    assert all(isinstance(number, Decimal) and number.is_finite() for number in numbers.values())
    if not wrong:
        assert isinstance(raw, dict)
        result = {WORDS.aliases.get(key, key) for key, value in raw.items() if value is not None}
        assert result == {*texts, *numbers}, "nothing was passed over"


def test_a_number_named_twice_must_say_the_same() -> None:
    assert WORDS.read({"size": 2, "amount": Decimal("2.0")}) == ({}, {"size": Decimal(2)}, [])
    assert WORDS.read({"size": 2, "amount": 3})[2] == ["size is given twice and differs"]


def test_only_a_few_of_many_unknown_keys_are_named_each_in_part() -> None:
    wrong = WORDS.read({f"{'x' * 80}{number}": 1 for number in range(1000)})[2]
    assert len(wrong) == MAX_KEYS_LISTED
    assert all(len(line) < 60 for line in wrong)
    assert WORDS.read([1])[2] == ["a wish is a JSON object"]
