"""`data check`: examines every file of the lake and reports what is wrong or worth knowing.

Import refuses bad rows, so a finding comes from a damaged disk, an edited file, or the venue itself: its gaps, outages,
wild bars and changes of the funding interval. It changes no data; a missing manifest is rebuilt.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, INTERVALS, Instant, interval_ms, iso
from pitboss.data import feed_checks
from pitboss.data.books import unsound_books
from pitboss.data.commit import STAGING
from pitboss.data.lake import Lake
from pitboss.data.manifest import MANIFEST, LakeManifest, describe_rows, load_manifest, rebuild_manifest
from pitboss.data.series import POINT_KINDS, SERIES, count_noun, series
from pitboss.data.series_files import SeriesFiles
from pitboss.data.series_info import find_holes
from pitboss.data.staging import read_rows, readable_rows, write_manifest
from pitboss.data.time_columns import EARLIEST, LATEST

_Error = Literal["unreadable", "bad_rows", "duplicates", "unordered", "changed", "missing"]
_Warning = Literal["gaps", "outage", "outside", "stale"]
_Note = Literal["outliers", "funding_interval", "ends_early", "manifest", "leftover", "unknown"]
Problem = _Error | _Warning | _Note
"""An error makes a file unusable, a warning can spoil a run over its span, a note is worth knowing."""
Severity = Literal["error", "warning", "note"]
SEVERITY: dict[Problem, Severity] = {
    **dict.fromkeys(get_args(_Error), "error"),
    **dict.fromkeys(get_args(_Warning), "warning"),
    **dict.fromkeys(get_args(_Note), "note"),
}
EARLY_MS = 7 * DAY_MS
_MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class QualityFinding:
    """One finding about one file or series. `usable` is False when no run should read it."""

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
    return _LakeCheck(lake).run()


class _LakeCheck:
    """One examination of a lake, which collects its findings."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.findings: list[QualityFinding] = []

    def run(self) -> list[QualityFinding]:
        all_files = self.lake.series_files()
        manifest = self._manifest(all_files)
        all_times: list[tuple[SeriesFiles, np.ndarray]] = []
        for files in all_files:
            frames = [frame for path in files.paths if (frame := self._file(files, path, manifest)) is not None]
            time = series(files.kind).time
            if not time or not frames:
                continue
            times = np.concatenate([_valid_times(frame[time]).drop_nulls().to_numpy() for frame in frames])
            if len(times):
                self._gaps(files, times)
                all_times.append((files, times))
                if len(times) == sum(frame.height for frame in frames) and np.all(np.diff(times) > 0):
                    self._feed(files, pl.concat(frames), times)
        self._outages(all_times)
        self._early_ends(all_times)
        self._unknown_files({path for files in all_files for path in files.paths})
        return self.findings

    def _add(
        self, files: SeriesFiles, path: Path | None, problem: Problem, count: int, at: int | None, detail: str
    ) -> None:
        """A finding about one file, or, without a path, about a whole series."""
        path = path or self.lake.folder(files.kind, files.venue, files.symbol, files.interval)
        identity = (files.venue, files.kind, files.symbol, files.interval)
        self._append(self._name(path), identity, problem, count, at, detail)

    def _add_file(self, name: str, kind: str, problem: Problem, detail: str) -> None:
        """A finding about a file that belongs to no series in the lake."""
        self._append(name, ("", kind, None, None), problem, 1, None, detail)

    def _append(
        self,
        name: str,
        identity: tuple[str, str, str | None, str | None],
        problem: Problem,
        count: int,
        at: Instant | None,
        detail: str,
    ) -> None:
        severity = SEVERITY[problem]
        usable = severity != "error"
        self.findings.append(QualityFinding(name, *identity, problem, count, at, detail, usable, severity))

    def _name(self, path: Path) -> str:
        return path.relative_to(self.lake.root).as_posix()

    def _manifest(self, all_files: list[SeriesFiles]) -> LakeManifest:
        manifest = load_manifest(self.lake.root)
        if manifest is None:
            manifest = rebuild_manifest(self.lake.root, readable_rows)
            if manifest.files:
                detail = (
                    f"was missing or unreadable; rebuilt from {count_noun(len(manifest.files), 'file')} as they are now"
                )
                try:
                    write_manifest(self.lake.root, manifest)
                except UserError:  # a read-only lake can be checked all the same
                    detail = "is missing or unreadable and cannot be written; changes of files cannot be detected"
                self._add_file(MANIFEST, "", "manifest", detail)
        names = {self._name(path) for files in all_files for path in files.paths}
        for name in sorted(set(manifest.files) - names):
            detail = f"{manifest.files[name].rows} rows were imported there; the file is gone"
            self._add_file(name, name.partition("/")[0], "missing", detail)
        return manifest

    def _file(self, files: SeriesFiles, path: Path, manifest: LakeManifest) -> pl.DataFrame | None:
        shape = series(files.kind)
        try:
            frame = read_rows(shape, path)
            frame = frame.select(pl.col(name).cast(dtype) for name, dtype in shape.columns.items())
        except (UserError, pl.exceptions.PolarsError) as error:
            self._add(files, path, "unreadable", 1, None, str(error).splitlines()[0])
            return None
        self._changes(files, path, frame, manifest)
        times = _valid_times(frame[shape.time]) if shape.time else None
        for problem, mask, detail in _bad_rows(files, frame, times):
            rows = np.flatnonzero(mask)
            if len(rows):
                at = times[int(rows[0])] if times is not None else None
                when = f" ({iso(at)})" if at is not None else ""
                detail = f"{len(rows)} {detail}, the first in row {int(rows[0]) + 1}{when}"
                self._add(files, path, problem, len(rows), at, detail)
        return frame

    def _changes(self, files: SeriesFiles, path: Path, frame: pl.DataFrame, manifest: LakeManifest) -> None:
        imported = manifest.files.get(self._name(path))
        current = describe_rows(series(files.kind), frame)
        if imported is None:
            detail = f"{current.rows} rows that no import added; delete {MANIFEST} to accept them as they are"
            self._add(files, path, "changed", current.rows, current.first_at, detail)
        elif imported != current:
            detail = (
                f"{current.rows} rows with digest {current.digest[:12]}, {imported.rows} with {imported.digest[:12]}"
                " were imported: changed by another program"
            )
            self._add(files, path, "changed", max(1, abs(current.rows - imported.rows)), None, detail)

    def _gaps(self, files: SeriesFiles, times: np.ndarray) -> None:
        holes = find_holes(files, times)
        if not len(holes):
            return
        steps = np.diff(times)[holes]
        detail = count_noun(len(holes), "hole")
        if files.interval:
            detail += f", {count_noun(int(np.sum(steps // interval_ms(files.interval) - 1)), 'bar')} missing"
        widest = sorted(holes[np.argsort(-steps, kind="stable")[:_MOST_NAMED]].tolist())
        spans = ", ".join(f"between {iso(int(times[hole]))} and {iso(int(times[hole + 1]))}" for hole in widest)
        detail += f": {spans}" if len(holes) <= _MOST_NAMED else f", the longest {spans}"
        self._add(files, None, "gaps", len(holes), int(times[int(holes[0])]), detail)

    def _feed(self, files: SeriesFiles, frame: pl.DataFrame, times: np.ndarray) -> None:
        """What sound rows in order show about the feed they came from."""
        joined = np.ones(len(times), dtype=bool)
        if files.kind == "bars" and files.interval:
            joined = np.diff(times, prepend=times[:1]) == interval_ms(files.interval)
            opens, closes, volumes = (frame[name].to_numpy() for name in ("open", "close", "volume"))
            if all(np.isfinite(column).all() and (column > 0).all() for column in (opens, closes)):
                self._stale(files, times, [closes, volumes], joined, "close and volume")
                self._outliers(files, times, feed_checks.returns(opens, closes, joined))
        elif files.kind in ("mark", "oracle", "open_interest"):
            self._stale(files, times, [frame["value"].to_numpy()], joined, "value")
        elif files.kind == "l2":
            self._stale(files, times, [frame[name].hash().to_numpy() for name in ("bids", "asks")], joined, "levels")
        elif files.kind == "funding":
            for change in feed_checks.changes(times):
                at = int(times[change.row])
                before, after = feed_checks.pace_text(change.before_ms), feed_checks.pace_text(change.after_ms)
                detail = f"paid every {before} until {iso(at)}, every {after} from then on"
                self._add(files, None, "funding_interval", 1, at, detail)

    def _stale(
        self, files: SeriesFiles, times: np.ndarray, columns: list[np.ndarray], joined: np.ndarray, label: str
    ) -> None:
        stretches = feed_checks.still(columns, joined)
        if stretches:
            longest = max(stretches, key=lambda stretch: stretch.length)
            noun = "stretch" if len(stretches) == 1 else "stretches"
            detail = (
                f"{len(stretches)} {noun} of more than {feed_checks.STILL} rows with the same {label}, the longest of"
                f" {longest.length} from {iso(int(times[longest.first]))} to {iso(int(times[longest.last]))}"
            )
            self._add(files, None, "stale", len(stretches), int(times[stretches[0].first]), detail)

    def _outliers(self, files: SeriesFiles, times: np.ndarray, moves: np.ndarray) -> None:
        wild, usual = feed_checks.outliers(times, moves)
        rows = np.flatnonzero(wild)
        if len(rows):
            top = int(rows[int(np.argmax(np.abs(moves[rows])))])
            detail = (
                f"{count_noun(len(rows), 'bar')} of {len(times)} with a return above {feed_checks.WILD:g} × the median of"
                f" the day, the largest {moves[top] * 100:+.2f} % at {iso(int(times[top]))}"
                f" (median {usual[top] * 100:.3f} %)"
            )
            self._add(files, None, "outliers", len(rows), int(times[int(rows[0])]), detail)

    def _outages(self, all_times: list[tuple[SeriesFiles, np.ndarray]]) -> None:
        """Spans in which no symbol of a venue has a bar; other intervals show whether the venue or the feed failed."""
        bars: dict[tuple[str, str], list[np.ndarray]] = {}
        for files, times in all_times:
            if files.kind == "bars" and files.interval:
                bars.setdefault((files.venue, files.interval), []).append(times)
        for venue, interval in sorted(bars, key=lambda key: (key[0], INTERVALS[key[1]])):
            for silence in feed_checks.silences(bars[venue, interval], INTERVALS[interval]):
                present = [
                    name
                    for name, length in INTERVALS.items()
                    if name != interval and _has_bar(bars.get((venue, name), []), silence, length)
                ]
                missing = (silence.to_at - silence.from_at) // INTERVALS[interval]
                detail = (
                    f"all {silence.symbols} symbols silent for {count_noun(missing, 'bar')} of {interval},"
                    f" {iso(silence.from_at)} to {iso(silence.to_at)}"
                )
                if present:
                    detail += f"; bars of {', '.join(present)} are there: not the venue"
                name = f"bars/venue={venue}/interval={interval}"
                self._append(name, (venue, "bars", None, interval), "outage", missing, silence.from_at, detail)

    def _early_ends(self, all_times: list[tuple[SeriesFiles, np.ndarray]]) -> None:
        ends = [(files, int(times.max())) for files, times in all_times if files.symbol]
        newest: dict[tuple[str, str], Instant] = {}
        for files, end in ends:
            newest[files.venue, files.kind] = max(end, newest.get((files.venue, files.kind), end))
        for files, end in ends:
            early_ms = newest[files.venue, files.kind] - end
            if early_ms > EARLY_MS:
                detail = f"ends {iso(end)}, {early_ms // DAY_MS} days before the newest {files.kind} of {files.venue}"
                self._add(files, None, "ends_early", 1, end, detail)

    def _unknown_files(self, paths: set[Path]) -> None:
        for staged in sorted(self.lake.root.glob(f"{STAGING}*")):
            self._add_file(staged.name, "", "leftover", "left by an import that was killed; the next one removes it")
        for kind in sorted(SERIES):
            for path in sorted((self.lake.root / kind).glob("**/*.parquet")):
                if path not in paths:
                    self._add_file(self._name(path), kind, "unknown", "not where the lake keeps its files; never read")


