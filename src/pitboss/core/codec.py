"""The codec for everything that is stored or hashed.

`plain` converts a noun (a value declared with `@noun`) into JSON values, `dumps` into canonical bytes (sorted keys, no
spaces, amounts as strings), `parse` reads plain values back into a typed noun without loss, `digest` is the SHA-256 of
the canonical bytes.
"""

import dataclasses
import hashlib
import json
import sys
import types
import typing
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar

import orjson

from pitboss.core.money import CONTEXT, ZERO, text

T = TypeVar("T")
_OPTIONS = orjson.OPT_SORT_KEYS
MAX_NUMBER = Decimal(repr(sys.float_info.max))
"""Most JSON readers take a larger number as infinite."""
MIN_NUMBER = Decimal("5e-324")
"""Most JSON readers take a smaller number as zero."""

MIN_EXPONENT = -324
MAX_DEPTH = 64
TOO_DEEP = "[nested too deep]"
_fragment: Callable[[bytes], object] = getattr(orjson, "Fragment")  # noqa: B009 – missing from orjson's stubs


def _default(value: object) -> object:
    if type(value) is Decimal:
        if not value:
            return "0"
        digits = str(value)  # the common cases of `text` without the call: a record holds twenty amounts
        return digits if digits[-1] != "0" and "E" not in digits else text(value)
    if isinstance(value, Mapping):
        return dict(typing.cast("Mapping[str, object]", value))
    if isinstance(value, frozenset | set):
        return sorted(typing.cast("frozenset[str]", value))
    raise TypeError(f"{type(value).__name__} is not stored or hashed by pitboss")


def dumps(value: object) -> bytes:
    """Canonical JSON bytes. Equal values give equal bytes in every process."""
    return orjson.dumps(value, default=_default, option=_OPTIONS)


def loads(data: bytes | str) -> Any:
    """Read JSON as plain values. Amounts stay strings until `parse` reads them."""
    return orjson.loads(data)


def digest(value: object) -> str:
    """SHA-256 of the canonical bytes."""
    return hashlib.sha256(dumps(value)).hexdigest()


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


class DuplicateKey(ValueError):
    """An object gives a key twice. Readers differ in which value they take, so it has no meaning."""


def distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object from its pairs, for `json.JSONDecoder`; raises `DuplicateKey`."""
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DuplicateKey(f"the key {twice[:40]!a} is given twice")
    return value


_EXACT = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse_constant, object_pairs_hook=distinct_keys)


def loads_exact(data: bytes | str) -> Any:
    """Read untrusted JSON as plain values with exact numbers (int or Decimal).

    NaN, Infinity and an object that gives a key twice raise `ValueError`, like text that is not JSON. Text that is nested
    too deep for Python's decoder raises `RecursionError`.
    """
    try:
        return _EXACT.decode(data if isinstance(data, str) else data.decode())
    except ArithmeticError as error:  # an exponent beyond the range of `Decimal`
        raise ValueError("a number is out of range") from error


def number_fragments(value: object, depth: int = 0) -> object:
    """The same plain value with each Decimal written as a JSON *number* of exactly its value.

    Proposals are untrusted JSON, in which `"5"` and `5` differ; storage keeps that difference. The function never
    fails: what a JSON reader could not read back (a number beyond the range of a double, a lone surrogate, nesting
    deeper than `MAX_DEPTH`) is replaced by a value that names the problem and is still malformed as an intent.
    """
    if isinstance(value, str):
        return printable(value)
    if type(value) is dict and depth < MAX_DEPTH:  # tested early: a proposal is usually a dict
        return _fragments_of(typing.cast("dict[object, object]", value), depth)
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 63:
        return _number(Decimal(value))
    if isinstance(value, float):  # stored like the same number read from JSON text
        return _number(Decimal(repr(value)))
    if isinstance(value, dict | list | tuple) and depth >= MAX_DEPTH:
        return TOO_DEEP
    if isinstance(value, dict):
        return _fragments_of(typing.cast("dict[object, object]", value), depth)
    if isinstance(value, list | tuple):
        return [number_fragments(item, depth + 1) for item in typing.cast("list[object]", value)]
    return value


def _fragments_of(value: dict[object, object], depth: int) -> dict[str, object]:
    fields: dict[str, object] = {}
    for key, item in value.items():
        name = key if type(key) is str and key.isascii() else printable(str(key))
        if type(item) is str:  # the most common values, without a recursive call
            fields[name] = item if item.isascii() else printable(item)
        elif item is None or (type(item) is int and item.bit_length() < 64):
            fields[name] = item
        elif type(item) is Decimal:
            fields[name] = _number(item)
        else:
            fields[name] = number_fragments(item, depth + 1)
    return fields


def _number(value: Decimal) -> object:
    if not value.is_finite() or value.copy_abs() > MAX_NUMBER:
        return {"not_a_json_number": str(value)}
    if value.adjusted() < MIN_EXPONENT:
        return 0  # readers take it as 0, and a short exponent could otherwise expand to a million digits
    return _fragment(text(value).encode())


def json_number(value: Any) -> Decimal | None:
    """A number of an untrusted document, rounded to the money context; None for a non-number or one beyond a double."""
    if isinstance(value, Decimal):
        number = value
    elif isinstance(value, float):
        number = Decimal(repr(value))
    elif isinstance(value, int) and not isinstance(value, bool):
        number = Decimal(value)
    else:
        return None
    # Only compared, not used in arithmetic: a short text can denote a number that no decimal context can hold.
    if not number.is_finite() or number.copy_abs() > MAX_NUMBER:
        return None
    return ZERO if number.copy_abs() < MIN_NUMBER else CONTEXT.plus(number)


def printable(value: str) -> str:
    """The text in a form that UTF-8 can store: a lone surrogate, which JSON can express, becomes `?`."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def fragment(content: bytes) -> object:
    """Canonical bytes for verbatim inclusion in a larger document."""
    return _fragment(content)


def plain(value: object) -> Any:
    """A noun as plain JSON values."""
    return orjson.loads(dumps(value))


def parse(kind: type[T], value: Any) -> T:
    """Read plain JSON values as a typed noun; the inverse of `plain`."""
    return _reader(kind)(value)


def _amount_or_text(value: str) -> Decimal | str:
    """Both are stored as text; text that reads as an amount is an amount."""
    try:
        return Decimal(value)
    except ArithmeticError:
        return value


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    origin = typing.get_origin(kind)
    if kind is Decimal:
        return Decimal
    if origin in (typing.Union, types.UnionType):
        arms = [arm for arm in typing.get_args(kind) if arm is not type(None)]
        read_item = _amount_or_text if set(arms) == {Decimal, str} else _reader(*arms)
        return lambda value: None if value is None else read_item(value)
    if origin is tuple:
        read_item = _reader(typing.get_args(kind)[0])
        return lambda value: tuple(read_item(item) for item in value)
    if origin in (dict, Mapping):
        read_item = _reader(typing.get_args(kind)[1])
        return lambda value: {key: read_item(item) for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        readers = {field.name: _reader(hints[field.name]) for field in dataclasses.fields(kind)}
        make = typing.cast("Callable[..., Any]", kind)
        return lambda value: make(
            **{name: read_item(value[name]) for name, read_item in readers.items() if name in value}
        )
    return lambda value: value
