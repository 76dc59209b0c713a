"""What happened in a run, read out of its records: receipts and equity points in order.

Works on the records of any journal. It gives plain values, amounts as the exact text that was recorded.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from pitboss.core import codec
from pitboss.core.curve import points
from pitboss.core.instant import Instant
from pitboss.core.snapshot import Record


def receipts(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """Every receipt, in the order in which the world gave them."""
    for record in records:
        yield from codec.loads(record.covered).get("receipts", ())


def equity(records: Iterable[Record]) -> Iterator[tuple[Instant, str]]:
    """Every equity point `(at, usd)`, one for each base-bar close."""
    for record in records:
        yield from points(codec.loads(record.covered).get("equity", ()))
