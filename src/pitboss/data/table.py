"""Raw columns → the columns of a kind, or one clear refusal naming the row and its time.

What is refused: what cannot be read, what is missing, not finite, not positive where it is a price, high below low,
times out of order, repeated or off the interval's grid. News and events are in `told`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pitboss.core.errors import UserError
from pitboss.core.instant import interval_ms, iso
from pitboss.data.series import TIME, count_noun, series
from pitboss.data.time_columns import to_instants

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
    """One file's raw columns, found under any of their usual names."""

    where: str
    frame: pl.DataFrame
    notes: list[str] = field(default_factory=list[str])
    places: NDArray[np.int64] | None = None
    """Where each row stands in the file, if this is only a part of it."""

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

    def need(self, what: str, *names: str) -> str:
        """As `find`, but its absence is an error."""
        found = self.find(*names)
        if found is None:
            have = ", ".join(self.frame.columns[:12])
            raise UserError(f"{self.where}: no column for {what}", f"one of {', '.join(names)}; the file has {have}")
        return found

    def kind(self) -> str | None:
        """What the columns look like, if they look like anything."""
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
        """Symbols named in a column, sorted."""
        return self._words(SYMBOLS)

    def intervals(self) -> list[str]:
        """Intervals named in a column, sorted."""
        return self._words(_INTERVALS)

    def only(self, symbol: str | None, interval: str | None) -> "Table":
        """The rows of one symbol and one interval, where columns tell them apart."""
        wanted = np.ones(self.frame.height, dtype=bool)
        for word, words, names in ((symbol, self.symbols(), SYMBOLS), (interval, self.intervals(), _INTERVALS)):
            if word in words and len(words) > 1:
                named = self.frame[self.need("", *names)].cast(pl.String)
                wanted &= (named == word).fill_null(False).to_numpy()
        return Table(self.where, self.frame.filter(wanted), places=np.flatnonzero(wanted))

    def assets(self) -> list[dict[str, object]]:
        """The rows as the `universe` of a `meta` reply has them."""
        found = {name: self.need(what, *names) for name, (what, *names) in _ASSETS.items()}
        table_id = self.find("marginTableId")
        columns = found | ({"marginTableId": table_id} if table_id else {})
        return self.frame.select(pl.col(column).alias(name) for name, column in columns.items()).to_dicts()

    def spacing(self) -> int | None:
        """The smallest step between two rows, in milliseconds."""
        name = self.find(*TIMES)
        steps = to_instants(self.frame[name]).diff().drop_nulls() if name else pl.Series([], dtype=pl.Int64)
        least = steps.filter(steps > 0).min()
        return least if isinstance(least, int) else None

    def _words(self, names: tuple[str, ...]) -> list[str]:
        found = self.find(*names)
        if found is None or self.frame[found].dtype.is_nested():
            return []
        return sorted(str(word) for word in self.frame[found].drop_nulls().unique() if str(word).strip())


class RowCheck:
    """Finds the first bad row of a table, whichever rule it breaks."""

    def __init__(self, table: Table, times: pl.Series) -> None:
        self._table = table
        self._times = times
        self._first: tuple[int, Callable[[int], str]] | None = None

    def refuse(self, bad: NDArray[np.bool_], reason: Callable[[int], str]) -> None:
        found = int(np.argmax(bad)) if bad.any() else None
        if found is not None and (self._first is None or found < self._first[0]):
            self._first = (found, reason)

    def done(self) -> None:
        if self._first is None:
            return
        row, reason = self._first
        at, places = self._times[row], self._table.places
        when = f" ({iso(at)})" if at is not None else ""
        number = 1 + (row if places is None else int(places[row]))
        raise UserError(
            f"{self._table.where}: row {number}{when}: {reason(row)}", "correct the file and import it again"
        )


def bars_of(table: Table, interval: str) -> pl.DataFrame:
    """OHLCV rows of one symbol and interval."""
    step = interval_ms(interval)
    times, check = read_times(table, TIMES)
    columns = {name: _number(table, check, name, names) for name, names in _BARS.items()}
    prices = {name: columns[name].to_numpy() for name in ("open", "high", "low", "close")}
    for name, values in prices.items():
        check.refuse(values <= 0, _says(f"{name} is {{}}, not a price", values))
    check.refuse(columns["volume"].to_numpy() < 0, _says("volume is {}", columns["volume"].to_numpy()))
    high, low = prices["high"], prices["low"]
    check.refuse(high < low, lambda row: f"high {high[row]!s} is below low {low[row]!s}")
    moment = times.fill_null(0).to_numpy()
    check.refuse(moment % step != 0, lambda row: f"the time is not a multiple of {interval}")
    _rising(check, moment)
    check.done()
    inside = (prices["open"] <= high) & (prices["open"] >= low) & (prices["close"] <= high) & (prices["close"] >= low)
    if not inside.all():
        found = count_noun(int((~inside).sum()), "bar")
        table.notes.append(f"{found} with open or close outside low and high; kept as given")
    spacing = table.spacing()
    if spacing is not None and spacing > step:
        table.notes.append(f"no two rows are {interval} apart: is the interval right?")
    return frame_of("bars", {"open_at": times, **columns})


