"""Arguments of a tool call against the tool's schema, and the schema itself."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.errors import InvariantError, ToolFailed
from pitboss.tools import arguments

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["symbol", "lookback"],
    "properties": {
        "symbol": {"type": "string", "minLength": 1, "maxLength": 8, "description": "which"},
        "interval": {"type": "string", "enum": ["1m", "5m"], "description": "how long"},
        "lookback": {"type": "integer", "minimum": 1, "maximum": 500, "description": "how many"},
        "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "description": "how much"},
    },
}


def test_good_arguments_come_back_with_whole_numbers_as_integers() -> None:
    given_ = {"symbol": "BTC", "lookback": Decimal("20.0"), "interval": "5m", "share": Decimal("0.5")}
    checked = arguments.check(SCHEMA, given_)
    assert checked == {"symbol": "BTC", "interval": "5m", "lookback": 20, "share": Decimal("0.5")}
    assert type(checked["lookback"]) is int


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"symbol": "BTC"}, "lookback is missing"),
        ({"symbol": "BTC", "lookback": 5, "intervall": "5m"}, "did you mean interval?"),
        ({"symbol": "BTC", "lookback": 5, "zzz": 1}, "arguments: symbol, interval, lookback, share"),
        ({"symbol": 7, "lookback": 5}, "symbol must be text, not 7"),
        ({"symbol": "", "lookback": 5}, "symbol must have 1 to 8 characters"),
        ({"symbol": "BTCUSDTPERP", "lookback": 5}, "symbol must have 1 to 8 characters"),
        ({"symbol": "BTC", "lookback": "5"}, "lookback must be a number, not '5'"),
        ({"symbol": "BTC", "lookback": True}, "lookback must be a number, not true"),
        ({"symbol": "BTC", "lookback": None}, "lookback must be a number, not null"),
        ({"symbol": "BTC", "lookback": [5]}, "lookback must be a number, not a list"),
        ({"symbol": "BTC", "lookback": 5.0}, "lookback must be a number, not 5.0"),
        ({"symbol": "BTC", "lookback": 0}, "lookback must be at least 1, not 0"),
        ({"symbol": "BTC", "lookback": 501}, "lookback must be at most 500, not 501"),
        ({"symbol": "BTC", "lookback": Decimal("1e900000")}, "lookback must be at most 500, not 1E+900000"),
        ({"symbol": "BTC", "lookback": Decimal("2.5")}, "lookback must be a whole number, not 2.5"),
        ({"symbol": "BTC", "lookback": Decimal("NaN")}, "lookback must be a finite number"),
        ({"symbol": "BTC", "lookback": 5, "interval": "2m"}, "interval must be one of 1m, 5m, not '2m'"),
        ({"symbol": "BTC", "lookback": 5, "share": 0}, "share must be above 0, not 0"),
        ({"symbol": "BTC", "lookback": 5, "share": 2}, "share must be at most 1, not 2"),
        (["BTC", 5], "must be a JSON object"),
        (None, "must be a JSON object"),
    ],
)
def test_bad_arguments_are_answered_with_one_line_that_helps(bad: Any, words: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        arguments.check(SCHEMA, bad)
    assert words in str(failed.value)
    assert "\n" not in str(failed.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.decimals() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["symbol", "interval", "lookback", "share", "x"]), json_values) | json_values)
def test_any_json_value_is_either_checked_or_reported_to_the_model(value: Any) -> None:
    try:
        checked = arguments.check(SCHEMA, value)
    except ToolFailed:
        return
    else:
        assert 1 <= checked["lookback"] <= 500
        assert 1 <= len(checked["symbol"]) <= 8
        assert set(checked) <= set(SCHEMA["properties"])


def schema_with(**changes: Any) -> dict[str, Any]:
    return {**SCHEMA, **changes}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (schema_with(additionalProperties=True), "additionalProperties"),
        (schema_with(required=["absent"]), "absent"),
        (schema_with(oneOf=[]), "unknown schema keywords oneOf"),
        (schema_with(required=[], properties={"a": {"type": "string", "maxLength": 3}}), "no description"),
        (schema_with(required=[], properties={"a": {"type": "string", "description": "d"}}), "no bounds"),
        (
            schema_with(required=[], properties={"a": {"type": "integer", "minimum": 1, "description": "d"}}),
            "no bounds",
        ),
        (schema_with(required=[], properties={"a": {"type": "array", "description": "d"}}), "unknown schema keywords"),
    ],
)
def test_a_schema_that_the_check_would_not_honour_stops_the_program(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(InvariantError, match=words):
        arguments.require_known("some_tool", schema)
