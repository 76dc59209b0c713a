"""The receipts and equity points of a run, read from its records in order.

Works on the records of any journal. Values are plain, amounts are the exact recorded text.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from pitboss.core import codec
from pitboss.core.curve import points
from pitboss.core.instant import Instant
from pitboss.core.snapshot import Record


def receipts(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """All receipts, in the order in which the world issued them."""
    for record in records:
        yield from codec.loads(record.covered).get("receipts", ())


def equity(records: Iterable[Record]) -> Iterator[tuple[Instant, str]]:
    """All equity points `(at, usd)`, one for each base-bar close."""
    for record in records:
        yield from points(codec.loads(record.covered).get("equity", ()))
