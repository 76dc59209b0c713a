"""Random arguments for a tool from its schema: valid ones, so that it answers, and sometimes a time in the future.

Some calls use the tool's example with the audited symbol. Independent of any particular tool.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from numpy.random import Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.core.instant import DAY_MS, Instant, iso

_TIMES = frozenset({"at", "before", "after", "since", "until", "from", "to", "start", "end"})
_SPAN_DAYS, _NEAR = 5, 40
"""How far back times are, in days and in ticks: mostly so near that the run still has the decision in memory."""


def random_arguments(
    schema: Mapping[str, Any],
    example: Mapping[str, Any],
    at: Instant,
    step: int,
    symbol: str,
    dice: Generator,
) -> dict[str, Any]:
    """Random arguments for one call. `step` is the time between ticks: times are on ticks, where decisions are."""
    parts: Mapping[str, Any] = schema.get("properties", {})
    if dice.random() < 0.3:
        return {
            name: _fitted(name, value, parts.get(name, {}), at, step, symbol, dice) for name, value in example.items()
        }
    required = schema.get("required", ())
    return {
        name: _value(name, part, example, at, step, symbol, dice)
        for name, part in parts.items()
        if name in required or dice.random() < 0.6
    }


def _fitted(
    name: str, value: Any, part: Mapping[str, Any], at: Instant, step: int, symbol: str, dice: Generator
) -> Any:
    """A value of the example, with its symbol and times replaced."""
    if name == "symbol":
        return symbol
    if _is_time(name, part):
        return _time(at, step, dice)
    return Decimal(repr(value)) if isinstance(value, float) else value


def _value(
    name: str, part: Mapping[str, Any], example: Mapping[str, Any], at: Instant, step: int, symbol: str, dice: Generator
) -> Any:
    if "enum" in part:
        return _choice(part["enum"], dice)
    kind = part.get("type")
    if kind == "integer":
        return int(_number(part, dice))
    if kind == "number":
        return _number(part, dice)
    if kind == "boolean":
        return bool(dice.random() < 0.5)
    if name == "symbol":
        return symbol
    if _is_time(name, part):
        return _time(at, step, dice)
    if name in example:
        return _fitted(name, example[name], part, at, step, symbol, dice)
    return "audit"[: part.get("maxLength", 5)].ljust(part.get("minLength", 0), "x")


def _choice(values: Sequence[Any], dice: Generator) -> Any:
    return values[int(dice.integers(len(values)))]


def _number(part: Mapping[str, Any], dice: Generator) -> Decimal:
    low = float(part.get("minimum", part.get("exclusiveMinimum", 0)))
    high = float(part.get("maximum", part.get("exclusiveMaximum", low + 1000)))
    # Mostly small values, because that is where answers differ.
    share = dice.random() ** 3
    value = low + (high - low) * share
    if part.get("type") == "integer":
        return Decimal(round(value))
    inside = min(max(value, low + (high - low) * 1e-6), high - (high - low) * 1e-6)
    return Decimal(repr(round(inside, 6)))


def _is_time(name: str, part: Mapping[str, Any]) -> bool:
    is_text = part.get("type", "string") == "string" and "enum" not in part
    return is_text and (name in _TIMES or "(UTC)" in str(part.get("description", "")))


def _time(at: Instant, step: int, dice: Generator) -> str:
    draw = dice.random()
    if draw < 0.1:
        return iso(at)
    if draw < 0.2:
        return iso(at + step * int(dice.integers(1, 20)))  # in the future: must be refused on every side
    most = _NEAR if draw < 0.8 else max(2, _SPAN_DAYS * DAY_MS // step)
    return iso(at - step * int(dice.integers(1, most)))
