"""Small parts of replies: the text of numbers, hashes, envelopes of `/exchange`."""

from decimal import Decimal
from typing import Any

from pitboss.core.money import text


def venue_text(value: Decimal) -> str:
    """A number as the exchange writes it: plain digits, at least one decimal."""
    plain = text(value)
    return plain if "." in plain else plain + ".0"


def venue_hash(number: int) -> str:
    """A transaction hash: 32 bytes that tell two numbers apart."""
    return f"0x{number:064x}"


def ok(kind: str, statuses: list[Any] | None = None) -> dict[str, Any]:
    """The envelope of an action that was taken."""
    data = {} if statuses is None else {"data": {"statuses": statuses}}
    return {"status": "ok", "response": {"type": kind} | data}


def err(text_of_refusal: str) -> dict[str, Any]:
    """The envelope of an action that was refused as a whole."""
    return {"status": "err", "response": text_of_refusal}
