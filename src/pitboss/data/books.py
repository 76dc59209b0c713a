"""Order books of the lake: for a run that prices its fills with them, for its digest, and for `data check`.

Above `lake`. Files of strangers are `bookrows`; what a fill pays is the venue's (`core/order_book.py`).
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
from pitboss.data.series_digest import stored_rows

_SLICE = 10_000


def load_books(lake: Lake, venue: str, symbols: Iterable[str], from_at: Instant, to_at: Instant) -> dict[str, Books]:
    """The books of the symbols from an instant up to another. That none of them has any is the user's mistake."""
    found: dict[str, Books] = {}
    names = sorted(set(symbols))
    for symbol in names:
        frame = stored_rows(lake, "l2", venue, symbol, None, from_at, to_at)
        if frame is None or not frame.height:
            continue
        at = frame["at"].dt.epoch("ms").to_numpy()
        if any(frame.null_count().row(0)) or not bool(np.all(at[1:] > at[:-1])):
            raise UserError(f"the stored order books of {symbol} are out of order", "see `pitboss data check`")
        at.setflags(write=False)
        found[symbol] = Books(symbol, at, frame["bids"], frame["asks"])
    if not found:
        raise UserError(
            f"no order books of {', '.join(names)} between {iso(from_at)} and {iso(to_at)} for venue {venue}",
            "import some with `pitboss data import PATH --kind l2 --symbol S`, or use --slippage linear",
        )
    return found


def feed_books(total: "hashlib._Hash", books: Books) -> None:
    """Put the content of books into a digest."""
    total.update(books.at.astype("<i8").tobytes())
    for column in (books.bids, books.asks):
        texts = iter(column)
        while part := list(islice(texts, _SLICE)):
            total.update("\n".join(part).encode() + b"\n")


def unsound(frame: pl.DataFrame) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Stored books with a side that is empty, unordered or not above zero; and those whose sides cross."""
    bad = np.zeros(frame.height, dtype=bool)
    crossed = np.zeros(frame.height, dtype=bool)
    for place, (bids, asks) in enumerate(frame.select("bids", "asks").iter_rows()):
        high, low = _best(bids, 1), _best(asks, -1)
        bad[place] = high is None or low is None
        crossed[place] = high is not None and low is not None and high >= low
    return bad, crossed


def _best(told: str | None, side: int) -> Decimal | None:
    levels = read_levels(told or "")
    return levels[0][0] if is_valid_side(levels, side) else None
