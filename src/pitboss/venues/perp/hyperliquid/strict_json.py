"""Strict reading of the exchange's JSON. A missing or malformed field raises: nothing is guessed, and absent is never zero."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from pitboss.core.errors import TransientError

MOST_DIGITS = 40
"""Longer numbers are refused: no amount of the exchange has so many digits."""


class UnreadableReply(TransientError):
    """A reply lacks a field or has one that cannot be read."""


def fields_of(value: Any, what: str) -> Mapping[str, Any]:
    """Return a JSON object."""
    if not isinstance(value, dict):
        raise UnreadableReply(f"{what} is not an object")
    return cast("dict[str, Any]", value)


def list_of(value: Any, what: str) -> list[Any]:
    """Return a JSON array."""
    if not isinstance(value, list):
        raise UnreadableReply(f"{what} is not a list")
    return cast("list[Any]", value)


def amount_of(fields: Mapping[str, Any], name: str) -> Decimal:
    """Return an amount, which the exchange writes as text."""
    value = fields.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= MOST_DIGITS:
        raise UnreadableReply(f"{name} is not an amount")
    try:
        amount = Decimal(value)
    except InvalidOperation:
        raise UnreadableReply(f"{name} is not an amount") from None
    if not amount.is_finite() or abs(amount.adjusted()) > MOST_DIGITS:
        raise UnreadableReply(f"{name} is out of range")
    return amount


def positive_of(fields: Mapping[str, Any], name: str) -> Decimal:
    """Return an amount above zero."""
    amount = amount_of(fields, name)
    if amount <= 0:
        raise UnreadableReply(f"{name} is not above zero")
    return amount


def int_of(fields: Mapping[str, Any], name: str) -> int:
    """Return a whole number that is not negative."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise UnreadableReply(f"{name} is not a whole number")
    return value


def text_of(fields: Mapping[str, Any], name: str) -> str:
    """Return a text that is not empty."""
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise UnreadableReply(f"{name} is missing")
    return value


def flag_of(fields: Mapping[str, Any], name: str) -> bool:
    """Return a boolean; null and absent count as false where the exchange leaves a flag out."""
    value = fields.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise UnreadableReply(f"{name} is not a flag")
    return value
