"""Arguments that a tool's own schema accepts, drawn at random."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from pitboss.core.instant import DAY_MS, iso

WORDS = ("BTC", "ETH", "SOL", "2025-06-03T12:00:00Z", "2025-06-02", "o1", "x", "close", "all")


def valid(schema: Mapping[str, Any], start: int, days: int = 5) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments of the right shape: everything required, anything optional."""
    parts = {name: _value(part, start, days) for name, part in schema["properties"].items()}
    needed = set(schema.get("required", ()))
    return st.fixed_dictionaries(
        {name: part for name, part in parts.items() if name in needed},
        optional={name: part for name, part in parts.items() if name not in needed},
    )


def _value(part: Mapping[str, Any], start: int, days: int) -> st.SearchStrategy[Any]:
    if "enum" in part:
        return st.sampled_from(list(part["enum"]))
    if part["type"] == "integer":
        return st.integers(int(part.get("minimum", 1)), int(part.get("maximum", 1_000)))
    if part["type"] == "number":
        low = part.get("minimum", part.get("exclusiveMinimum", 0))
        high = part.get("maximum", part.get("exclusiveMaximum", 100_000))
        return st.integers(int(low * 1000) + 1, int(high * 1000) - 1).map(lambda value: value / 1000)
    if part["type"] == "boolean":
        return st.booleans()
    least, most = part.get("minLength", 0), part.get("maxLength", 40)
    moments = st.integers(start, start + days * DAY_MS).map(lambda at: iso(at - at % 300_000))
    words = st.sampled_from([word for word in WORDS if least <= len(word) <= most] or ["x" * max(1, least)])
    return st.one_of(words, moments if most >= 20 else words)
