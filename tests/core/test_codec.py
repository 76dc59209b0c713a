"""One codec: what is written can be read back exactly, and equal values are equal bytes in every process."""

import os
import subprocess
import sys
from decimal import Context, Decimal
from typing import Any

import pytest
from hypothesis import strategies as st

from engine.invariant import invariant, long_versions
from pitboss.core import codec
from pitboss.core.money import text
from pitboss.core.snapshot import GENESIS
from pitboss.core.state import LastDecision, State
from pitboss.core.verdict import Margin, Verdict
from pitboss.venues.perp.course import read_state
from pitboss.venues.perp.state import PerpWorld, TradingTerms
from pitboss.venues.perp.trade_memory import (
    NO_MEMORY,
    ClosedTrade,
    LessonNotes,
    OrderThesis,
    PerpMemory,
    RefusedProposal,
    RoundTrip,
)
from pitboss.venues.perp.world import advance
from venues.perp.markets import history_inputs, run_history

AMOUNTS = st.decimals(allow_nan=False, allow_infinity=False, places=None, min_value=-(10**20), max_value=10**20)
WORDS = st.text(max_size=8)
MARGINS = st.builds(Margin, WORDS, AMOUNTS, st.one_of(AMOUNTS, st.just("10..20")), st.one_of(st.none(), AMOUNTS), WORDS)
VERDICTS = st.builds(
    Verdict,
    st.sampled_from(["allowed", "refused", "noop"]),
    st.one_of(st.none(), WORDS),
    WORDS,
    st.lists(MARGINS, max_size=2).map(tuple),
    st.one_of(st.none(), WORDS),
    st.booleans(),
)
MOMENTS = st.integers(0, 10**13)
SHARES = st.floats(allow_nan=False, allow_infinity=False)
STATES = st.builds(
    State,
    world=st.none(),
    seq=st.integers(0, 10**9),
    prev_digest=st.just(GENESIS),
    tick_at=st.one_of(st.none(), st.integers(0, 10**13)),
    accepted_opens=st.lists(st.integers(0, 10**13), max_size=3).map(tuple),
    seen=st.dictionaries(WORDS, VERDICTS, max_size=2),
    last=st.one_of(st.none(), st.builds(LastDecision, st.integers(0, 10**13), WORDS, WORDS, WORDS, WORDS, WORDS)),
    memory=st.builds(
        PerpMemory,
        trades=st.lists(
            st.builds(ClosedTrade, opened_at=MOMENTS, closed_at=MOMENTS, pnl_usd=AMOUNTS, mfe_pct=SHARES), max_size=2
        ).map(tuple),
        notes=st.one_of(st.none(), st.builds(LessonNotes)),
        refusals=st.lists(st.builds(RefusedProposal, MOMENTS, WORDS), max_size=2).map(tuple),
        going=st.lists(st.builds(RoundTrip, opened_at=MOMENTS, left=AMOUNTS, flow=AMOUNTS), max_size=2).map(tuple),
        reasons=st.lists(st.builds(OrderThesis, WORDS, WORDS), max_size=2).map(tuple),
        part_filled=st.lists(WORDS, max_size=2).map(tuple),
        realised_usd=AMOUNTS,
        closed=MOMENTS,
    ),
    asked_close=st.dictionaries(WORDS, st.floats(allow_nan=False, allow_infinity=False), max_size=2),
)


@invariant(STATES)
def test_p18_a_state_read_back_is_the_same_state(state: State) -> None:
    """P18: parse is the inverse of plain, and writing what was read gives the same bytes."""
    data = codec.dumps(state)
    plain = codec.parse(State, codec.loads(data))  # the world and the memory are for the venue to read
    read = plain.after(memory=codec.parse(PerpMemory, plain.memory))
    assert read == state
    assert codec.dumps(read) == data


@invariant(st.integers(0, 2**32 - 1), quick=8, proof=2_000)
def test_p18_a_world_with_a_history_read_back_is_the_same_world(seed: int) -> None:
    """P18: positions, orders, marks, halts and sixty-digit amounts survive."""
    tape, terms = history_inputs(seed)
    world = run_history(seed, lambda world, start, stop: advance(world, terms, tape, start, stop).world)
    state = State(world, accepted_opens=(1, 2), memory=NO_MEMORY)
    assert read_state(codec.loads(codec.dumps(state))) == state
    assert codec.parse(PerpWorld, codec.plain(world)) == world
    assert codec.parse(TradingTerms, codec.plain(terms)) == terms


