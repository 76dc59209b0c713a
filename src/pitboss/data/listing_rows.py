"""Files with the listing periods of a venue's symbols → rows of the lake.

A table with `symbol`, `listed_at`, `delisted_at` and `known_at` (when the end was announced), or Binance's
`exchangeInfo` reply. A flag without a time, such as Hyperliquid's `isDelisted`, is no listing: it describes the day of
the reply and nothing before it.
"""

from typing import Any

import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, Instant
from pitboss.data.excerpt import excerpt
from pitboss.data.series import TIME, count_noun, require_symbol, series
from pitboss.data.table import RowCheck, Table, optional_times, text_of

BEGINS = ("listed_at", "onboard_date", "onboarded_at", "listed")
ENDS = ("delisted_at", "delivery_date", "delisted")
ANNOUNCED = ("known_at", "announced_at")
SYMBOLS = ("symbol", "coin", "name")
_NEVER = 40 * 366 * DAY_MS
"""Perpetuals have a delivery date in the year 2100. One this long after the first day counts as no date."""
_QUOTES = ("USDT", "USDC", "BUSD")


def looks_like_listings(table: Table) -> bool:
    """Whether the columns are those of listings."""
    return bool(table.find(*BEGINS[:3]) or table.find(*ENDS[:2])) and bool(table.find(*SYMBOLS))


def listings_of(table: Table) -> pl.DataFrame:
    """One row for each symbol. Each needs a start or an end; the end is after the start, and known at the latest then."""
    check = RowCheck(table, pl.Series([None] * table.frame.height, dtype=pl.Int64))
    column = text_of(table, check, table.need("the symbol", *SYMBOLS))
    symbols = [(name or "").strip() for name in column.to_list()]
    times = [optional_times(table, check, names).to_list() for names in (BEGINS, ENDS, ANNOUNCED)]
    check.raise_first()
    rows: dict[str, tuple[Instant | None, ...]] = {}
    for number, (symbol, *row) in enumerate(zip(symbols, *times, strict=True), 1):
        _validate(f"{table.origin}: row {number}", symbol, row[0], row[1], row[2])
        if rows.setdefault(symbol, tuple(row)) != tuple(row):
            raise UserError(f"{table.origin}: row {number}: {excerpt(symbol)} is listed twice, with different times")
    unannounced = sum(1 for _, end, known_at in rows.values() if end is not None and known_at is None)
    if unannounced:
        table.notes.append(
            f"{count_noun(unannounced, 'delisting')} without known_at: known only from the moment it happens"
        )
    return _frame(rows)


def is_exchange_info(value: Any) -> bool:
    """Whether a plain JSON value is Binance's `exchangeInfo` of its futures."""
    listed = value.get("symbols") if isinstance(value, dict) else None
    return isinstance(listed, list) and any(isinstance(entry, dict) and "onboardDate" in entry for entry in listed)


def exchange_info_rows(value: Any, origin: str) -> tuple[pl.DataFrame, list[str]]:
    """The perpetuals of the reply, without their quote. An end in the reply counts as known only when it comes."""
    rows: dict[str, tuple[Instant | None, ...]] = {}
    skipped = 0
    for entry in value["symbols"]:
        if not isinstance(entry, dict) or entry.get("contractType") not in ("PERPETUAL", "", None):
            skipped += 1
            continue
        pair, begins, ends = entry.get("symbol"), entry.get("onboardDate"), entry.get("deliveryDate")
        if not isinstance(pair, str) or not _is_time(begins) or not (ends is None or _is_time(ends)):
            raise UserError(f"{origin}: a symbol of the reply has no usable symbol, onboardDate or deliveryDate")
        symbol = next((pair.removesuffix(quote) for quote in _QUOTES if pair.endswith(quote)), pair) or pair
        symbol = pair if symbol in rows else symbol  # of two quotes the first gets the short name, as in a download
        end = ends if ends is not None and ends - begins < _NEVER else None
        _validate(origin, symbol, begins, end, None)
        rows[symbol] = (begins, end, None)
    if not rows:
        raise UserError(f"{origin}: the reply lists no perpetual")
    return _frame(rows), [f"{count_noun(skipped, 'contract')} with a delivery date left out"] if skipped else []


def _validate(origin: str, symbol: str, begins: Instant | None, ends: Instant | None, known_at: Instant | None) -> None:
    if not symbol:
        raise UserError(f"{origin}: there is no symbol")
    require_symbol(symbol, origin)
    if begins is None and ends is None:
        raise UserError(f"{origin}: {excerpt(symbol)} has neither listed_at nor delisted_at")
    if begins is not None and ends is not None and ends <= begins:
        raise UserError(f"{origin}: {excerpt(symbol)} is delisted before it is listed")
    if known_at is not None and (ends is None or known_at > ends):
        raise UserError(
            f"{origin}: known_at of {excerpt(symbol)} is not before a delisting", "it says when an end was announced"
        )


def _is_time(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 253_402_300_799_999


def _frame(rows: dict[str, tuple[Instant | None, ...]]) -> pl.DataFrame:
    columns = dict(series("listings").columns)
    schema = {name: pl.Int64() if dtype == TIME else dtype for name, dtype in columns.items()}
    return pl.DataFrame([(symbol, *rows[symbol]) for symbol in sorted(rows)], schema, orient="row").cast(
        pl.Schema(columns)
    )
