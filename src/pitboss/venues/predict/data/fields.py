"""Validates single fields of untrusted rows. Used by `wire`, which interprets the rows."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pitboss.core.instant import Instant
from pitboss.data.fetch import MalformedReply
from pitboss.venues.predict.sui.chain import full_id, is_id
from pitboss.venues.predict.svi import FLOAT

MOST = 2**63 - 1
MOST_ROWS = 100_000
LATEST = 4_102_444_800_000
"""The year 2100, in milliseconds."""

_TEXT = re.compile(r"[\w.:/ -]{1,200}", re.ASCII)

Row = Mapping[str, Any]
T = TypeVar("T")


def record(value: Any) -> Row:
    """Return the value if it is an object."""
    if not isinstance(value, dict):
        raise MalformedReply("the reply is not an object where one belongs")
    return value


def records(value: Any, most: int = MOST_ROWS) -> list[Row]:
    """Return the value if it is a list of at most `most` objects."""
    if not isinstance(value, list) or len(value) > most:
        raise MalformedReply(f"the reply is not a list of at most {most:,} rows")
    return [record(row) for row in value]


def signed(row: Row, name: str) -> int:
    """Return a whole number."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MOST:
        raise MalformedReply(f"{name} is not a whole number")
    return value


def number(row: Row, name: str) -> int:
    """Return a whole number of at least 0."""
    value = signed(row, name)
    if value < 0:
        raise MalformedReply(f"{name} is below zero")
    return value


def price(row: Row, name: str) -> int:
    """Return a whole number above 0."""
    value = number(row, name)
    if value == 0:
        raise MalformedReply(f"{name} is zero")
    return value


def share(row: Row, name: str) -> int:
    """Return a fraction of one, in billionths."""
    value = number(row, name)
    if value > FLOAT:
        raise MalformedReply(f"{name} is more than the whole")
    return value


def time(row: Row, name: str) -> Instant:
    """Return an instant in milliseconds."""
    value = number(row, name)
    if not 0 < value <= LATEST:
        raise MalformedReply(f"{name} is not a time in milliseconds")
    return value


def flag(row: Row, name: str) -> bool:
    """Return a boolean."""
    value = row.get(name)
    if not isinstance(value, bool):
        raise MalformedReply(f"{name} is neither true nor false")
    return value


def text(row: Row, name: str) -> str:
    """Return a short plain word or name."""
    value = row.get(name)
    if not isinstance(value, str) or not _TEXT.fullmatch(value):
        raise MalformedReply(f"{name} is not a short plain text")
    return value


def choice(row: Row, name: str, allowed: tuple[str, ...]) -> str:
    """Return one of the allowed words."""
    value = row.get(name)
    if not isinstance(value, str) or value not in allowed:
        raise MalformedReply(f"{name} is none of {', '.join(allowed)}")
    return value


def object_id(row: Row, name: str) -> str:
    """Return an on-chain id in its full form, by which ids are compared."""
    value = row.get(name)
    if not isinstance(value, str) or not is_id(value):
        raise MalformedReply(f"{name} is not an id")
    return full_id(value)


def optional(row: Row, name: str, parse: Callable[[Row, str], T]) -> T | None:
    """Return a field that may be null or missing."""
    return None if row.get(name) is None else parse(row, name)
