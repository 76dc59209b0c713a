"""Stored order books: for a run that prices its fills with them, for its digest, and for `data check`.

Stands on `lake`. Imported files are read by `order_book_rows`; prices of fills are computed in `core/order_book.py`.
"""

import hashlib
from collections.abc import Iterable
from decimal import Decimal
from itertools import islice

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, iso
from pitboss.core.order_book import Books, is_valid_side, read_levels
from pitboss.data.lake import Lake

_SLICE = 10_000


def load_books(lake: Lake, venue: str, symbols: Iterable[str], from_at: Instant, to_at: Instant) -> dict[str, Books]:
    """The books of the symbols in [from, to). It is a `UserError` if no symbol has any."""
    books: dict[str, Books] = {}
    names = sorted(set(symbols))
    for symbol in names:
        frame = lake.stored_rows("l2", venue, symbol, span=(from_at, to_at))
        if frame is None or not frame.height:
            continue
        at = frame["at"].dt.epoch("ms").to_numpy()
        if any(frame.null_count().row(0)) or not bool(np.all(at[1:] > at[:-1])):
            raise UserError(f"the stored order books of {symbol} are out of order", "see `pitboss data check`")
        at.setflags(write=False)
        books[symbol] = Books(symbol, at, frame["bids"], frame["asks"])
    if not books:
        raise UserError(
            f"no order books of {', '.join(names)} between {iso(from_at)} and {iso(to_at)} for venue {venue}",
            "import some with `pitboss data import PATH --kind l2 --symbol S`, or use --slippage linear",
        )
    return books


def hash_books(total: "hashlib._Hash", books: Books) -> None:
    """Add the content of books to a digest."""
    total.update(books.at.astype("<i8").tobytes())
    for column in (books.bids, books.asks):
        texts = iter(column)
        while part := list(islice(texts, _SLICE)):
            total.update("\n".join(part).encode() + b"\n")


def unsound_books(frame: pl.DataFrame) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Masks of the stored books with a side that is empty, unordered or not above zero, and of those whose sides cross."""
    bad = np.zeros(frame.height, dtype=bool)
    crossed = np.zeros(frame.height, dtype=bool)
    for row, (bids, asks) in enumerate(frame.select("bids", "asks").iter_rows()):
        best_bid, best_ask = _best(bids, 1), _best(asks, -1)
        bad[row] = best_bid is None or best_ask is None
        crossed[row] = best_bid is not None and best_ask is not None and best_bid >= best_ask
    return bad, crossed


def _best(stored_side: str | None, side: int) -> Decimal | None:
    levels = read_levels(stored_side or "")
    return levels[0][0] if is_valid_side(levels, side) else None
