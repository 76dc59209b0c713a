"""Another future for each series of a lake, chosen to expose code that goes by the wrong time.

Prices and values after the cut are others at the same times. News published before the cut arrives just after it, an
unannounced event is due within the hour, a value comes one millisecond later, a symbol is listed or delisted at once.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.random import Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.audit.cut_lake import SeriesName
from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, Instant, interval_ms
from pitboss.core.market import Ints
from pitboss.data.series import TIME

MOST_ITEMS = 12
"""News and events of the real future that are moved and changed; the others are left out."""


@dataclass(frozen=True, slots=True)
class ChangedFuture:
    """The changes after `at`. Rows from two days after the end of the range on are left out."""

    at: Instant
    to_at: Instant
    symbols: Collection[str]
    dice: Generator

    def __call__(self, name: SeriesName, past: pl.DataFrame, future: pl.DataFrame) -> pl.DataFrame:
        """The past rows of a series and its changed future."""
        if name.kind == "listings":
            return changed_listings(past, self.at)
        if name.kind == "bars":
            changed = self._bars(name, past, future)
        elif name.kind == "news":
            changed = self._news(future)
        elif name.kind == "events":
            changed = self._events(future)
        elif name.shape.columns.keys() == {"at", "value"}:
            changed = self._points(name, past, future)
        else:
            changed = future.head(0)
        return pl.concat([past, changed])

    def _bars(self, name: SeriesName, past: pl.DataFrame, future: pl.DataFrame) -> pl.DataFrame:
        future = future.filter(pl.col("open_at") < _moment(self.to_at + 2 * DAY_MS))
        if not past.height and future.height:
            future = self._earlier(future, interval_ms(name.interval or ""))
        factor = self.dice.choice((0.4, 2.5)) * np.exp(np.cumsum(self.dice.normal(0.0, 0.02, future.height)))
        prices = [(pl.col(column) * pl.Series(factor)).alias(column) for column in ("open", "high", "low", "close")]
        volume = (pl.col("volume") * pl.Series(self.dice.uniform(0.1, 10.0, future.height))).alias("volume")
        return future.with_columns(*prices, volume)

    def _earlier(self, future: pl.DataFrame, step: int) -> pl.DataFrame:
        """A series that has not begun, begun at once: the same bars, repeated from the cut to the last one."""
        opened_at: Ints = future["open_at"].dt.epoch("ms").to_numpy()
        times = np.arange(-(-self.at // step) * step, int(opened_at[-1]) + step, step)
        rows = future[np.arange(len(times)) % future.height]
        return rows.with_columns(pl.Series("open_at", times).cast(TIME))

    def _points(self, name: SeriesName, past: pl.DataFrame, future: pl.DataFrame) -> pl.DataFrame:
        low, high = (-5.0, 5.0) if name.kind == "funding" else (0.5, 2.0)
        future = future.filter(pl.col("at") < _moment(self.to_at + 2 * DAY_MS))
        changed = future.with_columns(pl.col("value") * pl.Series(self.dice.uniform(low, high, future.height)))
        if not past.height:
            return changed
        # funding belongs to the hour of its timestamp: one inside the hour of the cut would change the past
        first_at = -(-self.at // HOUR_MS) * HOUR_MS if name.kind == "funding" else self.at
        usual = float(past["value"][-1]) or 1e-5
        planted = {"at": [first_at + 1], "value": [usual * self.dice.uniform(low, high)]}
        return pl.concat([_rows(name, planted), changed])

    def _news(self, future: pl.DataFrame) -> pl.DataFrame:
        items = future.head(MOST_ITEMS)
        texts = [*(text[::-1] for text in items["text"]), *(f"{symbol} planted headline" for symbol in self.symbols)]
        marks = self.dice.integers(1 << 30, size=len(texts)).tolist()
        symbols = [*items["symbols"], *self.symbols]
        return _rows(
            SeriesName("news", ""),
            {
                "published_at": [self.at - (1 + 7 * index) * MINUTE_MS for index in range(len(texts))],
                "source": [*items["source"], *("audit" for _ in self.symbols)],
                "text": [f"{text} {mark}" for text, mark in zip(texts, marks, strict=True)],
                "sentiment": self.dice.uniform(-1, 1, len(texts)).tolist(),
                "symbols": symbols,
                "date_only": [False] * len(texts),
                "first_seen_at": [self.at + 1 + index for index in range(len(texts))],
            },
        )

    def _events(self, future: pl.DataFrame) -> pl.DataFrame:
        items = future.head(MOST_ITEMS)
        count = items.height + 1
        return _rows(
            SeriesName("events", ""),
            {
                "scheduled_at": [self.at + 30 * MINUTE_MS + index * MINUTE_MS for index in range(count)],
                "kind": ["planted", *items["kind"]],
                "title": [f"meeting {int(self.dice.integers(1 << 30))}", *items["title"]],
                "known_at": [self.at + 1] * count,
                "importance": [1.0] * count,
                "symbols": [",".join(sorted(self.symbols)), *items["symbols"]],
            },
        )


def changed_listings(rows: pl.DataFrame, at: Instant) -> pl.DataFrame:
    """Listings as they are known by an instant, each of which begins or ends, unannounced, a minute later."""
    moment, soon = _moment(at), _moment(at + MINUTE_MS)
    begins = pl.col("listed_at") > moment
    return rows.with_columns(
        pl.when(begins).then(soon).otherwise(pl.col("listed_at")).alias("listed_at"),
        pl.when(~begins.fill_null(False) & pl.col("delisted_at").is_null())
        .then(soon)
        .otherwise(pl.col("delisted_at"))
        .alias("delisted_at"),
    )


def _moment(at: Instant) -> pl.Expr:
    return pl.lit(at).cast(TIME)


def _rows(name: SeriesName, columns: dict[str, list[object]]) -> pl.DataFrame:
    shape = name.shape.columns
    cast = {column: pl.Series(values).cast(dtype) for column, dtype in shape.items() for values in [columns[column]]}
    return pl.DataFrame(cast)