def points_of(table: Table, kind: str) -> pl.DataFrame:
    """Rows of one value over time. Prices given as bars count by their open: it is the price at that instant."""
    times, check = read_times(table, TIMES)
    values = _number(table, check, kind.replace("_", " "), (*_VALUES[kind], "open", "o"))
    amounts = values.to_numpy()
    if kind in ("mark", "oracle"):
        check.refuse(amounts <= 0, _says("{} is not a price", amounts))
    if kind == "open_interest":
        check.refuse(amounts < 0, _says("{} is not an open interest", amounts))
    _rising(check, times.fill_null(0).to_numpy())
    check.done()
    return frame_of(kind, {"at": times, "value": values})


def read_times(table: Table, names: tuple[str, ...]) -> tuple[pl.Series, RowCheck]:
    column = table.frame[table.need("time", *names)]
    times = to_instants(column)
    check = RowCheck(table, times)
    check.refuse(
        times.is_null().to_numpy() if times.null_count() else np.zeros(len(times), dtype=bool),
        lambda row: "the time is missing" if column[row] is None else f"{display(column[row])} is not a time",
    )
    return times, check


def _number(table: Table, check: RowCheck, what: str, names: tuple[str, ...]) -> pl.Series:
    column = table.frame[table.need(what, *names)]
    numbers = numbers_of(column)
    bad = ~np.isfinite(numbers.fill_null(float("nan")).to_numpy())
    check.refuse(bad, lambda row: _why(what, column[row]))
    return numbers


def optional_number(table: Table, check: RowCheck, name: str) -> pl.Series:
    found = table.find(name)
    if found is None:
        return pl.Series([None] * table.frame.height, dtype=pl.Float64)
    column = table.frame[found]
    numbers = numbers_of(column)
    bad = column.is_not_null().to_numpy() & ~np.isfinite(numbers.fill_null(float("nan")).to_numpy())
    check.refuse(bad, lambda row: _why(name, column[row]))
    return numbers


def numbers_of(column: pl.Series) -> pl.Series:
    dtype = column.dtype
    if dtype.is_float() or dtype.is_integer():
        return column.cast(pl.Float64)
    if dtype.is_decimal() or dtype == pl.String:
        return column.cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    return pl.Series([None] * len(column), dtype=pl.Float64)


def _rising(check: RowCheck, moment: NDArray[np.int64]) -> None:
    step = np.diff(moment, prepend=moment[:1] - 1)
    check.refuse(step == 0, lambda row: "the same time as the row before (duplicated)")
    seen: set[int] = set()

    def disorder(row: int) -> str:
        seen.update(int(at) for at in moment[:row])
        return (
            "this time was there before (duplicated)"
            if int(moment[row]) in seen
            else "earlier than the row before (unordered)"
        )

    check.refuse(step < 0, disorder)


def frame_of(kind: str, columns: dict[str, pl.Series]) -> pl.DataFrame:
    shape = series(kind).columns
    return pl.DataFrame([_as(columns[name], dtype).alias(name) for name, dtype in shape.items()])


def _as(column: pl.Series, dtype: pl.DataType) -> pl.Series:
    return column if column.dtype == dtype else column.cast(TIME if dtype == TIME else dtype)


def text_of(table: Table, check: RowCheck, name: str) -> pl.Series:
    column = table.frame[name]
    if column.dtype.is_nested():
        check.refuse(column.is_not_null().to_numpy(), lambda row: f"{name} is not plain text")
        return pl.Series([None] * len(column), dtype=pl.String)
    return column.cast(pl.String, strict=False)


def constant_column(table: Table, word: str) -> pl.Series:
    return pl.Series([word] * table.frame.height, dtype=pl.String)


def _folded(name: str) -> str:
    return name.strip().casefold().replace(" ", "").replace("_", "")


def _says(form: str, values: NDArray[np.float64]) -> Callable[[int], str]:
    return lambda row: form.format(values[row])


def _why(what: str, value: object) -> str:
    return f"{what} is missing" if value is None else f"{what} is {display(value)}, not a finite number"


def display(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)