@invariant(AMOUNTS)
def test_the_text_of_an_amount_is_canonical(amount: Decimal) -> None:
    """Plain digits, one text for one value, read back as the same value."""
    shown = text(amount)
    assert Decimal(shown) == amount
    assert set(shown) <= set("-0123456789.")
    longer = Context(prec=200).multiply(amount, Decimal("1.000"))  # wide enough for every digit of it
    assert shown == text(longer)
    assert not (("." in shown) and shown.endswith(("0", ".")))
    assert shown != "-0"


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("1E+3", "1000"),
        ("1000.00", "1000"),
        ("-0.00", "0"),
        ("0E+5", "0"),
        ("1E-8", "0.00000001"),
        ("-2.50", "-2.5"),
        ("100", "100"),
        ("10.0E1", "100"),
    ],
)
def test_amounts_are_written_plainly(amount: str, shown: str) -> None:
    assert text(Decimal(amount)) == shown


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), AMOUNTS, WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=10,
)


@invariant(JSON)
def test_numbers_from_outside_are_stored_as_numbers_with_their_exact_value(value: Any) -> None:
    """`"5"` stays text and 5 stays a number, to the last digit; keys may come in any order."""
    data = codec.dumps(codec.number_fragments(value))
    assert codec.loads_exact(data) == value
    assert codec.dumps(codec.number_fragments(codec.loads_exact(data))) == data


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (Decimal("0.10"), b"0.1"),
        (Decimal("1E+3"), b"1000"),
        (Decimal("12345678901234567890.123456789"), b"12345678901234567890.123456789"),
        (10**30, b"1" + b"0" * 30),
        (Decimal("1e-999999"), b"0"),
        (Decimal("0E-999999"), b"0"),
        (Decimal("1e309"), b'{"not_a_json_number":"1E+309"}'),
        (Decimal("NaN"), b'{"not_a_json_number":"NaN"}'),
        (float("inf"), b'{"not_a_json_number":"Infinity"}'),
        ("half \ud800", b'"half ?"'),
        ({"\udfff": True}, b'{"?":true}'),
    ],
)
def test_what_json_readers_choke_on_is_stored_as_something_they_take(value: Any, stored: bytes) -> None:
    assert codec.dumps(codec.number_fragments(value)) == stored
    codec.loads(stored)


def test_endless_nesting_is_cut_and_never_fails() -> None:
    deep: Any = 1
    for _ in range(900):
        deep = {"a": [deep]}
    assert codec.TOO_DEEP.encode() in codec.dumps(codec.number_fragments(deep))


@pytest.mark.parametrize(
    "data", ["NaN", "[Infinity]", "-Infinity", "{", "1e99999999999999999999", "'x'", "{'a': 1}", "", '{"a": 1, "a": 1}']
)
def test_what_is_not_json_is_a_value_error(data: str) -> None:
    with pytest.raises(ValueError):
        codec.loads_exact(data)


def test_exact_reading_keeps_every_digit() -> None:
    assert codec.loads_exact("[0.1, 1e3, 3]") == [Decimal("0.1"), Decimal("1E+3"), 3]
    assert codec.loads_exact('"5"') == "5"


def test_a_set_is_written_sorted_and_a_stranger_is_refused() -> None:
    assert codec.dumps({"b": frozenset({"z", "a"}), "a": (1, Decimal("2.0"))}) == b'{"a":[1,"2"],"b":["a","z"]}'
    with pytest.raises(TypeError):
        codec.dumps(object())


ELSEWHERE = """
from decimal import Decimal
from pitboss.core import codec
from pitboss.core.state import State
from pitboss.venues.perp.trade_memory import PerpMemory
from pitboss.core.verdict import Margin, Verdict
words = ["alpha", "beta", "gamma", "delta", "epsilon"]
seen = {word: Verdict("refused", "R1_SHAPE", word, (Margin(word, Decimal("1.50"), "x", None),)) for word in set(words)}
state = State({"set": frozenset(words), "amount": Decimal("1E+2")}, seen=seen, memory=PerpMemory(part_filled=tuple(words)))
print(codec.dumps(state).hex(), codec.digest([set(words), {word: 1 for word in set(words)}]))
"""


def test_a2_the_bytes_do_not_depend_on_the_hash_seed_of_the_process() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", ELSEWHERE],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1


test_long = long_versions(globals())


@pytest.mark.parametrize("number", [0.0, 1.0, -2.5, 1e22, 0.1])
def test_a_float_of_a_proposal_is_kept_like_the_same_number_that_came_as_text(number: float) -> None:
    """A proposal made in this process has the key of the same proposal read back from storage."""
    data = codec.dumps(codec.number_fragments({"size_usd": number}))
    assert codec.dumps(codec.number_fragments(codec.loads_exact(data))) == data
