"""Imported files of order books → rows of the lake, one for each snapshot, or one refusal that names the row.

Three forms are read: the exchange's `l2Book` replies (`levels`, also inside the `data` of a websocket message), `bids` and
`asks` as lists of pairs, and one row for each level (`at, side, price, size`, with `level` or without). Only full
snapshots: a stream of changes is refused, because changes may be missing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from math import isfinite
from typing import Any

import orjson
import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.money import text
from pitboss.data.excerpt import display, excerpt
from pitboss.data.series import count_noun, series
from pitboss.data.table import TIMES, Table, row_error
from pitboss.data.time_columns import to_instants

KIND = "l2"
_TIMES = ("at", *TIMES, "E")
_WRAPPERS = ("raw", "data")
_SIDES = {"bid": 1, "bids": 1, "buy": 1, "b": 1, "ask": -1, "asks": -1, "sell": -1, "a": -1, "s": -1, "1": 1, "-1": -1}
_PRICE, _SIZE = ("px", "price", "p"), ("sz", "size", "qty", "quantity", "amount", "q")
_SLICE = 2_000
_Side = list[tuple[str, str]]


class _Bad(Exception):
    """The reason why a row is refused."""


def unwrap(frame: pl.DataFrame) -> pl.DataFrame:
    """The replies themselves, where each is wrapped in a message."""
    for name in _WRAPPERS:
        inner = frame.schema.get(name)
        if isinstance(inner, pl.Struct) and {field.name for field in inner.fields} & {"levels", "bids", *_WRAPPERS}:
            return unwrap(frame.select(pl.col(name).struct.unnest()))
    return frame


def as_table(content: Any) -> Any:
    """A single reply as a table of one row; any other content unchanged."""
    inner = content
    while isinstance(inner, dict) and "levels" not in inner:
        inner = next((inner[name] for name in _WRAPPERS if name in inner), None)
    return pl.DataFrame([inner], strict=False) if isinstance(inner, dict) else content


def looks_like_books(table: Table) -> bool:
    """Whether the columns are those of order books. Rows with only a side and a price could be trades."""
    if "levels" in table.frame.columns or (table.find("bids") and table.find("asks")):
        return True
    return bool(table.find("side") and table.find("level") and table.find(*_PRICE) and table.find(*_SIZE))


def books_of(table: Table) -> pl.DataFrame:
    """The snapshots of one symbol, in order of time. One-sided books are left out: they price nothing."""
    rows: dict[Instant, tuple[str, str]] = {}
    last, repeated, one_sided = None, 0, 0
    for row, at, bids, asks in _snapshots(table):
        try:
            if last is not None and at < last:
                raise _Bad("earlier than the book before (unordered)")
            last = at
            if not bids or not asks:
                one_sided += 1
                continue
            book = (_stored_side(bids, 1), _stored_side(asks, -1))
            if float(bids[0][0]) >= float(asks[0][0]):
                raise _Bad(
                    f"the best bid {excerpt(bids[0][0])} is not below the best ask {excerpt(asks[0][0])} (crossed book)"
                )
            if rows.get(at, book) != book:
                raise _Bad("another book of the same time differs")
            repeated += at in rows
            rows[at] = book
        except _Bad as bad:
            raise row_error(table, row, at, str(bad)) from None
    if one_sided:
        table.notes.append(f"{count_noun(one_sided, 'book')} with an empty side left out")
    if repeated:
        table.notes.append(f"{count_noun(repeated, 'repeated book')} counted once")
    if not rows:
        raise UserError(
            f"{table.origin}: no book has both bids and asks", "a book needs at least one level on each side"
        )
    schema = {"at": pl.Int64, "bids": pl.String, "asks": pl.String}
    frame = pl.DataFrame([(at, *book) for at, book in rows.items()], schema, orient="row")
    return frame.cast(pl.Schema(series(KIND).columns))


# Forms of files -------------------------------------------------------------------------------------------------------


def _snapshots(table: Table) -> Iterator[tuple[int, Instant, _Side, _Side]]:
    """Row, instant, bids and asks of each book in the file."""
    if "levels" in table.frame.columns:
        return _nested(table, "levels")
    bids, asks = table.find("bids"), table.find("asks")
    return _nested(table, bids, asks) if bids and asks else _flat(table)


def _nested(table: Table, *names: str) -> Iterator[tuple[int, Instant, _Side, _Side]]:
    times = _times(table)
    for first in range(0, table.frame.height, _SLICE):
        part = table.frame.slice(first, _SLICE).select(names)
        for row, values in enumerate(part.iter_rows(), first):
            at = times[row]
            try:
                sides = [_unpacked(value) for value in values]
                both = sides if len(names) == 2 else sides[0]
                if not isinstance(both, list) or len(both) != 2:
                    raise _Bad("the levels are not two lists, bids and asks")
                bids, asks = (_levels(side) for side in both)
            except _Bad as bad:
                raise row_error(table, row, at, str(bad)) from None
            yield row, at, bids, asks


def _unpacked(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        raise _Bad("the levels are not valid JSON") from None


def _levels(side: Any) -> _Side:
    if side is None:
        return []
    if not isinstance(side, list):
        raise _Bad("a side of the book is not a list of levels")
    return [_level(level) for level in side]


def _level(level: Any) -> tuple[str, str]:
    if isinstance(level, dict):
        price = next((level[name] for name in _PRICE if level.get(name) is not None), None)
        size = next((level[name] for name in _SIZE if level.get(name) is not None), None)
    elif isinstance(level, list) and len(level) >= 2:
        price, size = level[0], level[1]
    else:
        raise _Bad("a level has no price and size")
    return _number(price, "price"), _number(size, "size")


@dataclass(frozen=True, slots=True)
class _LevelRow:
    row: int
    at: Instant
    side: int
    level: float
    price: str
    size: str


def _flat(table: Table) -> Iterator[tuple[int, Instant, _Side, _Side]]:
    for at, group in groupby(_level_rows(table), key=lambda level: level.at):
        book = list(group)
        sides: list[_Side] = []
        for side in (1, -1):
            # rows of one book may be in any order; they are sorted by level, else by price
            levels = sorted((level for level in book if level.side == side), key=lambda level: level.level)
            sides.append([(level.price, level.size) for level in levels])
        yield book[0].row, at, sides[0], sides[1]


def _level_rows(table: Table) -> Iterator[_LevelRow]:
    times = _times(table)
    level = table.find("level", "depth")
    names = [table.need("the side", "side"), table.need("the price", *_PRICE), table.need("the size", *_SIZE)]
    for row, (side, price, size, *more) in enumerate(
        table.frame.select([*names, *([level] if level else [])]).iter_rows()
    ):
        try:
            sign = _SIDES.get(str(side).strip().lower())
            if sign is None:
                raise _Bad(f"side {display(side)} is neither bid nor ask")
            price_text, size_text = _number(price, "price"), _number(size, "size")
            order = float(_number(more[0], "level")) if more else -sign * float(price_text)
        except _Bad as bad:
            raise row_error(table, row, times[row], str(bad)) from None
        yield _LevelRow(row, times[row], sign, order, price_text, size_text)


# Values ---------------------------------------------------------------------------------------------------------------


def _times(table: Table) -> list[Instant]:
    column = table.frame[table.need("time", *_TIMES)]
    times = to_instants(column)
    if times.null_count():
        row = int(times.is_null().arg_max() or 0)
        raise row_error(table, row, None, f"{display(column[row])} is not a time")
    return times.to_list()


def _number(value: Any, name: str) -> str:
    """The canonical text of a number. Numbers given as text keep every digit."""
    if isinstance(value, str) and value.isascii() and value.replace(".", "", 1).isdigit():
        integer, _, fraction = value.partition(".")
        integer, fraction = integer.lstrip("0") or "0", fraction.rstrip("0")
        return f"{integer}.{fraction}" if fraction else integer
    try:
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(str(value).strip())
    except ArithmeticError:
        raise _Bad(f"{name} is {'missing' if value is None else display(value)}") from None
    if value is None or isinstance(value, bool) or not number.is_finite():
        raise _Bad(f"{name} is {'missing' if value is None else excerpt(str(value))}, not a finite number")
    return text(number)


def _stored_side(levels: _Side, side: int) -> str:
    """One side of a book in its stored form. Prices and sizes must be above zero, prices ever further from the middle."""
    previous: float | None = None
    name = "bid" if side > 0 else "ask"
    for price, size in levels:
        value, amount = float(price), float(size)
        if not value > 0 or not isfinite(value):
            raise _Bad(f"the {name} price {excerpt(price)} is not a price")
        if not amount > 0 or not isfinite(amount):
            raise _Bad(f"the size at {excerpt(price)} is {excerpt(size)}: a snapshot has only sizes above zero")
        if previous is not None and side * (previous - value) <= 0:
            raise _Bad(f"the {name} {excerpt(price)} is out of order (bids fall, asks rise)")
        previous = value
    return " ".join([f"{price}:{size}" for price, size in levels])
