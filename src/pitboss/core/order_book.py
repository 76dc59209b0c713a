"""Recorded order books of one symbol, and the price a taker pays on one: the slippage of fills in runs that use books.

Only the simulated venue reads books; an agent never sees them. A fill uses the newest book known when its bar opened,
never a later one, and none older than a bound. This module determines prices only; how much of an order fills is
decided by the venue's `world.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from pitboss.core.errors import UserError
from pitboss.core.instant import MINUTE_MS, Instant, iso
from pitboss.core.money import ZERO, text
from pitboss.core.noun import noun

if TYPE_CHECKING:
    from pitboss.core.market import Ints

MAX_AGE_MS = 5 * MINUTE_MS
"""Default bound on the age of a book that prices a fill."""
Level = tuple[Decimal, Decimal]
"""Price and size."""
Facts = Mapping[str, Decimal | str | int]


class TextColumn(Protocol):
    """A column of texts: a list, or a file's column that is decoded on access."""

    def __getitem__(self, index: int, /) -> str: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...


@noun
class BookSnapshot:
    """One snapshot: bids by falling price, asks by rising price. Neither side is empty and they do not cross."""

    at: Instant
    bids: tuple[Level, ...]
    asks: tuple[Level, ...]

    @property
    def mid(self) -> Decimal:
        """Halfway between the best bid and the best ask."""
        return (self.bids[0][0] + self.asks[0][0]) / 2


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Books:
    """Snapshots of one symbol, oldest first, each side as text (`price:size price:size`). `at` rises strictly."""

    symbol: str
    at: "Ints"
    bids: TextColumn
    asks: TextColumn

    def __len__(self) -> int:
        return len(self.at)

    def newest(self, at: Instant, max_age_ms: int) -> BookSnapshot | None:
        """The last snapshot at or before `at`; None if there is none, or if it is older than the bound."""
        index = int(self.at.searchsorted(at, side="right")) - 1
        if index < 0 or at - self.at.item(index) > max_age_ms:
            return None
        snapshot_at = self.at.item(index)
        bids, asks = read_levels(self.bids[index]), read_levels(self.asks[index])
        if not (is_valid_side(bids, 1) and is_valid_side(asks, -1)) or bids[0][0] >= asks[0][0]:
            # The import accepts valid books only; a file edited afterwards must not price a fill.
            raise UserError(
                f"the stored order book of {self.symbol} at {iso(snapshot_at)} is not valid", "see `pitboss data check`"
            )
        return BookSnapshot(snapshot_at, bids, asks)


def is_valid_side(levels: Sequence[Level], side: int) -> bool:
    """Whether a side has at least one level, positive prices and sizes, and prices strictly away from the middle.

    `side` is +1 for bids, whose prices fall, and −1 for asks, whose prices rise.
    """
    previous: Decimal | None = None
    for price, size in levels:
        # Finite first: comparisons with NaN raise.
        if not (price.is_finite() and size.is_finite()) or price <= 0 or size <= 0:
            return False
        if previous is not None and side * (previous - price) <= 0:
            return False
        previous = price
    return bool(levels)


def read_levels(side: str) -> tuple[Level, ...]:
    """The levels of one side; empty if the text is not in the form that `write_levels` writes."""
    try:
        pairs = [pair.split(":") for pair in side.split()]
        return tuple((Decimal(price), Decimal(size)) for price, size in pairs)
    except (ArithmeticError, ValueError):
        return ()


def write_levels(levels: Sequence[Level]) -> str:
    """One side as text; equal levels give equal text."""
    return " ".join(f"{text(price)}:{text(size)}" for price, size in levels)


@noun
class TakerFill:
    """The average price that a taker pays, and the part of the size beyond the last level."""

    price: Decimal
    beyond: Decimal


def walk(book: BookSnapshot, price: Decimal, size: Decimal, side: int, bps_per_million: Decimal) -> TakerFill:
    """The price that a taker of `size` gets when the bar's price is `price`.

    Levels are consumed in order. Their average relative to the book's mid moves the bar's price by the same ratio: books
    and bars may come from different clocks, so only the shape of the book counts. Size beyond the last level pays the
    last level's price plus the linear model applied to the *whole* size: the depth behind the last level is unknown, and
    this is a conservative assumption.
    """
    remaining, cost, level_price = size, ZERO, ZERO
    for level_price, level_size in book.asks if side > 0 else book.bids:
        part = min(remaining, level_size)
        cost += part * level_price
        remaining -= part
        if not remaining:
            break
    if remaining:
        cost += remaining * level_price * (1 + (side * bps_per_million * (size * level_price)).scaleb(-10))
    return TakerFill(price * cost / (size * book.mid), remaining)
