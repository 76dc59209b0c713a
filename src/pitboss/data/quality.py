"""`data check`: looks at every file of the lake and says what is wrong or worth knowing.

Import refuses bad rows, so what is found here came from a damaged disk, an edited file, or the venue itself: its holes,
outages, wild bars and changes of the funding interval. It changes no data; a manifest that is missing is made.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, INTERVALS, Instant, interval_ms, iso
from pitboss.data import feed_checks as watching
from pitboss.data.books import unsound_books
from pitboss.data.commit import STAGING
from pitboss.data.lake import Lake, find_holes
from pitboss.data.manifest import MANIFEST, LakeManifest, describe_rows, load_manifest, rebuild_manifest
from pitboss.data.series import POINT_KINDS, SERIES, count_noun, series
from pitboss.data.series_files import SeriesFiles
from pitboss.data.staging import read_rows, readable_rows, write_manifest
from pitboss.data.time_columns import EARLIEST, LATEST

Problem = Literal[
    "unreadable",
    "bad_rows",
    "duplicates",
    "unordered",
    "changed",
    "missing",
    "gaps",
    "outage",
    "outside",
    "stale",
    "outliers",
    "funding_interval",
    "ends_early",
    "manifest",
    "leftover",
    "unknown",
]
Severity = Literal["error", "warning", "note"]
SEVERITY: dict[Problem, Severity] = {
    "unreadable": "error",
    "bad_rows": "error",
    "duplicates": "error",
    "unordered": "error",
    "changed": "error",
    "missing": "error",
    "gaps": "warning",
    "outage": "warning",
    "outside": "warning",
    "stale": "warning",
    "outliers": "note",
    "funding_interval": "note",
    "ends_early": "note",
    "manifest": "note",
    "leftover": "note",
    "unknown": "note",
}
"""An error makes a file unusable, a warning can spoil a run over its span, a note is worth knowing."""
EARLY_MS = 7 * DAY_MS
_NAMED = 4


@dataclass(frozen=True, slots=True)
class QualityFinding:
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
    severity: Severity


def check_lake(lake: Lake) -> list[QualityFinding]:
    """All findings, sorted by series; an empty list means that nothing is wrong."""
    findings: list[QualityFinding] = []
    heard: list[tuple[SeriesFiles, np.ndarray]] = []
    places = lake.places()
    known = _manifest(lake, places, findings)
    for place in places:
        frames = [frame for path in place.files if (frame := _file(lake, place, path, known, findings)) is not None]
        time = series(place.kind).time
        if time and frames:
            moments = np.concatenate([_real(frame[time]).drop_nulls().to_numpy() for frame in frames])
            if len(moments):
                _gaps(lake, place, moments, findings)
                heard.append((place, moments))
                if len(moments) == sum(frame.height for frame in frames) and np.all(np.diff(moments) > 0):
                    _feed(lake, place, pl.concat(frames), moments, findings)
    _outages(lake, heard, findings)
    _early(lake, [(place, int(moments.max())) for place, moments in heard], findings)
    _strays(lake, {path for place in places for path in place.files}, findings)
    return findings


def _manifest(lake: Lake, places: list[SeriesFiles], findings: list[QualityFinding]) -> LakeManifest:
    known = load_manifest(lake.root)
    if known is None:
        known = rebuild_manifest(lake.root, readable_rows)
        if known.files:
            text = f"was missing or unreadable; made anew from {count_noun(len(known.files), 'file')} as they are now"
            try:
                write_manifest(lake.root, known)
            except UserError:  # a lake that may only be read can be checked all the same
                text = "is missing or unreadable and cannot be written; nothing tells whether files were changed"
            findings.append(_about(MANIFEST, "", "manifest", text))
    there = {path.relative_to(lake.root).as_posix() for place in places for path in place.files}
    for name in sorted(set(known.files) - there):
        kind = name.partition("/")[0]
        text = f"{known.files[name].rows} rows were imported there; the file is gone"
        findings.append(_about(name, kind, "missing", text))
    return known


def _file(
    lake: Lake, place: SeriesFiles, path: Path, known: LakeManifest, findings: list[QualityFinding]
) -> pl.DataFrame | None:
    shape = series(place.kind)
    try:
        frame = read_rows(shape, path)
        frame = frame.select(pl.col(name).cast(dtype) for name, dtype in shape.columns.items())
    except (UserError, pl.exceptions.PolarsError) as error:
        findings.append(_finding(lake, place, path, "unreadable", 1, None, str(error).splitlines()[0]))
        return None
    _unchanged(lake, place, path, frame, known, findings)
    moments = _real(frame[shape.time]) if shape.time else None
    for problem, bad, detail in _rows(place, frame, moments):
        rows = np.flatnonzero(bad)
        if len(rows):
            at = moments[int(rows[0])] if moments is not None else None
            text = f"{len(rows)} {detail}, the first in row {int(rows[0]) + 1}" + (
                f" ({iso(at)})" if at is not None else ""
            )
            findings.append(_finding(lake, place, path, problem, len(rows), at, text))
    return frame


def _unchanged(
    lake: Lake, place: SeriesFiles, path: Path, frame: pl.DataFrame, known: LakeManifest, findings: list[QualityFinding]
) -> None:
    before = known.files.get(path.relative_to(lake.root).as_posix())
    now = describe_rows(series(place.kind), frame)
    if before is None:
        text = f"{now.rows} rows that no import brought; delete {MANIFEST} to take them as they are"
        findings.append(_finding(lake, place, path, "changed", now.rows, now.first_at, text))
    elif before != now:
        text = (
            f"{now.rows} rows with digest {now.digest[:12]}, {before.rows} with {before.digest[:12]} were imported:"
            " changed by someone else"
        )
        findings.append(_finding(lake, place, path, "changed", max(1, abs(now.rows - before.rows)), None, text))


def _real(times: pl.Series) -> pl.Series:
    moments = times.dt.epoch("ms")
    return moments.set(~moments.is_between(EARLIEST, LATEST).fill_null(True), None)


def _rows(place: SeriesFiles, frame: pl.DataFrame, moments: pl.Series | None) -> list[tuple[Problem, np.ndarray, str]]:
    optional = series(place.kind).optional
    needed = [name for name in frame.columns if name not in optional]
    missing = frame.select(pl.any_horizontal(pl.col(needed).is_null())).to_series().to_numpy()
    if moments is not None:
        missing = missing | moments.is_null().to_numpy()
    floats = [name for name, dtype in frame.schema.items() if dtype == pl.Float64]
    wild = np.zeros(frame.height, dtype=bool)
    for name in floats:
        wild |= ~np.isfinite(frame[name].fill_null(0.0).to_numpy())
    found: list[tuple[Problem, np.ndarray, str]] = [
        ("bad_rows", missing, "rows with missing values"),
        ("bad_rows", wild, "rows with numbers that are not finite"),
    ]
    if moments is not None and place.kind in ("bars", *POINT_KINDS, "l2"):
        steps = np.diff(moments.fill_null(0).to_numpy(), prepend=-(2**62))
        found.append(("duplicates", steps == 0, "rows with the time of the row before"))
        found.append(("unordered", steps < 0, "rows earlier than the row before"))
    if place.kind == "l2":
        bad, crossed = unsound_books(frame)
        found.append(("bad_rows", bad & ~missing, "books with a side that is empty, unordered or not above zero"))
        found.append(("bad_rows", crossed, "books whose best bid is not below the best ask"))
    if place.kind in ("mark", "oracle"):
        found.append(("bad_rows", frame["value"].fill_null(1.0).to_numpy() <= 0, "prices that are not positive"))
    if place.kind == "bars" and place.interval and moments is not None:
        price = {name: frame[name].fill_null(1.0).to_numpy() for name in ("open", "high", "low", "close")}
        low, high = price["low"], price["high"]
        positive = np.logical_and.reduce([values > 0 for values in price.values()])
        off = moments.fill_null(0).to_numpy() % interval_ms(place.interval) != 0
        outside = (price["open"] > high) | (price["open"] < low) | (price["close"] > high) | (price["close"] < low)
        found.append(("bad_rows", ~positive & ~wild, "bars with prices that are not positive"))
        found.append(("bad_rows", high < low, "bars with high below low"))
        found.append(("bad_rows", off, f"bars off the {place.interval} grid"))
        found.append(
            (
                "outside",
                outside & (high >= low) & ~missing & ~wild,
                "bars that open or close outside their low and high",
            )
        )
    return found


def _gaps(lake: Lake, place: SeriesFiles, moments: np.ndarray, findings: list[QualityFinding]) -> None:
    holes = find_holes(place, moments)
    if not len(holes):
        return
    steps = np.diff(moments)[holes]
    said = count_noun(len(holes), "hole")
    if place.interval:
        said += f", {count_noun(int(np.sum(steps // interval_ms(place.interval) - 1)), 'bar')} missing"
    widest = sorted(holes[np.argsort(-steps, kind="stable")[:_NAMED]].tolist())
    spans = [f"between {iso(int(moments[hole]))} and {iso(int(moments[hole + 1]))}" for hole in widest]
    detail = f"{said}: {', '.join(spans)}" if len(holes) <= _NAMED else f"{said}, the longest {', '.join(spans)}"
    first = int(moments[int(holes[0])])
    findings.append(_finding(lake, place, _folder(lake, place), "gaps", len(holes), first, detail))


def _feed(
    lake: Lake, place: SeriesFiles, frame: pl.DataFrame, moments: np.ndarray, findings: list[QualityFinding]
) -> None:
    """What sound rows in their order say about the feed they came from."""
    if place.kind == "bars" and place.interval:
        joined = np.diff(moments, prepend=moments[:1]) == interval_ms(place.interval)
        opens, closes, volumes = (frame[name].to_numpy() for name in ("open", "close", "volume"))
        if not all(np.isfinite(column).all() and (column > 0).all() for column in (opens, closes)):
            return
        _still(lake, place, watching.still([closes, volumes], joined), moments, "close and volume", findings)
        _wild(lake, place, moments, watching.returns(opens, closes, joined), findings)
    elif place.kind in ("mark", "oracle", "open_interest"):
        joined = np.ones(len(moments), dtype=bool)
        _still(lake, place, watching.still([frame["value"].to_numpy()], joined), moments, "value", findings)
    elif place.kind == "l2":
        sides = [frame[name].hash().to_numpy() for name in ("bids", "asks")]
        joined = np.ones(len(moments), dtype=bool)
        _still(lake, place, watching.still(sides, joined), moments, "levels", findings)
    elif place.kind == "funding":
        for change in watching.changes(moments):
            at = int(moments[change.row])
            before, after = watching.pace_text(change.before_ms), watching.pace_text(change.after_ms)
            text = f"paid every {before} until {iso(at)}, every {after} from then on"
            findings.append(_finding(lake, place, _folder(lake, place), "funding_interval", 1, at, text))


def _still(
    lake: Lake,
    place: SeriesFiles,
    found: list[watching.RowRange],
    moments: np.ndarray,
    what: str,
    findings: list[QualityFinding],
) -> None:
    if found:
        longest = max(found, key=lambda stretch: stretch.length)
        begins, ends = iso(int(moments[longest.first])), iso(int(moments[longest.last]))
        text = (
            f"{count_noun(len(found), 'stretch').replace('stretchs', 'stretches')} of more than {watching.STILL} rows"
            f" with the same {what}, the longest of {longest.length} from {begins} to {ends}"
        )
        first = int(moments[found[0].first])
        findings.append(_finding(lake, place, _folder(lake, place), "stale", len(found), first, text))


def _wild(
    lake: Lake, place: SeriesFiles, moments: np.ndarray, moves: np.ndarray, findings: list[QualityFinding]
) -> None:
    wild, usual = watching.outliers(moments, moves)
    rows = np.flatnonzero(wild)
    if len(rows):
        top = int(rows[int(np.argmax(np.abs(moves[rows])))])
        text = (
            f"{count_noun(len(rows), 'bar')} of {len(moments)} with a return above {watching.WILD:g} × the median of the day,"
            f" the largest {moves[top] * 100:+.2f} % at {iso(int(moments[top]))} (median {usual[top] * 100:.3f} %)"
        )
        at = int(moments[int(rows[0])])
        findings.append(_finding(lake, place, _folder(lake, place), "outliers", len(rows), at, text))


def _outages(lake: Lake, heard: list[tuple[SeriesFiles, np.ndarray]], findings: list[QualityFinding]) -> None:
    """Spans in which no symbol of a venue has a bar; other intervals tell the venue's silence from the recorder's."""
    bars: dict[tuple[str, str], list[np.ndarray]] = {}
    for place, moments in heard:
        if place.kind == "bars" and place.interval:
            bars.setdefault((place.venue, place.interval), []).append(moments)
    for venue, interval in sorted(bars, key=lambda key: (key[0], INTERVALS[key[1]])):
        for silence in watching.silences(bars[venue, interval], INTERVALS[interval]):
            others = [
                other
                for at_venue, other in bars
                if at_venue == venue and other != interval and _heard(bars[at_venue, other], silence, INTERVALS[other])
            ]
            missing = (silence.to_at - silence.from_at) // INTERVALS[interval]
            text = (
                f"all {silence.symbols} symbols silent for {count_noun(missing, 'bar')} of {interval},"
                f" {iso(silence.from_at)} to {iso(silence.to_at)}"
            )
            if others:
                text += (
                    f"; bars of {', '.join(sorted(others, key=lambda name: INTERVALS[name]))} are there: not the venue"
                )
            where = f"bars/venue={venue}/interval={interval}"
            made = QualityFinding(
                where, venue, "bars", None, interval, "outage", missing, silence.from_at, text, True, SEVERITY["outage"]
            )
            findings.append(made)


def _heard(series: list[np.ndarray], silence: watching.Silence, step: int) -> bool:
    """Whether any symbol has a bar that lies wholly inside the silence."""
    for moments in series:
        row = int(np.searchsorted(moments, silence.from_at))
        if row < len(moments) and moments[row] + step <= silence.to_at:
            return True
    return False


def _early(lake: Lake, last_seen: list[tuple[SeriesFiles, Instant]], findings: list[QualityFinding]) -> None:
    newest: dict[tuple[str, str], Instant] = {}
    for place, last in last_seen:
        if place.symbol:
            key = (place.venue, place.kind)
            newest[key] = max(last, newest.get(key, last))
    for place, last in last_seen:
        latest = newest.get((place.venue, place.kind), last)
        if place.symbol and latest - last > EARLY_MS:
            detail = (
                f"ends {iso(last)}, {(latest - last) // DAY_MS} days before the newest {place.kind} of {place.venue}"
            )
            findings.append(_finding(lake, place, _folder(lake, place), "ends_early", 1, last, detail))


def _strays(lake: Lake, known: set[Path], findings: list[QualityFinding]) -> None:
    for left in sorted(lake.root.glob(f"{STAGING}*")):
        findings.append(_about(left.name, "", "leftover", "left by an import that was killed; the next one removes it"))
    for kind in sorted(SERIES):
        for path in sorted((lake.root / kind).glob("**/*.parquet")):
            if path not in known:
                where = path.relative_to(lake.root).as_posix()
                findings.append(_about(where, kind, "unknown", "not where the lake keeps its files; it is never read"))


def _about(file: str, kind: str, problem: Problem, detail: str) -> QualityFinding:
    """A finding about a file that belongs to no series that is there."""
    severity = SEVERITY[problem]
    return QualityFinding(file, "", kind, None, None, problem, 1, None, detail, severity != "error", severity)


def _finding(
    lake: Lake, place: SeriesFiles, path: Path, problem: Problem, count: int, at: Instant | None, detail: str
) -> QualityFinding:
    where, severity = path.relative_to(lake.root).as_posix(), SEVERITY[problem]
    named = (place.venue, place.kind, place.symbol, place.interval)
    return QualityFinding(where, *named, problem, count, at, detail, severity != "error", severity)


def _folder(lake: Lake, place: SeriesFiles) -> Path:
    return lake.folder(place.kind, place.venue, place.symbol, place.interval)
