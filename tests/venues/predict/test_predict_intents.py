"""Reading decisions: what is taken, what is refused with which words, and that nothing ever raises."""

from dataclasses import fields
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.venues.predict.intents import ACTIONS, DECISION, SCHEMA, TERMINAL, PredictDecision, read
from venues.predict.scene import MINT

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.decimals(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def problems(**changes: Any) -> list[str]:
    decision, found = read({**MINT, **changes})
    assert decision is None
    return found


def test_a_mint_is_read_exactly() -> None:
    decision, found = read({**MINT, "spend": Decimal("1.25")})
    assert found == []
    assert decision == PredictDecision(
        "mint", "because", "BTC-hourly", "YES", Decimal(63_000), Decimal("1.25"), Decimal("0.7")
    )


def test_the_shape_of_the_original_agent_is_read() -> None:
    for spend in ("spend_dusdc", "spendDusdc"):
        raw = {"action": "mint", "side": "NO", "strike": 63_500, spend: 2, "confidence_0_1": 0.6, "reasoning": "x"}
        assert read(raw) == (PredictDecision("mint", "x", None, "NO", Decimal(63_500), Decimal(2), Decimal("0.6")), [])


def test_a_field_named_twice_must_say_the_same() -> None:
    assert read({**MINT, "spend_dusdc": 2})[1] == []
    assert problems(spend_dusdc=3) == ["spend is given twice and differs"]
    assert problems(spendDusdc=3, confidence_0_1=0.9) == [
        "confidence is given twice and differs",
        "spend is given twice and differs",
    ]


def test_a_hold_needs_only_its_reasoning() -> None:
    assert read({"action": "hold", "reasoning": "quiet"}) == (PredictDecision("hold", "quiet"), [])
    assert read({"action": "hold"}) == (None, ["reasoning is required"])


def test_a_redeem_needs_side_and_strike() -> None:
    decision, found = read({"action": "redeem", "side": "YES", "strike": 63_000, "reasoning": "x", "spend": None})
    assert found == []
    assert decision is not None
    assert decision.spend is None
    assert read({"action": "redeem", "reasoning": "x"})[1] == ["redeem needs side", "redeem needs strike"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"action": "buy"}, "action must be one of mint, redeem, hold"),
        ({"action": None}, "action must be one of mint, redeem, hold"),
        ({"side": "UP"}, "side must be YES or NO"),
        ({"side": "yes"}, "side must be YES or NO"),
        ({"side": None}, "mint needs side"),
        ({"strike": None}, "mint needs strike"),
        ({"strike": "63000"}, "strike must be a finite JSON number"),
        ({"strike": True}, "strike must be a finite JSON number"),
        ({"strike": -1}, "strike must be above 0"),
        ({"spend": None}, "mint needs spend"),
        ({"spend": 0}, "spend must be above 0"),
        ({"spend": -2}, "spend must be above 0"),
        ({"spend": float("nan")}, "spend must be a finite JSON number"),
        ({"spend": float("inf")}, "spend must be a finite JSON number"),
        ({"spend": Decimal("1e400")}, "spend must be a finite JSON number"),
        ({"spend": [2]}, "spend must be a finite JSON number"),
        ({"confidence": 1.01}, "confidence must be within 0 and 1"),
        ({"confidence": -0.1}, "confidence must be within 0 and 1"),
        ({"market_id": 7}, "market_id must be text"),
        ({"reasoning": {"a": 1}}, "reasoning must be text"),
        ({"leverage": 3}, "unknown key 'leverage'"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], words: str) -> None:
    assert problems(**changes) == [words]


@given(ANYTHING)
def test_anything_at_all_is_read_or_refused(raw: Any) -> None:
    decision, found = read(raw)
    assert (decision is None) == bool(found)


@given(st.dictionaries(st.sampled_from([*DECISION.keys, "extra"]), ANYTHING, max_size=8))
def test_any_values_under_our_own_names_are_read_or_refused(raw: Any) -> None:
    decision, found = read(raw)
    assert (decision is None) == bool(found)
    if decision is not None and decision.action == "mint":
        assert decision.spend is not None
        assert decision.spend > 0


def test_the_schema_names_every_field_but_the_expiry_and_forbids_others() -> None:
    assert TERMINAL == "submit_decision"
    assert set(SCHEMA["properties"]) == {field.name for field in fields(PredictDecision)} - {"expiry_at"}
    assert SCHEMA["additionalProperties"] is False
    assert SCHEMA["properties"]["action"]["enum"] == list(ACTIONS)