def _valid_times(times: pl.Series) -> pl.Series:
    instants = times.dt.epoch("ms")
    return instants.set(~instants.is_between(EARLIEST, LATEST).fill_null(True), None)


def _bad_rows(
    files: SeriesFiles, frame: pl.DataFrame, times: pl.Series | None
) -> list[tuple[Problem, np.ndarray, str]]:
    """Masks of the rows that break a rule, with the problem and its description."""
    optional = series(files.kind).optional
    required = [name for name in frame.columns if name not in optional]
    missing = frame.select(pl.any_horizontal(pl.col(required).is_null())).to_series().to_numpy()
    if times is not None:
        missing = missing | times.is_null().to_numpy()
    infinite = np.zeros(frame.height, dtype=bool)
    for name in (name for name, dtype in frame.schema.items() if dtype == pl.Float64):
        infinite |= ~np.isfinite(frame[name].fill_null(0.0).to_numpy())
    masks: list[tuple[Problem, np.ndarray, str]] = [
        ("bad_rows", missing, "rows with missing values"),
        ("bad_rows", infinite, "rows with numbers that are not finite"),
    ]
    if times is not None and files.kind in ("bars", *POINT_KINDS, "l2"):
        steps = np.diff(times.fill_null(0).to_numpy(), prepend=-(2**62))
        masks.append(("duplicates", steps == 0, "rows with the time of the row before"))
        masks.append(("unordered", steps < 0, "rows earlier than the row before"))
    if files.kind == "l2":
        bad, crossed = unsound_books(frame)
        masks.append(("bad_rows", bad & ~missing, "books with a side that is empty, unordered or not above zero"))
        masks.append(("bad_rows", crossed, "books whose best bid is not below the best ask"))
    if files.kind in ("mark", "oracle"):
        masks.append(("bad_rows", frame["value"].fill_null(1.0).to_numpy() <= 0, "prices that are not positive"))
    if files.kind == "bars" and files.interval and times is not None:
        opens, highs, lows, closes = prices = [
            frame[name].fill_null(1.0).to_numpy() for name in ("open", "high", "low", "close")
        ]
        positive = np.logical_and.reduce([values > 0 for values in prices])
        off_grid = times.fill_null(0).to_numpy() % interval_ms(files.interval) != 0
        outside = (opens > highs) | (opens < lows) | (closes > highs) | (closes < lows)
        outside &= (highs >= lows) & ~missing & ~infinite
        masks.append(("bad_rows", ~positive & ~infinite, "bars with prices that are not positive"))
        masks.append(("bad_rows", highs < lows, "bars with high below low"))
        masks.append(("bad_rows", off_grid, f"bars off the {files.interval} grid"))
        masks.append(("outside", outside, "bars that open or close outside their low and high"))
    return masks


def _has_bar(symbols_times: list[np.ndarray], silence: feed_checks.Silence, step: int) -> bool:
    """Whether any symbol has a bar that lies completely inside the silence."""
    for times in symbols_times:
        row = int(np.searchsorted(times, silence.from_at))
        if row < len(times) and times[row] + step <= silence.to_at:
            return True
    return False
