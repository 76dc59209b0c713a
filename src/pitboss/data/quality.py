"""`data check`: looks at every file of the lake and says what is wrong or worth knowing.

Import refuses bad rows, so what is found here came from a damaged disk, an edited file, or the venue's own holes.
It changes nothing.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, Instant, interval_ms, iso
from pitboss.data.lake import Lake, Place, find_holes
from pitboss.data.moment import EARLIEST, LATEST
from pitboss.data.series import SERIES, counted, series
from pitboss.data.staging import STAGING, read_parquet

Problem = Literal[
    "unreadable", "bad_rows", "duplicates", "unordered", "gaps", "outside", "stale", "leftover", "unknown"
]
STALE_MS = 7 * DAY_MS


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about one file or series. `usable` is False when no run should read it."""

    file: str
    venue: str
    kind: str
    symbol: str | None
    interval: str | None
    problem: Problem
    count: int
    first_at: Instant | None
    detail: str
    usable: bool


def check(lake: Lake) -> list[Finding]:
    """All findings, sorted by series; an empty list means that nothing is wrong."""
    findings: list[Finding] = []
    last_seen: list[tuple[Place, Instant]] = []
    places = lake.places()
    for place in places:
        frames = [frame for path in place.files if (frame := _file(lake, place, path, findings)) is not None]
        time = series(place.kind).time
        if time and frames:
            moments = np.concatenate([_real(frame[time]).drop_nulls().to_numpy() for frame in frames])
            if len(moments):
                _gaps(lake, place, moments, findings)
                last_seen.append((place, int(moments.max())))
    _stale(lake, last_seen, findings)
    _strays(lake, {path for place in places for path in place.files}, findings)
    return findings


def _file(lake: Lake, place: Place, path: Path, findings: list[Finding]) -> pl.DataFrame | None:
    shape = series(place.kind)
    try:
        frame = read_parquet(path, list(shape.columns))
        frame = frame.select(pl.col(name).cast(dtype) for name, dtype in shape.columns.items())
    except (UserError, pl.exceptions.PolarsError) as error:
        findings.append(_finding(lake, place, path, "unreadable", 1, None, str(error).splitlines()[0], usable=False))
        return None
    moments = _real(frame[shape.time]) if shape.time else None
    for problem, bad, detail, usable in _rows(place, frame, moments):
        rows = np.flatnonzero(bad)
        if len(rows):
            at = moments[int(rows[0])] if moments is not None else None
            text = f"{len(rows)} {detail}, the first in row {int(rows[0]) + 1}" + (
                f" ({iso(at)})" if at is not None else ""
            )
            findings.append(_finding(lake, place, path, problem, len(rows), at, text, usable))
    return frame


def _real(times: pl.Series) -> pl.Series:
    moments = times.dt.epoch("ms")
    return moments.set(~moments.is_between(EARLIEST, LATEST).fill_null(True), None)


def _rows(place: Place, frame: pl.DataFrame, moments: pl.Series | None) -> list[tuple[Problem, np.ndarray, str, bool]]:
    optional = ("sentiment",)
    needed = [name for name in frame.columns if name not in optional]
    missing = frame.select(pl.any_horizontal(pl.col(needed).is_null())).to_series().to_numpy()
    if moments is not None:
        missing = missing | moments.is_null().to_numpy()
    floats = [name for name, dtype in frame.schema.items() if dtype == pl.Float64]
    wild = np.zeros(frame.height, dtype=bool)
    for name in floats:
        wild |= ~np.isfinite(frame[name].fill_null(0.0).to_numpy())
    found: list[tuple[Problem, np.ndarray, str, bool]] = [
        ("bad_rows", missing, "rows with missing values", False),
        ("bad_rows", wild, "rows with numbers that are not finite", False),
    ]
    if moments is not None and place.kind in ("bars", "funding", "mark", "oracle", "open_interest"):
        steps = np.diff(moments.fill_null(0).to_numpy(), prepend=-(2**62))
        found.append(("duplicates", steps == 0, "rows with the time of the row before", False))
        found.append(("unordered", steps < 0, "rows earlier than the row before", False))
    if place.kind in ("mark", "oracle"):
        found.append(("bad_rows", frame["value"].fill_null(1.0).to_numpy() <= 0, "prices that are not positive", False))
    if place.kind == "bars" and place.interval and moments is not None:
        price = {name: frame[name].fill_null(1.0).to_numpy() for name in ("open", "high", "low", "close")}
        low, high = price["low"], price["high"]
        positive = np.logical_and.reduce([values > 0 for values in price.values()])
        off = moments.fill_null(0).to_numpy() % interval_ms(place.interval) != 0
        outside = (price["open"] > high) | (price["open"] < low) | (price["close"] > high) | (price["close"] < low)
        found.append(("bad_rows", ~positive & ~wild, "bars with prices that are not positive", False))
        found.append(("bad_rows", high < low, "bars with high below low", False))
        found.append(("bad_rows", off, f"bars off the {place.interval} grid", False))
        found.append(
            (
                "outside",
                outside & (high >= low) & ~missing & ~wild,
                "bars that open or close outside their low and high",
                True,
            )
        )
    return found


def _gaps(lake: Lake, place: Place, moments: np.ndarray, findings: list[Finding]) -> None:
    holes = find_holes(place, moments)
    if not len(holes):
        return
    steps = np.diff(moments)[holes]
    widest = int(holes[int(np.argmax(steps))])
    begins, ends = iso(int(moments[widest])), iso(int(moments[widest + 1]))
    said = counted(len(holes), "hole")
    if place.interval:
        said += f", {counted(int(np.sum(steps // interval_ms(place.interval) - 1)), 'bar')} missing"
    detail = f"{said}, the longest between {begins} and {ends}"
    folder = lake.folder(place.kind, place.venue, place.symbol, place.interval)
    first = int(moments[int(holes[0])])
    findings.append(_finding(lake, place, folder, "gaps", len(holes), first, detail, usable=True))


def _stale(lake: Lake, last_seen: list[tuple[Place, Instant]], findings: list[Finding]) -> None:
    newest: dict[tuple[str, str], Instant] = {}
    for place, last in last_seen:
        if place.symbol:
            key = (place.venue, place.kind)
            newest[key] = max(last, newest.get(key, last))
    for place, last in last_seen:
        latest = newest.get((place.venue, place.kind), last)
        if place.symbol and latest - last > STALE_MS:
            detail = (
                f"ends {iso(last)}, {(latest - last) // DAY_MS} days before the newest {place.kind} of {place.venue}"
            )
            folder = lake.folder(place.kind, place.venue, place.symbol, place.interval)
            findings.append(_finding(lake, place, folder, "stale", 1, last, detail, usable=True))


def _strays(lake: Lake, known: set[Path], findings: list[Finding]) -> None:
    for left in sorted(lake.root.glob(f"{STAGING}*")):
        text = "left by an import that was killed; the next import removes it"
        findings.append(Finding(left.name, "", "", None, None, "leftover", 1, None, text, usable=True))
    for kind in sorted(SERIES):
        for path in sorted((lake.root / kind).glob("**/*.parquet")):
            if path not in known:
                where = path.relative_to(lake.root).as_posix()
                text = "not where the lake keeps its files; it is never read"
                findings.append(Finding(where, "", kind, None, None, "unknown", 1, None, text, usable=True))


def _finding(
    lake: Lake, place: Place, path: Path, problem: Problem, count: int, at: Instant | None, detail: str, usable: bool
) -> Finding:
    where = path.relative_to(lake.root).as_posix()
    return Finding(where, place.venue, place.kind, place.symbol, place.interval, problem, count, at, detail, usable)
