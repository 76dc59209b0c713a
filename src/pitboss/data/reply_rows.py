"""Rows of a server's reply → the columns of a kind. Rows are sorted and deduplicated; contradictions are refused.

Rows are validated by `table`, so that downloads obey the rules of imports; a violation is a malformed reply, which is
requested again.
"""

from typing import Any

import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import HOUR_MS, MINUTE_MS, Instant
from pitboss.data.fetch import MalformedReply
from pitboss.data.series import series
from pitboss.data.table import Table, bars_of, points_of
from pitboss.data.time_columns import EARLIEST, LATEST

MOST_ROWS = 100_000


def named_rows(value: Any, needed: tuple[str, ...]) -> list[dict[str, Any]]:
    """A list of objects that all have these keys, the first of them a time in milliseconds."""
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > MOST_ROWS:
        raise MalformedReply("the reply is not a list of rows")
    for row in value:
        if not isinstance(row, dict) or any(row.get(name) is None for name in needed):
            raise MalformedReply(f"a row of the reply lacks one of {', '.join(needed)}")
        _must_be_time(row[needed[0]])
    return value


def listed_rows(value: Any, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """A list of lists, whose first values get these names."""
    if not isinstance(value, list) or len(value) > MOST_ROWS:
        raise MalformedReply("the reply is not a list of rows")
    for row in value:
        if not isinstance(row, list) or len(row) < len(names):
            raise MalformedReply("a row of the reply is too short")
        _must_be_time(row[0])
    return [dict(zip(names, row, strict=False)) for row in value]


def checked_bars(rows: list[dict[str, Any]], interval: str, label: str) -> pl.DataFrame:
    """Bars with the names `t o h l c v`."""
    if not rows:
        return pl.DataFrame(schema=dict(series("bars").columns))
    table = _table([{name: row[name] for name in ("t", "o", "h", "l", "c", "v")} for row in rows], "t", label)
    try:
        return bars_of(table, interval)
    except UserError as error:
        raise MalformedReply(error.message) from None


def checked_points(rows: list[dict[str, Any]], kind: str, label: str) -> pl.DataFrame:
    """Values over time with the names `at` and `value`."""
    if not rows:
        return pl.DataFrame(schema=dict(series(kind).columns))
    table = _table([{"time": row["at"], "value": row["value"]} for row in rows], "time", label)
    try:
        return points_of(table, kind)
    except UserError as error:
        raise MalformedReply(error.message) from None


def on_the_hour(at: Instant) -> Instant:
    """Venues stamp a funding payment some milliseconds after the hour it belongs to."""
    hour = at // HOUR_MS * HOUR_MS
    return hour if at - hour < MINUTE_MS else at


def _table(rows: list[dict[str, Any]], time: str, label: str) -> Table:
    columns = {
        name: pl.Series([row[name] for row in rows], dtype=pl.Int64)
        if name == time
        else pl.Series([str(row[name]) for row in rows], dtype=pl.String).cast(pl.Float64, strict=False)
        for name in rows[0]
    }
    unique = pl.DataFrame(columns).unique().sort(time)
    if unique[time].is_duplicated().any():
        raise MalformedReply(f"{label}: two rows of one time differ")
    return Table(label, unique)


def _must_be_time(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not max(0, EARLIEST) <= value <= LATEST:
        raise MalformedReply("a row of the reply has no time")
