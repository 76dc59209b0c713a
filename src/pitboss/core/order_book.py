"""Recorded order books of one symbol, and what a taker pays who walks one: the slippage of a fill where books were asked for.

Beside `tape.py`, on the broker's side of the house: nobody who decides ever sees it. A fill walks the newest book that was
known when its bar opened, never a later one, and none that is older than a bound. It decides about prices only; how much of
an order fills is `world.py`'s business.
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
"""How old a book may be that prices a fill, unless a run says otherwise."""
Level = tuple[Decimal, Decimal]
"""Price and size."""
Facts = Mapping[str, Decimal | str | int]


class TextColumn(Protocol):
    """A column of texts: a list, or a column of a file that is not unpacked before somebody asks."""

    def __getitem__(self, place: int, /) -> str: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...


@noun
class BookSnapshot:
    """One snapshot: bids from the highest price down, asks from the lowest up. Neither side is empty, they do not cross."""

    at: Instant
    bids: tuple[Level, ...]
    asks: tuple[Level, ...]

    @property
    def mid(self) -> Decimal:
        """Halfway between the best bid and the best ask."""
        return (self.bids[0][0] + self.asks[0][0]) / 2


@dataclass(frozen=True, slots=True, eq=False)
class Books:
    """Snapshots of one symbol, oldest first, their sides as text (`price:size price:size`). `at` rises strictly."""

    symbol: str
    at: "Ints"
    bids: TextColumn
    asks: TextColumn

    def __len__(self) -> int:
        return len(self.at)

    def newest(self, at: Instant, max_age_ms: int) -> BookSnapshot | None:
        """The last snapshot at or before an instant; None if there is none, or it is older than the bound."""
        place = int(self.at.searchsorted(at, side="right")) - 1
        if place < 0 or at - self.at.item(place) > max_age_ms:
            return None
        found = self.at.item(place)
        sides: list[tuple[Level, ...]] = []
        for told, side in ((self.bids[place], 1), (self.asks[place], -1)):
            levels = read_levels(told)
            if not sound(levels, side):
                raise _unsound(self.symbol, found)
            sides.append(levels)
        bids, asks = sides
        if bids[0][0] >= asks[0][0]:
            raise _unsound(self.symbol, found)
        return BookSnapshot(found, bids, asks)


def _unsound(symbol: str, at: Instant) -> UserError:
    # import lets only sound books in; a file that was edited since then must not price a fill
    return UserError(f"the stored order book of {symbol} at {iso(at)} is not sound", "see `pitboss data check`")


def sound(levels: Sequence[Level], side: int) -> bool:
    """Whether one side has levels at all, each with a price and a size above zero, ever further from the middle.

    `side` is +1 for bids, whose prices fall, and −1 for asks, whose prices rise.
    """
    before: Decimal | None = None
    for price, size in levels:
        if (
            not (price.is_finite() and size.is_finite()) or price <= 0 or size <= 0
        ):  # finite first: NaN compares to nothing
            return False
        if before is not None and side * (before - price) <= 0:
            return False
        before = price
    return bool(levels)


def read_levels(told: str) -> tuple[Level, ...]:
    """The levels of one side; empty where the text is none that `write_levels` wrote."""
    try:
        pairs = [pair.split(":") for pair in told.split()]
        return tuple((Decimal(price), Decimal(size)) for price, size in pairs)
    except (ArithmeticError, ValueError):
        return ()


def write_levels(levels: Sequence[Level]) -> str:
    """One side as text; equal numbers give equal texts."""
    return " ".join(f"{text(price)}:{text(size)}" for price, size in levels)


@noun
class TakerFill:
    """What a taker gets: the average price, and how much of the size lay beyond the last level."""

    price: Decimal
    beyond: Decimal


def walk(book: BookSnapshot, price: Decimal, size: Decimal, side: int, bps_per_million: Decimal) -> TakerFill:
    """The price that a taker of `size` gets at a moment at which the bar says `price`.

    The levels are eaten one after the other. Their average, measured against the middle of the book, moves the bar's price
    by the same share: books and bars may come from different clocks, so only the shape of the book counts. What is left
    when the book ends pays the last level and, on top of it, the linear model for the *whole* size: nobody knows what stood
    behind the last level, and less than that it was hardly worth.
    """
    left, paid, last = size, ZERO, ZERO
    for last, there in book.asks if side > 0 else book.bids:
        part = min(left, there)
        paid += part * last
        left -= part
        if not left:
            break
    if left:
        paid += left * last * (1 + (side * bps_per_million * (size * last)).scaleb(-10))
    return TakerFill(price * paid / (size * book.mid), left)
