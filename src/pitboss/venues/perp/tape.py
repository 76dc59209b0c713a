"""The base bars of a run for all symbols on one clock: what the paper world consumes.

The tape holds the future. It belongs to the broker's side of the house; agents, tools and policies get a `View`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from pitboss.core.instant import HOUR_MS, Instant
from pitboss.core.market import Bars, Floats, Ints, Points


@dataclass(frozen=True, slots=True)
class FundingRow:
    """One funding payment due in a bar. `price` is an imported mark or oracle price, else None: use the open."""

    symbol: str
    at: Instant
    rate: Decimal
    price: Decimal | None


@dataclass(frozen=True, slots=True, eq=False)
class Tape:
    """Columns over the union of the symbols' bar times. A symbol's missing bar is NaN; `filled` carries its last close.

    `funding` maps a bar index to the rows due in it. `funding_bars` and `funding_rates` tell the same per symbol as
    columns, for looking ahead with floats.
    """

    interval_ms: int
    open_at: Ints
    symbols: tuple[str, ...]
    open: Mapping[str, Floats]
    high: Mapping[str, Floats]
    low: Mapping[str, Floats]
    close: Mapping[str, Floats]
    filled: Mapping[str, Floats]
    funding: Mapping[int, tuple[FundingRow, ...]]
    funding_bars: Mapping[str, Ints]
    funding_rates: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(self.open_at)

    def index_of(self, at: Instant) -> int:
        """First bar opening at or after an instant."""
        return int(np.searchsorted(self.open_at, at, side="left"))

    def funded_bars(self, symbol: str, start: int, stop: int) -> tuple[Ints, Floats]:
        """Bars in `[start, stop)` with funding rows of a symbol, and their rates (the sum where there are several)."""
        bars = self.funding_bars.get(symbol)
        if bars is None:
            return NO_BARS, NO_RATES
        first, last = np.searchsorted(bars, (start, stop))
        return bars[first:last], self.funding_rates[symbol][first:last]


NO_BARS: Ints = np.zeros(0, np.int64)
NO_RATES: Floats = np.zeros(0)


def make_tape(
    bars: Mapping[str, Bars],
    from_at: Instant,
    to_at: Instant,
    funding: Mapping[str, Points],
    prices: Mapping[str, Points],
) -> Tape:
    """Align the symbols' base bars that open in `[from_at, to_at)`.

    `prices` are imported mark or oracle series; where one has a value at a funding row's hour it replaces the open.
    """
    symbols = tuple(sorted(bars))
    interval_ms = bars[symbols[0]].interval_ms
    cuts: dict[str, Bars] = {}
    for symbol in symbols:
        whole = bars[symbol]
        start, stop = np.searchsorted(whole.open_at, [from_at, to_at], side="left")
        cuts[symbol] = whole.slice(int(start), int(stop))
    open_at = cuts[symbols[0]].open_at
    for symbol in symbols[1:]:
        if not np.array_equal(open_at, cuts[symbol].open_at):
            open_at = np.union1d(open_at, cuts[symbol].open_at)

    columns: dict[str, dict[str, Floats]] = {name: {} for name in ("open", "high", "low", "close")}
    filled: dict[str, Floats] = {}
    for symbol, cut in cuts.items():
        whole_clock = len(cut) == len(open_at)
        places = np.searchsorted(open_at, cut.open_at)
        for name, column in columns.items():
            values: Floats = getattr(cut, name)
            if not whole_clock:
                spread = np.full(len(open_at), np.nan)
                spread[places] = values
                values = spread
            column[symbol] = values
        filled[symbol] = columns["close"][symbol] if whole_clock else _forward(columns["close"][symbol])

    rows, bars_due, rates_due = _funding_rows(symbols, open_at, interval_ms, funding, prices)
    return Tape(
        interval_ms,
        open_at,
        symbols,
        columns["open"],
        columns["high"],
        columns["low"],
        columns["close"],
        filled,
        rows,
        bars_due,
        rates_due,
    )


def _forward(values: Floats) -> Floats:
    """Each NaN replaced by the last number before it, if any."""
    places = np.where(np.isnan(values), 0, np.arange(len(values)))
    return values[np.maximum.accumulate(places)]


def _funding_rows(
    symbols: Sequence[str],
    open_at: Ints,
    interval_ms: int,
    funding: Mapping[str, Points],
    prices: Mapping[str, Points],
) -> tuple[dict[int, tuple[FundingRow, ...]], dict[str, Ints], dict[str, Floats]]:
    """Rows by the bar in which they fall due: the bar whose span holds the row's time floored to the hour."""
    due: dict[int, list[FundingRow]] = {}
    bars_due: dict[str, Ints] = {}
    rates_due: dict[str, Floats] = {}
    for symbol in symbols:
        points = funding.get(symbol)
        if points is None or not len(points) or not len(open_at):
            continue
        hours = points.at // HOUR_MS * HOUR_MS
        places = np.searchsorted(open_at, hours, side="right") - 1
        inside = (places >= 0) & (hours < open_at[np.maximum(places, 0)] + interval_ms)
        known = prices.get(symbol)
        by_time = dict(zip(known.at.tolist(), known.value.tolist(), strict=True)) if known is not None else {}
        for at, hour, place, rate in zip(
            points.at[inside].tolist(),
            hours[inside].tolist(),
            places[inside].tolist(),
            points.value[inside].tolist(),
            strict=True,
        ):
            price = by_time.get(hour)
            row = FundingRow(symbol, at, Decimal(repr(rate)), None if price is None else Decimal(repr(price)))
            due.setdefault(place, []).append(row)
        bars_due[symbol], places_of = np.unique(places[inside], return_inverse=True)
        rates_due[symbol] = np.bincount(places_of, weights=points.value[inside])
    ordered = {place: tuple(sorted(rows, key=lambda row: (row.at, row.symbol))) for place, rows in due.items()}
    return ordered, bars_due, rates_due
