"""The base bars of a run for all symbols on one timeline, which the paper world consumes.

The tape holds future bars, so only the broker side may read it; agents, tools and policies get a `View`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

from pitboss.core.instant import DAY_MS, HOUR_MS, Instant
from pitboss.core.market import Bars, Floats, Ints, Points
from pitboss.core.noun import noun
from pitboss.core.order_book import Books
from pitboss.core.scaled import ScaledColumn, scale_column


@noun
class FundingRow:
    """One funding payment due in a bar; `price` is an imported mark or oracle price, or None to use the open."""

    symbol: str
    at: Instant
    rate: Decimal
    price: Decimal | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tape:
    """Columns over the union of the symbols' bar times; a missing bar is NaN, and `filled_close` repeats the last close.

    `funding` maps a bar index to the rows due in it. `funding_bars` and `funding_costs` (what one unit of size pays)
    hold the same per symbol as columns, for looking ahead with floats. `lowest` and `highest` serve the same purpose:
    they are the extremes including the open, because some sources have bars that open outside their own low and high.
    """

    interval_ms: int
    open_at: Ints
    symbols: tuple[str, ...]
    open: Mapping[str, Floats]
    high: Mapping[str, Floats]
    low: Mapping[str, Floats]
    close: Mapping[str, Floats]
    filled_close: Mapping[str, Floats]
    lowest: Mapping[str, Floats]
    highest: Mapping[str, Floats]
    funding: Mapping[int, tuple[FundingRow, ...]]
    funding_bars: Mapping[str, Ints]
    funding_costs: Mapping[str, Floats]
    regular: frozenset[str]
    """Symbols with a bar at every instant and every close inside its bar, so that extremes bound the closes."""
    day_stop: Ints
    """For each bar, the first later bar that closes after the midnight at or after its own close."""
    breaks: Sequence[int]
    """Bars that are preceded by a gap in time."""
    scaled_close: Mapping[str, ScaledColumn]
    """`filled_close` as integers, for symbols whose closes all fit."""
    volume: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    books: Mapping[str, Books] = field(default_factory=dict[str, Books])
    """Recorded order books, if the run uses them."""

    def __len__(self) -> int:
        return len(self.open_at)

    def index_of(self, at: Instant) -> int:
        """Return the first bar that opens at or after an instant."""
        return int(np.searchsorted(self.open_at, at, side="left"))

    def funded_bars(self, symbol: str, start: int, stop: int) -> tuple[Ints, Floats]:
        """Return the bars in `[start, stop)` with funding of a symbol, and what one unit of size pays in each."""
        bars = self.funding_bars.get(symbol)
        if bars is None:
            return NO_BARS, NO_COSTS
        first, last = bars.searchsorted((start, stop))
        return bars[first:last], self.funding_costs[symbol][first:last]


NO_BARS: Ints = np.zeros(0, np.int64)
NO_COSTS: Floats = np.zeros(0)


def make_tape(
    bars: Mapping[str, Bars],
    from_at: Instant,
    to_at: Instant,
    funding: Mapping[str, Points],
    prices: Mapping[str, Points],
    books: Mapping[str, Books] | None = None,
) -> Tape:
    """Align the symbols' base bars that open in `[from_at, to_at)`.

    `prices` are imported mark or oracle series; a value at a funding row's hour replaces the open.
    """
    symbols = tuple(sorted(bars))
    interval_ms = bars[symbols[0]].interval_ms
    run_bars: dict[str, Bars] = {}
    for symbol in symbols:
        start, stop = np.searchsorted(bars[symbol].open_at, [from_at, to_at], side="left")
        run_bars[symbol] = bars[symbol].slice(int(start), int(stop))
    open_at = run_bars[symbols[0]].open_at
    for symbol in symbols[1:]:
        if not np.array_equal(open_at, run_bars[symbol].open_at):
            open_at = np.union1d(open_at, run_bars[symbol].open_at)

    columns: dict[str, dict[str, Floats]] = {name: {} for name in ("open", "high", "low", "close", "volume")}
    filled_close: dict[str, Floats] = {}
    lowest: dict[str, Floats] = {}
    highest: dict[str, Floats] = {}
    for symbol, symbol_bars in run_bars.items():
        complete = len(symbol_bars) == len(open_at)
        indexes = None if complete else np.searchsorted(open_at, symbol_bars.open_at)
        for name, column in columns.items():
            values: Floats = getattr(symbol_bars, name)
            if indexes is not None:
                spread = np.full(len(open_at), np.nan)
                spread[indexes] = values
                values = spread
            column[symbol] = values
        filled_close[symbol] = columns["close"][symbol] if complete else _forward(columns["close"][symbol])

        opens, highs, lows = (columns[name][symbol] for name in ("open", "high", "low"))
        lowest[symbol] = np.fmin(opens, lows) if bool(np.any(opens < lows)) else lows
        highest[symbol] = np.fmax(opens, highs) if bool(np.any(opens > highs)) else highs

    rows = _funding_rows(symbols, open_at, interval_ms, funding, prices)
    bars_due, costs_due = _funding_columns(rows, columns["open"], filled_close)
    return Tape(
        interval_ms,
        open_at,
        symbols,
        columns["open"],
        columns["high"],
        columns["low"],
        columns["close"],
        filled_close,
        lowest,
        highest,
        rows,
        bars_due,
        costs_due,
        frozenset(symbol for symbol in symbols if _is_regular(run_bars[symbol], len(open_at))),
        _day_stops(open_at, interval_ms),
        (np.flatnonzero(np.diff(open_at) != interval_ms) + 1).tolist(),
        {symbol: column for symbol in symbols if (column := scale_column(filled_close[symbol])) is not None},
        columns["volume"],
        books or {},
    )


def _is_regular(bars: Bars, count: int) -> bool:
    return len(bars) == count and bool(np.all((bars.low <= bars.close) & (bars.close <= bars.high)))


def _day_stops(open_at: Ints, interval_ms: int) -> Ints:
    closes_at = open_at + interval_ms
    day = -(-closes_at // DAY_MS)  # the same for all bars that close after one midnight and up to the next
    ends = np.append(np.flatnonzero(np.diff(day)) + 1, len(day))
    return np.repeat(ends, np.diff(ends, prepend=0))


def _forward(values: Floats) -> Floats:
    """Replace each NaN by the last number before it, if any."""
    indexes = np.where(np.isnan(values), 0, np.arange(len(values)))
    return values[np.maximum.accumulate(indexes)]


def _funding_rows(
    symbols: Sequence[str],
    open_at: Ints,
    interval_ms: int,
    funding: Mapping[str, Points],
    prices: Mapping[str, Points],
) -> dict[int, tuple[FundingRow, ...]]:
    """Group funding rows by the bar in which they are due, which contains the row's time floored to the hour."""
    due: dict[int, list[FundingRow]] = {}
    for symbol in symbols:
        points = funding.get(symbol)
        if points is None or not len(points) or not len(open_at):
            continue
        hours = points.at // HOUR_MS * HOUR_MS
        bars = np.searchsorted(open_at, hours, side="right") - 1
        inside = (bars >= 0) & (hours < open_at[np.maximum(bars, 0)] + interval_ms)
        symbol_prices = prices.get(symbol)
        by_time: dict[Instant, float] = {}
        if symbol_prices is not None:
            by_time = dict(zip(symbol_prices.at.tolist(), symbol_prices.value.tolist(), strict=True))
        for at, hour, bar, rate in zip(
            points.at[inside].tolist(),
            hours[inside].tolist(),
            bars[inside].tolist(),
            points.value[inside].tolist(),
            strict=True,
        ):
            price = by_time.get(hour)
            row = FundingRow(symbol, at, Decimal(repr(rate)), None if price is None else Decimal(repr(price)))
            due.setdefault(bar, []).append(row)
    return {
        bar: tuple(rows) if len(rows) == 1 else tuple(sorted(rows, key=lambda row: (row.at, row.symbol)))
        for bar, rows in due.items()
    }


def _funding_columns(
    funding: Mapping[int, Sequence[FundingRow]], opens: Mapping[str, Floats], filled_close: Mapping[str, Floats]
) -> tuple[dict[str, Ints], dict[str, Floats]]:
    """Return, per symbol, the bars with funding rows, ascending, and the USD that one unit of size pays in each."""
    costs: dict[str, dict[int, float]] = {}
    for bar in sorted(funding):
        for row in funding[bar]:
            price = float(opens[row.symbol][bar]) if row.price is None else float(row.price)
            if price != price:  # no bar here: use the mark, which is the last close
                price = float(filled_close[row.symbol][bar])
            by_bar = costs.setdefault(row.symbol, {})
            by_bar[bar] = by_bar.get(bar, 0.0) + float(row.rate) * price
    bars = {symbol: np.fromiter(by_bar, np.int64, len(by_bar)) for symbol, by_bar in costs.items()}
    return bars, {symbol: np.fromiter(by_bar.values(), np.float64, len(by_bar)) for symbol, by_bar in costs.items()}
