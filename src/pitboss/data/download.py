"""`data download`: fetches what a source has and the lake lacks, page by page.

No state is kept beside the lake: what is missing is computed from the stored rows each time. A download that was killed
is resumed by the same command and ends with the same rows as one that was not. A page is committed whole or not at all
(`staging`). A gap is requested once more before it is accepted.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import Instant, interval_ms, iso
from pitboss.core.market import Ints
from pitboss.data.downloaded_news import SeenItems
from pitboss.data.fetch import Fetcher
from pitboss.data.lake import Lake
from pitboss.data.merge import RowChanges
from pitboss.data.series import count_noun, series
from pitboss.data.source import DataSource, DownloadRequest, Ranged, SeriesRows, Single, StoredState, Task

PASSES = 3
"""Passes over a range while its gaps still get smaller."""
NEAR = 4
"""Gaps that are less than this fraction of a page apart are requested together."""
_EXAMPLES = {
    "symbols": "--symbols BTC,ETH",
    "interval": "--interval 15m",
    "from": "--from 2025-01-01",
    "url": "--url https://…",
}

Span = tuple[Instant, Instant]


@dataclass(frozen=True, slots=True)
class DownloadResult:
    """The result for one series. `digest` is of the rows in the requested range, whatever files hold them."""

    source: str
    venue: str
    kind: str
    symbol: str | None
    interval: str | None
    rows: int
    added: int
    replaced: int
    first_at: Instant | None
    last_at: Instant | None
    holes: int
    digest: str
    notes: tuple[str, ...] = ()


@dataclass
class DownloadProgress:
    """The progress of a download, which may be read at any time. `show` is called with the finished share and a label."""

    show: Callable[[float, str], None] = lambda share, label: None
    share: float = 0.0
    added: int = 0
    finished: list[DownloadResult] = field(default_factory=list[DownloadResult])

    def update(self, share: float, label: str) -> None:
        """Set the finished share and show it."""
        self.share = share
        self.show(share, label)


async def download(
    lake: Lake,
    source: DataSource,
    request: DownloadRequest,
    fetcher: Fetcher,
    progress: DownloadProgress | None = None,
    replace: bool = False,
) -> list[DownloadResult]:
    """Fetch everything that is requested. Rows stored before a failure stay stored."""
    progress = progress or DownloadProgress()
    _validate(lake, source, request)
    tasks = await source.plan(request, fetcher)
    for number, task in enumerate(tasks):
        share = (number / len(tasks), 1 / len(tasks))
        progress.update(share[0], _label(task))
        if isinstance(task, Ranged):
            results = [await _RangedDownload(lake, source, request, task, fetcher, progress, replace, share).run()]
        else:
            results = await _download_single(lake, source, request, task, progress, replace)
        progress.finished += results
    progress.update(1.0, "done")
    return progress.finished


def rows_digest(frame: pl.DataFrame | None) -> str:
    """SHA-256 over the names and values of all rows in their order, however they are split into files."""
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


class _RangedDownload:
    """The download of one series over a range of time."""

    def __init__(
        self,
        lake: Lake,
        source: DataSource,
        request: DownloadRequest,
        task: Ranged,
        fetcher: Fetcher,
        progress: DownloadProgress,
        replace: bool,
        share: tuple[float, float],
    ) -> None:
        self.lake, self.source, self.request, self.task = lake, source, request, task
        self.progress, self.replace, self.share = progress, replace, share
        self.added = self.replaced = 0
        now = fetcher.now()  # a bar that is not over yet is not requested
        self.end_at = min(request.to_at, now // task.pace_ms * task.pace_ms if task.interval else now + 1)

    async def run(self) -> DownloadResult:
        """Make all passes over the range."""
        task = self.task
        for turn in range(PASSES):
            times = _times(self._rows())
            if self.replace and not turn:
                times = times[:0]  # rows to be replaced must be requested
            spans = missing_spans(times, self.request.from_at, self.end_at, task.pace_ms)
            if turn and not len(times):
                break
            if turn:
                spans = _shortened(spans, int(times[0]), task)
            added_before = self.added
            for span in join_spans(spans, task.page_ms // NEAR):
                await self._fetch(span, first_turn=not turn)
            if turn and self.added == added_before:
                break
        return self._result()

    async def _fetch(self, span: Span, first_turn: bool) -> None:
        task = self.task
        cursor, latest = span[0], -1
        while cursor < span[1]:
            # from the second page on with one row of overlap, on which the two pages must agree
            start = max(span[0], cursor - task.pace_ms)
            end = min(start + task.page_ms, span[1])
            page = await task.page(start, end)
            last = self._store(page)
            if last is None or last + task.pace_ms >= end or last <= latest:
                cursor = end  # complete, or as far as the server has rows
            else:
                cursor, latest = last + task.pace_ms, last  # the page was cut short: continue after its last row
            if first_turn:
                part = (cursor - self.request.from_at) / max(1, self.request.to_at - self.request.from_at)
                self.progress.update(self.share[0] + self.share[1] * min(1.0, max(0.0, part)), _label(task))

    def _store(self, frame: pl.DataFrame) -> Instant | None:
        """Store a page; returns the time of its last row."""
        if frame.is_empty():
            return None
        task = self.task
        try:
            changes = self.lake.put(task.kind, self.request.venue, task.symbol, task.interval, frame, self.replace)
        except UserError as error:
            raise UserError(f"{_label(task)}: {error.message}", error.hint) from None
        self.added += changes.added
        self.replaced += changes.replaced
        self.progress.added += changes.added
        return int(frame[series(task.kind).time or ""].dt.epoch("ms")[-1])

    def _rows(self) -> pl.DataFrame | None:
        task, request = self.task, self.request
        span = (request.from_at, request.to_at)
        return self.lake.stored_rows(task.kind, request.venue, task.symbol, task.interval, span)

    def _result(self) -> DownloadResult:
        task, frame = self.task, self._rows()
        times = _times(frame)
        notes: list[str] = []
        gaps: list[Span] = []
        if not len(times):
            notes.append("the source has nothing in this range")
        elif int(times[0]) - self.request.from_at > task.pace_ms:
            notes.append(f"the source has it only from {iso(int(times[0]))} on")
        if task.interval and len(times):
            gaps = missing_spans(times, int(times[0]), int(times[-1]) + 1, task.pace_ms)
            if gaps:
                notes.append(f"{count_noun(len(gaps), 'hole')}, the first from {iso(gaps[0][0])} to {iso(gaps[0][1])}")
            if self.end_at - int(times[-1]) > 2 * task.pace_ms:
                notes.append(f"the source has it only up to {iso(int(times[-1]))}")
        return DownloadResult(
            self.source.name,
            self.request.venue,
            task.kind,
            task.symbol,
            task.interval,
            len(times),
            self.added,
            self.replaced,
            int(times[0]) if len(times) else None,
            int(times[-1]) if len(times) else None,
            len(gaps),
            rows_digest(frame),
            tuple(notes),
        )


async def _download_single(
    lake: Lake, source: DataSource, request: DownloadRequest, task: Single, progress: DownloadProgress, replace: bool
) -> list[DownloadResult]:
    stored = None if series(task.kind).per_symbol else lake.stored_rows(task.kind, request.venue)
    seen_items = SeenItems(lake.root, request.venue)
    try:
        fetched = await task.fetch(StoredState(stored, seen_items))
    except (UserError, TransientError) as error:
        if not task.optional:
            raise
        failure = SeriesRows(task.kind, None, pl.DataFrame(), (f"{task.label} could not be downloaded: {error}",))
        return [_single_result(source, request, failure, RowChanges(0, 0, 0))]
    results: list[DownloadResult] = []
    with lake.writing() as batch:  # what was fetched together is committed together
        for rows in fetched:
            changes = RowChanges(0, 0, 0)
            if rows.frame.height:
                folder = lake.folder(rows.kind, request.venue, rows.symbol, None)
                changes = batch.put(series(rows.kind), folder, rows.frame, replace or rows.replace)
            results.append(_single_result(source, request, rows, changes))
    # after the rows: if the process is killed in between, an item is recognised by its headline
    seen_items.add({key: at for rows in fetched for key, at in rows.keys.items()})
    progress.added += sum(result.added for result in results)
    return results


def _single_result(
    source: DataSource, request: DownloadRequest, rows: SeriesRows, changes: RowChanges
) -> DownloadResult:
    time, frame = series(rows.kind).time, rows.frame
    times = frame[time].dt.epoch("ms") if time and frame.height else None
    notes = rows.notes
    if rows.kind == "meta" and changes.replaced:
        notes = (*notes, f"{count_noun(changes.replaced, 'asset')} changed since the last time")
    return DownloadResult(
        source.name,
        request.venue,
        rows.kind,
        rows.symbol,
        None,
        frame.height,
        changes.added,
        changes.replaced,
        int(times[0]) if times is not None else None,
        int(times[-1]) if times is not None else None,
        0,
        rows_digest(frame),
        notes,
    )


def missing_spans(times: Ints, from_at: Instant, to_at: Instant, pace_ms: int) -> list[Span]:
    """The spans between rows further apart than the pace, from the first step of the range to its end."""
    first, end = -(-from_at // pace_ms) * pace_ms, -(-to_at // pace_ms) * pace_ms
    if first >= end:
        return []
    inside = times[(times >= first) & (times < end)]
    edges = np.concatenate([[first - pace_ms], inside, [end]]).astype(np.int64)
    wide = np.flatnonzero(np.diff(edges) > pace_ms)
    return [(int(edges[at]) + pace_ms, int(edges[at + 1])) for at in wide]


def join_spans(spans: Iterable[Span], within_ms: int) -> list[Span]:
    """Spans in order, neighbours that are close to each other joined: one request for both costs less than two."""
    merged: list[Span] = []
    for start, end in spans:
        if merged and start - merged[-1][1] <= within_ms:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def _shortened(spans: list[Span], first_at: Instant, task: Ranged) -> list[Span]:
    # before the first row the source most likely has nothing: only the page next to it is requested again
    return [(max(start, end - task.page_ms), end) if end <= first_at else (start, end) for start, end in spans]


def _times(frame: pl.DataFrame | None) -> Ints:
    return np.empty(0, np.int64) if frame is None else frame[frame.columns[0]].dt.epoch("ms").to_numpy()


def _label(task: Task) -> str:
    return task.label if isinstance(task, Single) else f"{task.symbol} {task.interval or task.kind}"


def _validate(lake: Lake, source: DataSource, request: DownloadRequest) -> None:
    kinds = source.kinds_of(request)
    values = {"symbols": request.symbols, "interval": request.intervals, "from": request.from_at, "url": request.urls}
    needs = [need for need in source.needs if need != "interval" or "bars" in kinds]
    if set(kinds) <= {"meta"}:
        needs = []
    if not set(kinds) & {"bars", "funding"}:
        needs = [need for need in needs if need != "from"]
    for need in needs:
        if not values[need]:
            raise UserError(f"{source.name} needs --{need}", f"for example {_EXAMPLES[need]}")
    for interval in request.intervals:
        interval_ms(interval)
    if "from" in needs and request.from_at >= request.to_at:
        raise UserError(
            f"there is nothing between {iso(request.from_at)} and {iso(request.to_at)}", "--from must be before --to"
        )
    if lake.is_synthetic(request.venue):
        raise UserError(f"venue {request.venue!r} holds generated data", "file real data under another --venue")
