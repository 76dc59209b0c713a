"""One field of a stranger's row each: what it must be, or why it cannot be. Beneath `wire`, which knows what rows mean."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pitboss.core.instant import Instant
from pitboss.data.fetch import MalformedReply
from pitboss.venues.predict.svi import FLOAT

MOST = 2**63 - 1
MOST_ROWS = 100_000
LATEST = 4_102_444_800_000
"""The year 2100, in milliseconds."""

ID = re.compile(r"0x[0-9a-fA-F]{1,64}")
_TEXT = re.compile(r"[\w.:/ -]{1,200}", re.ASCII)

Row = Mapping[str, Any]
T = TypeVar("T")


def record(value: Any) -> Row:
    """An object with names."""
    if not isinstance(value, dict):
        raise MalformedReply("the reply is not an object where one belongs")
    return value


def records(value: Any, most: int = MOST_ROWS) -> list[Row]:
    """A list of objects."""
    if not isinstance(value, list) or len(value) > most:
        raise MalformedReply(f"the reply is not a list of at most {most:,} rows")
    return [record(row) for row in value]


def signed(row: Row, name: str) -> int:
    """A whole number."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MOST:
        raise MalformedReply(f"{name} is not a whole number")
    return value


def number(row: Row, name: str) -> int:
    """A whole number of at least 0."""
    value = signed(row, name)
    if value < 0:
        raise MalformedReply(f"{name} is below zero")
    return value


def price(row: Row, name: str) -> int:
    """A whole number above 0."""
    value = number(row, name)
    if value == 0:
        raise MalformedReply(f"{name} is zero")
    return value


def share(row: Row, name: str) -> int:
    """A part of one, in billionths."""
    value = number(row, name)
    if value > FLOAT:
        raise MalformedReply(f"{name} is more than the whole")
    return value


def time(row: Row, name: str) -> Instant:
    """An instant in milliseconds."""
    value = number(row, name)
    if not 0 < value <= LATEST:
        raise MalformedReply(f"{name} is not a time in milliseconds")
    return value


def flag(row: Row, name: str) -> bool:
    """True or false."""
    value = row.get(name)
    if not isinstance(value, bool):
        raise MalformedReply(f"{name} is neither true nor false")
    return value


def text(row: Row, name: str) -> str:
    """A short plain word or name."""
    value = row.get(name)
    if not isinstance(value, str) or not _TEXT.fullmatch(value):
        raise MalformedReply(f"{name} is not a short plain text")
    return value


def word(row: Row, name: str, known: tuple[str, ...]) -> str:
    """One of the words there are."""
    value = row.get(name)
    if not isinstance(value, str) or value not in known:
        raise MalformedReply(f"{name} is none of {', '.join(known)}")
    return value


def object_id(row: Row, name: str) -> str:
    """An id on the chain, in the one form that we compare by."""
    value = row.get(name)
    if not isinstance(value, str) or not ID.fullmatch(value):
        raise MalformedReply(f"{name} is not an id")
    return whole_id(value)


def whole_id(value: str) -> str:
    """`0x6` → 0x and 64 lower-case digits: the same object has two spellings."""
    return f"0x{value[2:].lower():0>64}"


def optional(row: Row, name: str, read: Callable[[Row, str], T]) -> T | None:
    """A field that may be null or missing."""
    return None if row.get(name) is None else read(row, name)
