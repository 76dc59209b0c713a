"""Files that say from when to when a venue lists its symbols → rows of the lake.

A table with `symbol`, `listed_at`, `delisted_at` and `known_at` (when the end was announced), or Binance's
`exchangeInfo` reply. What a venue says without a time, as Hyperliquid's `isDelisted`, is no listing: it tells what is
so on the day of the reply, and nothing about the past.
"""

from typing import Any

import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, Instant
from pitboss.data.series import TIME, count_noun, series
from pitboss.data.table import Table
from pitboss.data.time_columns import to_instants

BEGINS = ("listed_at", "onboard_date", "onboarded_at", "listed")
ENDS = ("delisted_at", "delivery_date", "delisted")
ANNOUNCED = ("known_at", "announced_at")
SYMBOLS = ("symbol", "coin", "name")
_NEVER = 40 * 366 * DAY_MS
"""A perpetual has a delivery date all the same, in the year 2100: so far after its first day that it means none."""
_QUOTES = ("USDT", "USDC", "BUSD")


def looks_like_listings(table: Table) -> bool:
    """Whether the columns are those of listings."""
    return bool(table.find(*BEGINS[:3]) or table.find(*ENDS[:2])) and bool(table.find(*SYMBOLS))


def listings_of(table: Table) -> pl.DataFrame:
    """One row a symbol. Each needs a beginning or an end; an end is after the beginning, and known at the latest then."""
    column = table.frame[table.need("the symbol", *SYMBOLS)].cast(pl.String, strict=False)
    symbols = [(word or "").strip() for word in column.to_list()]
    times = [_times(table, names) for names in (BEGINS, ENDS, ANNOUNCED)]
    rows: dict[str, tuple[Instant | None, ...]] = {}
    for number, (symbol, *row) in enumerate(zip(symbols, *times, strict=True), 1):
        _judge(f"{table.where}: row {number}", symbol, row[0], row[1], row[2])
        if rows.setdefault(symbol, tuple(row)) != tuple(row):
            raise UserError(f"{table.where}: row {number}: {symbol} is listed twice, with other times")
    silent = sum(1 for _, end, known in rows.values() if end is not None and known is None)
    if silent:
        table.notes.append(f"{count_noun(silent, 'delisting')} without known_at: known only from the moment it happens")
    return _frame(rows)


def is_exchange_info(value: Any) -> bool:
    """Whether a plain JSON value is Binance's `exchangeInfo` of its futures."""
    listed = value.get("symbols") if isinstance(value, dict) else None
    return isinstance(listed, list) and any(isinstance(one, dict) and "onboardDate" in one for one in listed)


def exchange_info_rows(value: Any, where: str) -> tuple[pl.DataFrame, list[str]]:
    """The perpetuals of the reply, without their quote. An end that the venue gives is known only when it comes."""
    rows: dict[str, tuple[Instant | None, ...]] = {}
    other = 0
    for one in value["symbols"]:
        if not isinstance(one, dict) or one.get("contractType") not in ("PERPETUAL", "", None):
            other += 1
            continue
        pair, begins, ends = one.get("symbol"), one.get("onboardDate"), one.get("deliveryDate")
        if not isinstance(pair, str) or not _is_time(begins) or not (ends is None or _is_time(ends)):
            raise UserError(f"{where}: a symbol of the reply has no usable symbol, onboardDate or deliveryDate")
        symbol = next((pair.removesuffix(quote) for quote in _QUOTES if pair.endswith(quote)), pair) or pair
        symbol = pair if symbol in rows else symbol  # of two quotes the first has the short name, as in a download
        end = ends if ends is not None and ends - begins < _NEVER else None
        _judge(where, symbol, begins, end, None)
        rows[symbol] = (begins, end, None)
    if not rows:
        raise UserError(f"{where}: the reply lists no perpetual")
    return _frame(rows), [f"{count_noun(other, 'contract')} with a delivery date left out"] if other else []


def _judge(where: str, symbol: str, begins: Instant | None, ends: Instant | None, known_at: Instant | None) -> None:
    if not symbol:
        raise UserError(f"{where}: there is no symbol")
    if begins is None and ends is None:
        raise UserError(f"{where}: {symbol} has neither listed_at nor delisted_at")
    if begins is not None and ends is not None and ends <= begins:
        raise UserError(f"{where}: {symbol} is delisted before it is listed")
    if known_at is not None and (ends is None or known_at > ends):
        raise UserError(f"{where}: known_at of {symbol} is not before a delisting", "it says when an end was announced")


def _times(table: Table, names: tuple[str, ...]) -> list[Instant | None]:
    found = table.find(*names)
    if found is None:
        return [None] * table.frame.height
    raw = table.frame[found]
    if raw.dtype == pl.String:
        raw = raw.str.strip_chars().replace("", None)
    read = to_instants(raw)
    unread = (read.is_null() & raw.is_not_null()).arg_true()
    if len(unread):
        row = int(unread[0])
        raise UserError(f"{table.where}: row {row + 1}: {found} {raw[row]!r} is not a time")
    return read.to_list()


def _is_time(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 253_402_300_799_999


def _frame(rows: dict[str, tuple[Instant | None, ...]]) -> pl.DataFrame:
    names = list(series("listings").columns)
    columns: dict[str, pl.Series] = {"symbol": pl.Series(sorted(rows), dtype=pl.String)}
    for place, name in enumerate(names[1:]):
        values = pl.Series([rows[symbol][place] for symbol in sorted(rows)], dtype=pl.Int64)
        columns[name] = values.cast(pl.Datetime("ms")).dt.replace_time_zone("UTC").cast(TIME)
    return pl.DataFrame(columns)
