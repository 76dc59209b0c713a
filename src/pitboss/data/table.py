"""Raw columns → the columns of a kind, or one refusal that names the row and its time.

Refused are values that cannot be read, are missing, not finite, or not positive where they are prices; high below low;
times out of order, repeated or off the interval's grid. News and events are in `news_rows`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, interval_ms, iso
from pitboss.data.excerpt import display, excerpts
from pitboss.data.series import count_noun, series
from pitboss.data.time_columns import LATEST, to_instants

TIMES = ("date", "time", "timestamp", "ts", "open_time", "t", "calc_time", "create_time")
_BARS = {
    "open": ("open", "o"),
    "high": ("high", "h"),
    "low": ("low", "l"),
    "close": ("close", "c"),
    "volume": ("volume", "v", "vol"),
}
_VALUES = {
    "funding": ("funding_rate", "rate", "fundingRate", "last_funding_rate", "value"),
    "open_interest": ("open_interest", "openInterest", "sum_open_interest", "oi", "value"),
    "mark": ("mark", "mark_price", "markPx", "value", "price"),
    "oracle": ("oracle", "oracle_price", "oraclePx", "value", "price"),
}
SYMBOLS = ("symbol", "coin", "s")
_INTERVALS = ("interval", "i")
_ASSETS = {
    "name": ("the symbol", "name", *SYMBOLS),
    "szDecimals": ("size decimals", "szDecimals", "size_decimals"),
    "maxLeverage": ("the highest leverage", "maxLeverage", "max_leverage"),
}


@dataclass
class Table:
    """The raw columns of one file, which may have any of their usual names. `origin` is the file or the host."""

    origin: str
    frame: pl.DataFrame
    notes: list[str] = field(default_factory=list[str])
    positions: NDArray[np.int64] | None = None
    """The position of each row in the file, if this is only a part of it."""

    def row_number(self, row: int) -> int:
        """The number of a row in the file, from 1 on, by its position in the frame."""
        return 1 + (row if self.positions is None else int(self.positions[row]))

    def find(self, *names: str) -> str | None:
        """The first of these columns that exists: as written, else whatever its case, spaces and underscores."""
        for name in names:
            if name in self.frame.columns:
                return name
        folded: dict[str, list[str]] = {}
        for column in self.frame.columns:
            folded.setdefault(_folded(column), []).append(column)
        for name in names:
            # `t` and `T` are two things in an exchange's reply, so one-letter names match as written only
            if len(name) > 1 and len(folded.get(_folded(name), [])) == 1:
                return folded[_folded(name)][0]
        return None

    def need(self, label: str, *names: str) -> str:
        """As `find`, but its absence is an error."""
        name = self.find(*names)
        if name is None:
            columns = excerpts(self.frame.columns)
            raise UserError(
                f"{self.origin}: no column for {label}", f"one of {', '.join(names)}; the file has {columns}"
            )
        return name

    def kind(self) -> str | None:
        """The kind of data that the columns look like, or None."""
        if self.find("published", "published_at"):
            return "news"
        if self.find("release_utc", "scheduled_at"):
            return "events"
        if all(self.find(*names) for names in list(_BARS.values())[:4]):
            return "bars"
        if self.find(*_ASSETS["szDecimals"][1:]):
            return "meta"
        for kind, names in _VALUES.items():
            if self.find(*[name for name in names if name not in ("value", "price")]):
                return kind
        return None

    def symbols(self) -> list[str]:
        """The symbols in the symbol column, sorted."""
        return self._values_of(SYMBOLS)

    def intervals(self) -> list[str]:
        """The intervals in the interval column, sorted."""
        return self._values_of(_INTERVALS)

    def select(self, symbol: str | None, interval: str | None) -> "Table":
        """The rows of one symbol and one interval, where the file has columns for them."""
        mask = np.ones(self.frame.height, dtype=bool)
        for value, values, names in ((symbol, self.symbols(), SYMBOLS), (interval, self.intervals(), _INTERVALS)):
            if value in values and len(values) > 1:
                column = _texts(self.frame[self.need("", *names)])
                mask &= (column == value).fill_null(False).to_numpy()
        return Table(self.origin, self.frame.filter(mask), positions=np.flatnonzero(mask))

    def assets(self) -> list[dict[str, object]]:
        """The rows in the form of the `universe` of a `meta` reply."""
        columns = {name: self.need(label, *names) for name, (label, *names) in _ASSETS.items()}
        if table_id := self.find("marginTableId"):
            columns["marginTableId"] = table_id
        return self.frame.select(pl.col(column).alias(name) for name, column in columns.items()).to_dicts()

    def spacing(self) -> int | None:
        """The smallest step between two rows, in milliseconds."""
        name = self.find(*TIMES)
        steps = to_instants(self.frame[name]).diff().drop_nulls() if name else pl.Series([], dtype=pl.Int64)
        least = steps.filter(steps > 0).min()
        return least if isinstance(least, int) else None

    def _values_of(self, names: tuple[str, ...]) -> list[str]:
        name = self.find(*names)
        if name is None or self.frame[name].dtype.is_nested():
            return []
        return sorted(value for value in _texts(self.frame[name]).drop_nulls().unique() if value)


class RowCheck:
    """Collects violations and reports the first bad row of a table, whichever rule it breaks."""

    def __init__(self, table: Table, times: pl.Series) -> None:
        self._table = table
        self._times = times
        self._first: tuple[int, Callable[[int], str]] | None = None

    def refuse(self, bad: NDArray[np.bool_], reason: Callable[[int], str]) -> None:
        """Record the first row of a mask, with a function that gives the reason for a row."""
        row = int(np.argmax(bad)) if bad.any() else None
        if row is not None and (self._first is None or row < self._first[0]):
            self._first = (row, reason)

    def raise_first(self) -> None:
        """Raise a `UserError` about the first bad row, if there is any."""
        if self._first is None:
            return
        row, reason = self._first
        raise row_error(self._table, row, self._times[row], reason(row))


def row_error(table: Table, row: int, at: Instant | None, reason: str) -> UserError:
    """The refusal of a row, by its position in the frame and its time, if it has one."""
    when = "" if at is None else f" ({iso(at)})"
    return UserError(
        f"{table.origin}: row {table.row_number(row)}{when}: {reason}", "correct the file and import it again"
    )


def bars_of(table: Table, interval: str) -> pl.DataFrame:
    """OHLCV rows of one symbol and interval."""
    step = interval_ms(interval)
    times, check = read_times(table, TIMES)
    columns = {name: _number(table, check, name, names) for name, names in _BARS.items()}
    prices = {name: columns[name].to_numpy() for name in ("open", "high", "low", "close")}
    for name, values in prices.items():
        check.refuse(values <= 0, _reason(f"{name} is {{}}, not a price", values))
    check.refuse(columns["volume"].to_numpy() < 0, _reason("volume is {}", columns["volume"].to_numpy()))
    high, low = prices["high"], prices["low"]
    check.refuse(high < low, lambda row: f"high {high[row]!s} is below low {low[row]!s}")
    instants = times.fill_null(0).to_numpy()
    check.refuse(instants % step != 0, lambda row: f"the time is not a multiple of {interval}")
    check.refuse(instants > LATEST - step, lambda row: "the bar ends after the year 9999")
    _rising(check, instants)
    check.raise_first()
    inside = (prices["open"] <= high) & (prices["open"] >= low) & (prices["close"] <= high) & (prices["close"] >= low)
    if not inside.all():
        bars = count_noun(int((~inside).sum()), "bar")
        table.notes.append(f"{bars} with open or close outside low and high; kept as in the file")
    spacing = table.spacing()
    if spacing is not None and spacing > step:
        table.notes.append(f"no two rows are {interval} apart: is the interval right?")
    return frame_of("bars", {"open_at": times, **columns})


def points_of(table: Table, kind: str) -> pl.DataFrame:
    """Rows of one value over time. Of prices in the form of bars the open counts: it is the price at that instant."""
    times, check = read_times(table, TIMES)
    values = _number(table, check, kind.replace("_", " "), (*_VALUES[kind], "open", "o"))
    amounts = values.to_numpy()
    if kind in ("mark", "oracle"):
        check.refuse(amounts <= 0, _reason("{} is not a price", amounts))
    if kind == "open_interest":
        check.refuse(amounts < 0, _reason("{} is not an open interest", amounts))
    _rising(check, times.fill_null(0).to_numpy())
    check.raise_first()
    return frame_of(kind, {"at": times, "value": values})


def read_times(table: Table, names: tuple[str, ...]) -> tuple[pl.Series, RowCheck]:
    """The time column as instants, and a check that has recorded the first row without a readable time."""
    column = table.frame[table.need("time", *names)]
    times = to_instants(column)
    check = RowCheck(table, times)
    check.refuse(
        times.is_null().to_numpy() if times.null_count() else np.zeros(len(times), dtype=bool),
        lambda row: "the time is missing" if column[row] is None else f"{display(column[row])} is not a time",
    )
    return times, check


def _number(table: Table, check: RowCheck, label: str, names: tuple[str, ...]) -> pl.Series:
    column = table.frame[table.need(label, *names)]
    numbers = numbers_of(column)
    bad = ~np.isfinite(numbers.fill_null(float("nan")).to_numpy())
    check.refuse(bad, lambda row: _not_a_number(label, column[row]))
    return numbers


def optional_times(table: Table, check: RowCheck, names: tuple[str, ...]) -> pl.Series:
    """A column of times that may be absent, or empty in some rows; any other value must be a time."""
    name = table.find(*names)
    if name is None:
        return pl.Series([None] * table.frame.height, dtype=pl.Int64)
    column = table.frame[name]
    if column.dtype == pl.String:
        column = column.str.strip_chars().replace("", None)
    times = to_instants(column)
    bad = (times.is_null() & column.is_not_null()).to_numpy()
    check.refuse(bad, lambda row: f"{name} {display(column[row])} is not a time")
    return times


def optional_number(table: Table, check: RowCheck, name: str) -> pl.Series:
    """A column of numbers that may be absent, or empty in some rows; any other value must be a finite number."""
    column_name = table.find(name)
    if column_name is None:
        return pl.Series([None] * table.frame.height, dtype=pl.Float64)
    column = table.frame[column_name]
    numbers = numbers_of(column)
    bad = column.is_not_null().to_numpy() & ~np.isfinite(numbers.fill_null(float("nan")).to_numpy())
    check.refuse(bad, lambda row: _not_a_number(name, column[row]))
    return numbers


def numbers_of(column: pl.Series) -> pl.Series:
    """The column as floats, null where a value is no number."""
    dtype = column.dtype
    if dtype.is_float() or dtype.is_integer():
        return column.cast(pl.Float64)
    if dtype.is_decimal() or dtype == pl.String:
        return column.cast(pl.String, strict=False).str.strip_chars().cast(pl.Float64, strict=False)
    return pl.Series([None] * len(column), dtype=pl.Float64)


def _rising(check: RowCheck, times: NDArray[np.int64]) -> None:
    step = np.diff(times, prepend=times[:1] - 1)
    check.refuse(step == 0, lambda row: "the same time as the row before (duplicated)")

    def reason(row: int) -> str:
        is_repeated = bool((times[:row] == times[row]).any())
        return "this time was there before (duplicated)" if is_repeated else "earlier than the row before (unordered)"

    check.refuse(step < 0, reason)


def frame_of(kind: str, columns: dict[str, pl.Series]) -> pl.DataFrame:
    """The columns in the order and with the types of their kind."""
    return pl.DataFrame([columns[name].cast(dtype).alias(name) for name, dtype in series(kind).columns.items()])


def text_of(table: Table, check: RowCheck, name: str) -> pl.Series:
    """A column as text; nested values are refused."""
    column = table.frame[name]
    if column.dtype.is_nested():
        check.refuse(column.is_not_null().to_numpy(), lambda row: f"{name} is not plain text")
        return pl.Series([None] * len(column), dtype=pl.String)
    return column.cast(pl.String, strict=False)


def constant_column(table: Table, text: str) -> pl.Series:
    """A column with the same text in every row."""
    return pl.Series([text] * table.frame.height, dtype=pl.String)


def _texts(column: pl.Series) -> pl.Series:
    return column.cast(pl.String, strict=False).str.strip_chars()


def _folded(name: str) -> str:
    return name.strip().casefold().replace(" ", "").replace("_", "")


def _reason(form: str, values: NDArray[np.float64]) -> Callable[[int], str]:
    return lambda row: form.format(values[row])


def _not_a_number(label: str, value: object) -> str:
    return f"{label} is missing" if value is None else f"{label} is {display(value)}, not a finite number"
