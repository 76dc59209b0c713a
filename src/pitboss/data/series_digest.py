"""What a series of the lake contains, as rows, and the digest of it. Reading for a run is the lake's own work."""

import hashlib

import numpy as np
import polars as pl

from pitboss.core.instant import Instant
from pitboss.data.lake import Lake
from pitboss.data.series import series
from pitboss.data.staging import read_rows


def stored_rows(
    lake: Lake,
    kind: str,
    venue: str,
    symbol: str | None,
    interval: str | None,
    from_at: Instant | None = None,
    to_at: Instant | None = None,
) -> pl.DataFrame | None:
    """The stored rows of a series, from an instant up to and without another; None if there are none at all."""
    shape, folder = series(kind), lake.folder(kind, venue, symbol, interval)
    files = sorted(folder.glob("year=*/part.parquet")) if shape.time else [folder / "part.parquet"]
    frames = [read_rows(shape, path) for path in files if path.is_file()]
    if not frames:
        return None
    frame = pl.concat(frames)
    if shape.time and from_at is not None and to_at is not None:
        at = pl.col(shape.time).dt.epoch("ms")
        frame = frame.filter((at >= from_at) & (at < to_at))
    return frame.sort(shape.key).rechunk()


def digest(frame: pl.DataFrame | None) -> str:
    """SHA-256 over names and values of all rows in their order; the same for the same content, however it is filed."""
    total = hashlib.sha256()
    for column in frame.get_columns() if frame is not None else []:
        total.update(column.name.encode() + b"\0")
        numbers = column.dt.epoch("ms") if column.dtype.is_temporal() else column
        if not numbers.dtype.is_numeric() or numbers.null_count():
            total.update(repr(numbers.to_list()).encode())
            continue
        values = numbers.to_numpy()
        total.update(np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes())
    return total.hexdigest()
