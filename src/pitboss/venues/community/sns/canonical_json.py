"""Canonical JSON of protocol v1: keys sorted, no spaces, numbers and strings as ECMAScript's `JSON.stringify` writes them.

Two programs that hold the same JSON value get the same text, whatever the bytes were in which it travelled. It is not the codec
of stored values (`core/codec.py`), which writes amounts as text and sorts keys by code point.
"""

import json
import math
import re
from typing import Any, cast

MAX_DEPTH = 64
MAX_EXACT = 2**53
_SURROGATE = re.compile("[\ud800-\udfff]")


class JsonRefused(ValueError):
    """The bytes are no JSON that the protocol accepts."""


def read_json(body: bytes, max_depth: int = MAX_DEPTH) -> Any:
    """The value of a body; an empty body is an empty object. Raises `JsonRefused`."""
    if not body:
        return {}
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        raise JsonRefused("Invalid JSON body") from None
    if _is_deeper(value, max_depth):
        raise JsonRefused("JSON body is nested too deep")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _finite(text: str) -> float | None:
    """A number; None for one that is too large, as `canonical_json` writes it: JSON has no infinity."""
    value = float(text)
    return value if math.isfinite(value) else None


def _is_deeper(value: Any, depth: int) -> bool:
    if isinstance(value, dict):
        value = list(cast("dict[str, Any]", value).values())
    if not isinstance(value, list):
        return False
    return depth == 0 or any(_is_deeper(item, depth - 1) for item in cast("list[Any]", value))


def canonical_json(value: Any) -> str:
    """The canonical text of a JSON value."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        keys = sorted(members, key=_utf16)
        return "{" + ",".join(f"{_string(key)}:{canonical_json(members[key])}" for key in keys) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(canonical_json, cast("list[Any]", value))) + "]"
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _string(text: str) -> str:
    if _SURROGATE.search(text):
        text = _utf16(text).decode("utf-16-be", "surrogatepass")  # two halves of a pair become one character
    quoted = json.dumps(text, ensure_ascii=False)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _number(value: float) -> str:
    if isinstance(value, int):
        if abs(value) <= MAX_EXACT:
            return str(value)
        try:
            value = float(value)
        except OverflowError:
            return "null"  # JavaScript reads it as Infinity, which JSON.stringify writes as null
    if not math.isfinite(value):
        return "null"
    if value == 0:
        return "0"
    sign, (digits, exponent) = "-" if value < 0 else "", _digits(abs(value))
    count = len(digits)
    if count <= exponent <= 21:
        return sign + digits + "0" * (exponent - count)
    if 0 < exponent <= 21:
        return f"{sign}{digits[:exponent]}.{digits[exponent:]}"
    if -6 < exponent <= 0:
        return f"{sign}0.{'0' * -exponent}{digits}"
    fraction = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'+' if exponent > 0 else '-'}{abs(exponent - 1)}"


def _digits(value: float) -> tuple[str, int]:
    """The shortest digits that identify a number, and its exponent: the number is 0.digits × 10^exponent."""
    mantissa, _, power = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).rstrip("0") if fraction.strip("0") or power else (whole + fraction)
    exponent = len(whole) + int(power or 0)
    stripped = digits.lstrip("0")
    return stripped.rstrip("0"), exponent - (len(digits) - len(stripped))
