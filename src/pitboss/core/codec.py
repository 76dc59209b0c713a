"""The one codec for everything that is stored or hashed.

`plain` turns nouns into JSON values, `dumps` into canonical bytes (sorted keys, no spaces, amounts as
strings), `parse` reads plain values back into a typed noun exactly, `digest` is SHA-256 of the canonical bytes.
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
LARGEST = Decimal(repr(sys.float_info.max))
"""Beyond this a JSON number is infinite to most of the world."""
SMALLEST = Decimal("5e-324")
"""Below this a JSON number is zero to most of the world."""

SMALLEST_EXPONENT = -324
DEEPEST = 64
TOO_DEEP = "[nested too deep]"
_fragment: Callable[[bytes], object] = getattr(orjson, "Fragment")  # noqa: B009 – missing from orjson's stubs


def _default(value: object) -> object:
    if type(value) is Decimal:
        if not value:
            return "0"
        plain = str(value)  # `text`, its common cases without the call: a record has twenty of these
        return plain if plain[-1] != "0" and "E" not in plain else text(value)
    if isinstance(value, Mapping):
        return dict(typing.cast("Mapping[str, object]", value))
    if isinstance(value, frozenset | set):
        return sorted(typing.cast("frozenset[str]", value))
    raise TypeError(f"{type(value).__name__} is not stored or hashed by pitboss")


def dumps(value: object) -> bytes:
    """Canonical JSON bytes. Equal values give equal bytes in every process."""
    return orjson.dumps(value, default=_default, option=_OPTIONS)


def loads(data: bytes | str) -> Any:
    """JSON → plain values. Amounts stay strings until a noun reads them."""
    return orjson.loads(data)


def digest(value: object) -> str:
    """SHA-256 of the canonical bytes."""
    return hashlib.sha256(dumps(value)).hexdigest()


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


_EXACT = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse_constant)


def loads_exact(data: bytes | str) -> Any:
    """JSON from outside → plain values with every number exact (int or Decimal); NaN and Infinity are refused."""
    try:
        return _EXACT.decode(data if isinstance(data, str) else data.decode())
    except ArithmeticError as error:  # an exponent beyond what any number has
        raise ValueError("a number is out of range") from error


def number_fragments(value: object, depth: int = 0) -> object:
    """The same plain value with each Decimal written as a JSON *number* of exactly its value.

    Proposals come from outside, where `"5"` and `5` are different things; they keep that difference in storage. Total:
    what no JSON reader takes back (a number beyond every double, half a surrogate pair, endless nesting) is written as
    something that says so, is as malformed as it was, and never makes storing fail.
    """
    if isinstance(value, str):
        return printable(value)
    if type(value) is dict and depth < DEEPEST:  # a whole proposal: first of all that it can be
        return _fragments_of(typing.cast("dict[object, object]", value), depth)
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 63:
        return _number(Decimal(value))
    if isinstance(value, float):  # as the same number would be kept that came as JSON text
        return _number(Decimal(repr(value)))
    if isinstance(value, dict | list | tuple) and depth >= DEEPEST:
        return TOO_DEEP
    if isinstance(value, dict):
        return _fragments_of(typing.cast("dict[object, object]", value), depth)
    if isinstance(value, list | tuple):
        return [number_fragments(item, depth + 1) for item in typing.cast("list[object]", value)]
    return value


def _fragments_of(value: dict[object, object], depth: int) -> dict[str, object]:
    written: dict[str, object] = {}
    for key, item in value.items():
        name = key if type(key) is str and key.isascii() else printable(str(key))
        if type(item) is str:  # most of a proposal, without a call
            written[name] = item if item.isascii() else printable(item)
        elif type(item) is int and item.bit_length() < 64:
            written[name] = item
        elif type(item) is Decimal:
            written[name] = _number(item)
        else:
            written[name] = number_fragments(item, depth + 1)
    return written


def _number(value: Decimal) -> object:
    if not value.is_finite() or value.copy_abs() > LARGEST:
        return {"not_a_json_number": str(value)}
    if value.adjusted() < SMALLEST_EXPONENT:
        return 0  # to every reader; a few characters could otherwise make a million digits
    return _fragment(text(value).encode())


def json_number(value: Any) -> Decimal | None:
    """A JSON number of an untrusted document, exactly as far as money goes; None for anything else or beyond every double."""
    if isinstance(value, Decimal):
        number = value
    elif isinstance(value, float):
        number = Decimal(repr(value))
    elif isinstance(value, int) and not isinstance(value, bool):
        number = Decimal(value)
    else:
        return None
    # Compared, not computed with: a few characters can name a number that no context can hold.
    if not number.is_finite() or number.copy_abs() > LARGEST:
        return None
    return ZERO if number.copy_abs() < SMALLEST else CONTEXT.plus(number)


def printable(words: str) -> str:
    """The same text as it can be stored: half a surrogate pair, which JSON can name and UTF-8 cannot, becomes `?`."""
    return words if words.isascii() else words.encode("utf-8", "replace").decode()


def fragment(content: bytes) -> object:
    """Canonical bytes made earlier, to be put into a larger document as they are."""
    return _fragment(content)


def plain(value: object) -> Any:
    """A noun as plain JSON values."""
    return orjson.loads(dumps(value))


def parse(kind: type[T], value: Any) -> T:
    """Plain JSON values → a typed noun; the inverse of `plain`."""
    return _reader(kind)(value)


def _amount_or_words(value: str) -> Decimal | str:
    """Both are stored as text: what reads as an amount was one."""
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
        read = _amount_or_words if set(arms) == {Decimal, str} else _reader(*arms)
        return lambda value: None if value is None else read(value)
    if origin is tuple:
        read = _reader(typing.get_args(kind)[0])
        return lambda value: tuple(read(item) for item in value)
    if origin in (dict, Mapping):
        read = _reader(typing.get_args(kind)[1])
        return lambda value: {key: read(item) for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        readers = {field.name: _reader(hints[field.name]) for field in dataclasses.fields(kind)}
        make = typing.cast("Callable[..., Any]", kind)
        return lambda value: make(**{name: read(value[name]) for name, read in readers.items() if name in value})
    return lambda value: value
