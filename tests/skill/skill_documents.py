"""Skill documents that the tests start from."""

from copy import deepcopy
from typing import Any

TOOLS = ("fetch_recent_bars", "get_portfolio", "simulate_action")
SYMBOLS = ("BTC", "ETH", "SOL", "DOGE")

_SMALLEST: dict[str, Any] = {
    "pitboss": 1,
    "name": "test",
    "model": "standin/analyst",
    "schedule": {"every": "15m"},
    "strategy": {"mode": "thesis", "leash": "balanced", "thesis": "Trends persist.", "avoid": "Chop."},
    "context": {"symbols": ["BTC"], "bars_interval": "15m"},
}


_SMALLEST_PREDICT: dict[str, Any] = {
    "pitboss": 1,
    "name": "test",
    "venue": "predict",
    "model": "a/b",
    "strategy": {"mandate": "momentum"},
}


def document(**changes: Any) -> dict[str, Any]:
    """A small valid document; a change is named by its path with `__` for the dots, None takes the key away."""
    return _changed(_SMALLEST, changes)


def predict_document(**changes: Any) -> dict[str, Any]:
    """The same for the predict venue."""
    return _changed(_SMALLEST_PREDICT, changes)


def _changed(smallest: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    plain = deepcopy(smallest)
    for path, value in changes.items():
        *parts, last = path.split("__")
        place = plain
        for part in parts:
            place = place.setdefault(part, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return plain
