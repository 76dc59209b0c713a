"""Time columns of any form → UTC milliseconds: ISO text, seconds, milliseconds (micro, nano), dates, datetimes.

A time without a zone is UTC. A value that cannot be read becomes null; the caller decides what that means.
"""

import re
from datetime import UTC, datetime

import polars as pl

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:inf|nan)", re.IGNORECASE)
_DATE = re.compile(r"(?:19|20)\d{6}")
EARLIEST, LATEST = -62_135_596_800_000, 253_402_300_799_999
"""Years 1 to 9999, the range of `datetime`."""


def to_instants(column: pl.Series) -> pl.Series:
    """The column as Int64 milliseconds since 1970, null where a value cannot be read."""
    instants = _parse(column)
    if not instants.null_count():  # by numpy: a polars expression costs more where a file is small
        values = instants.to_numpy()
        if not len(values) or (values.min() >= EARLIEST and values.max() <= LATEST):
            return instants
    return instants.set(~instants.is_between(EARLIEST, LATEST).fill_null(True), None)


def _parse(column: pl.Series) -> pl.Series:
    dtype = column.dtype
    if isinstance(dtype, pl.Datetime):
        return column.dt.epoch("ms")
    if dtype == pl.Date:
        return column.cast(pl.Datetime("ms")).dt.epoch("ms")
    if dtype.is_numeric():
        return _scaled(column)
    if dtype in (pl.String, pl.Categorical) or isinstance(dtype, pl.Enum):
        texts = column.cast(pl.String)
        # the first value decides the form of the column; values of another form become null
        first = next((value.strip() for value in texts if value is not None), "")
        if _NUMBER.fullmatch(first) and not _DATE.fullmatch(first):  # 20250131 is a date, not seconds
            stripped = texts.str.strip_chars()
            numbers, integers = stripped.cast(pl.Float64, strict=False), stripped.cast(pl.Int64, strict=False)
            return _scaled(integers if integers.null_count() == numbers.null_count() else numbers)
        return pl.Series(column.name, [_parsed(value) for value in texts.to_list()], dtype=pl.Int64)
    return pl.Series(column.name, [None] * len(column), dtype=pl.Int64)


def _scaled(column: pl.Series) -> pl.Series:
    # The unit of a market time follows from its size: 1e11 seconds is the year 5138, 1e11 milliseconds is 1973.
    if column.dtype.is_float():
        column = column.fill_nan(None)
        column = column.set(column.is_infinite().fill_null(False), None)
    elif column.dtype.is_decimal():
        column = column.cast(pl.Float64)
    largest = column.abs().max()
    size = float(largest) if isinstance(largest, int | float) else 0.0
    if size < 1e11:
        return (column * 1000).round().cast(pl.Int64) if column.dtype.is_float() else column.cast(pl.Int64) * 1000
    if size < 1e14:
        return column.round().cast(pl.Int64) if column.dtype.is_float() else column.cast(pl.Int64)
    integers = column.cast(pl.Int64, strict=False)
    return integers // (1_000 if size < 1e17 else 1_000_000)


def _parsed(value: str | None) -> int | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value.strip().removesuffix(" UTC"))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)
