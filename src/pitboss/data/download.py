"""`data download`: what a source has and the lake has not → the lake, page by page.

Nothing is remembered beside the lake itself: what is missing is found by looking at what is stored, every time. So a
download that was killed goes on with the same command, and ends with the same rows as one that was not. A page lands
whole or not at all (`staging`). A hole is asked for once more before it is believed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import Instant, interval_ms, iso
from pitboss.core.market import Ints
from pitboss.data.fetch import Fetcher
from pitboss.data.lake import Lake
from pitboss.data.seen_items import SeenItems
from pitboss.data.series import count_noun, series
from pitboss.data.series_digest import digest, stored_rows
from pitboss.data.source import DataSource, DownloadRequest, Ranged, SeriesRows, Single, StoredState, Task

PASSES = 3
"""Times a range is gone over while its holes still get smaller."""
NEAR = 4
"""Holes nearer to each other than this part of a page are asked for together."""

Span = tuple[Instant, Instant]


@dataclass(frozen=True, slots=True)
class DownloadResult:
    """What became of one series. `digest` is of the content of the asked range, whatever files hold it."""

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
    """What whoever looks on may see at any moment: how far it is, and what was stored."""

    show: Callable[[float, str], None] = lambda done, what: None
    done: float = 0.0
    added: int = 0
    finished: list[DownloadResult] = field(default_factory=list[DownloadResult])

    def moved(self, done: float, what: str) -> None:
        """Tell it."""
        self.done = done
        self.show(done, what)


async def download(
    lake: Lake,
    source: DataSource,
    wanted: DownloadRequest,
    fetcher: Fetcher,
    sight: DownloadProgress | None = None,
    replace: bool = False,
) -> list[DownloadResult]:
    """Bring everything that is wanted. What was stored before something went wrong stays stored."""
    sight = sight or DownloadProgress()
    _must_make_sense(lake, source, wanted)
    tasks = await source.plan(wanted, fetcher)
    for number, task in enumerate(tasks):
        share = (number / len(tasks), 1 / len(tasks))
        sight.moved(share[0], _label(task))
        if isinstance(task, Ranged):
            done = [await _Series(lake, source, wanted, task, fetcher, sight, replace, share).run()]
        else:
            done = await _single(lake, source, wanted, task, sight, replace)
        sight.finished += done
    sight.moved(1.0, "done")
    return sight.finished


class _Series:
    """One ranged series on its way into the lake."""

    def __init__(
        self,
        lake: Lake,
        source: DataSource,
        wanted: DownloadRequest,
        task: Ranged,
        fetcher: Fetcher,
        sight: DownloadProgress,
        replace: bool,
        share: tuple[float, float],
    ) -> None:
        self.lake, self.source, self.wanted, self.task = lake, source, wanted, task
        self.fetcher, self.sight, self.replace, self.share = fetcher, sight, replace, share
        self.added = self.replaced = 0

    async def run(self) -> DownloadResult:
        """All passes over the range, and what came of them."""
        task, end_at = self.task, self._end()
        for turn in range(PASSES):
            stored = self._stored()
            if self.replace and not turn:
                stored = stored[:0]  # to be replaced, it must be asked for
            holes = missing_spans(stored, self.wanted.from_at, end_at, task.pace_ms)
            if turn and len(stored):
                holes = _shortened(holes, int(stored[0]), task)
            if turn and not len(stored):
                break
            before = self.added
            for span in join_spans(holes, task.page_ms // NEAR):
                await self._span(span, first_turn=not turn)
            if turn and self.added == before:
                break
        return self._told(end_at)

    async def _span(self, span: Span, first_turn: bool) -> None:
        task = self.task
        cursor, latest = span[0], -1
        while cursor < span[1]:
            # From the second page on, a row of overlap: the two pages must agree on it.
            start = max(span[0], cursor - task.pace_ms)
            end = min(start + task.page_ms, span[1])
            page = await task.page(start, end)
            last = self._put(page.frame)
            if last is None or last + task.pace_ms >= end or last <= latest:
                cursor = end  # all of it, or as far as the server has it
            else:
                cursor, latest = last + task.pace_ms, last  # cut short: go on behind what came
            if first_turn:
                self._progress(cursor)

    def _put(self, frame: pl.DataFrame) -> Instant | None:
        if frame.is_empty():
            return None
        task = self.task
        try:
            did = self.lake.put(task.kind, self.wanted.venue, task.symbol, task.interval, frame, self.replace)
        except UserError as error:
            raise UserError(f"{task.symbol} {task.interval or task.kind}: {error.message}", error.hint) from None
        self.added += did.added
        self.replaced += did.replaced
        self.sight.added += did.added
        return int(frame[series(task.kind).time or ""].dt.epoch("ms")[-1])

    def _progress(self, cursor: Instant) -> None:
        whole = max(1, self.wanted.to_at - self.wanted.from_at)
        part = min(1.0, max(0.0, (cursor - self.wanted.from_at) / whole))
        self.sight.moved(self.share[0] + self.share[1] * part, _label(self.task))

    def _end(self) -> Instant:
        """No later than the last bar that is over."""
        now = self.fetcher.now()
        return min(self.wanted.to_at, now // self.task.pace_ms * self.task.pace_ms if self.task.interval else now + 1)

    def _rows(self) -> pl.DataFrame | None:
        task, wanted = self.task, self.wanted
        span = wanted.from_at, wanted.to_at
        return stored_rows(self.lake, task.kind, wanted.venue, task.symbol, task.interval, *span)

    def _stored(self) -> Ints:
        frame = self._rows()
        return _times(frame) if frame is not None else np.empty(0, dtype=np.int64)

    def _told(self, end_at: Instant) -> DownloadResult:
        task, wanted = self.task, self.wanted
        frame = self._rows()
        times = _times(frame) if frame is not None else np.empty(0, dtype=np.int64)
        notes: list[str] = []
        if not len(times):
            notes.append("the source has nothing in this range")
        elif int(times[0]) - wanted.from_at > task.pace_ms:
            notes.append(f"the source has it only from {iso(int(times[0]))} on")
        inside = missing_spans(times, int(times[0]), int(times[-1]) + 1, task.pace_ms) if len(times) else []
        if task.interval and inside:
            notes.append(
                f"{count_noun(len(inside), 'hole')}, the first from {iso(inside[0][0])} to {iso(inside[0][1])}"
            )
        if task.interval and len(times) and end_at - int(times[-1]) > 2 * task.pace_ms:
            notes.append(f"the source has it only up to {iso(int(times[-1]))}")
        return DownloadResult(
            self.source.name,
            wanted.venue,
            task.kind,
            task.symbol,
            task.interval,
            len(times),
            self.added,
            self.replaced,
            int(times[0]) if len(times) else None,
            int(times[-1]) if len(times) else None,
            len(inside) if task.interval else 0,
            digest(frame),
            tuple(notes),
        )


async def _single(
    lake: Lake, source: DataSource, wanted: DownloadRequest, task: Single, sight: DownloadProgress, replace: bool
) -> list[DownloadResult]:
    stored = None if series(task.kind).per_symbol else stored_rows(lake, task.kind, wanted.venue, None, None)
    seen = SeenItems(lake.root, wanted.venue)
    try:
        brought = await task.bring(StoredState(stored, seen))
    except (UserError, TransientError) as error:
        if not task.optional:
            raise
        note = f"{task.label} could not be had: {error}"
        return [
            DownloadResult(
                source.name, wanted.venue, task.kind, None, None, 0, 0, 0, None, None, 0, digest(None), (note,)
            )
        ]
    done: list[DownloadResult] = []
    with lake.writing() as batch:  # what came together lands together
        for one in brought:
            shape = series(one.kind)
            folder = lake.folder(one.kind, wanted.venue, one.symbol, None)
            did = batch.put(shape, folder, one.frame, replace or one.replace) if one.frame.height else None
            times = one.frame[shape.time].dt.epoch("ms") if shape.time and one.frame.height else None
            done.append(
                DownloadResult(
                    source.name,
                    wanted.venue,
                    one.kind,
                    one.symbol,
                    None,
                    one.frame.height,
                    did.added if did else 0,
                    did.replaced if did else 0,
                    int(times[0]) if times is not None else None,
                    int(times[-1]) if times is not None else None,
                    0,
                    digest(one.frame),
                    _notes(one, did.replaced if did else 0),
                )
            )
    # Rows first: killed in between, an item is known again by its headline.
    seen.add({key: at for one in brought for key, at in one.seen.items()})
    sight.added += sum(one.added for one in done)
    return done


def _notes(one: SeriesRows, replaced: int) -> tuple[str, ...]:
    changed = (
        (f"{count_noun(replaced, 'asset')} changed since the last time",) if one.kind == "meta" and replaced else ()
    )
    return (*one.notes, *changed)


def missing_spans(times: Ints, from_at: Instant, to_at: Instant, pace_ms: int) -> list[Span]:
    """What lies between rows further apart than the pace, from the first step of the range to its end."""
    first, end = -(-from_at // pace_ms) * pace_ms, -(-to_at // pace_ms) * pace_ms
    if first >= end:
        return []
    inside = times[(times >= first) & (times < end)]
    edges = np.concatenate([[first - pace_ms], inside, [end]]).astype(np.int64)
    wide = np.flatnonzero(np.diff(edges) > pace_ms)
    return [(int(edges[at]) + pace_ms, int(edges[at + 1])) for at in wide]


def join_spans(spans: Iterable[Span], within_ms: int) -> list[Span]:
    """Spans in order, those close to each other as one: a question about both costs less than two."""
    found: list[Span] = []
    for start, end in spans:
        if found and start - found[-1][1] <= within_ms:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _shortened(holes: list[Span], first_at: Instant, task: Ranged) -> list[Span]:
    # Before the first row there is most likely nothing at all: only the page next to it is asked for again.
    return [(max(start, end - task.page_ms), end) if end <= first_at else (start, end) for start, end in holes]


def _times(frame: pl.DataFrame) -> Ints:
    return frame[frame.columns[0]].dt.epoch("ms").to_numpy()


def _label(task: Task) -> str:
    if isinstance(task, Single):
        return task.label
    return f"{task.symbol} {task.interval or task.kind}"


def _must_make_sense(lake: Lake, source: DataSource, wanted: DownloadRequest) -> None:
    kinds = source.kinds_of(wanted)
    given = {"symbols": wanted.symbols, "interval": wanted.intervals, "from": wanted.from_at, "url": wanted.urls}
    needs = [need for need in source.needs if need != "interval" or "bars" in kinds]
    if set(kinds) <= {"meta"}:
        needs = []
    if not set(kinds) & {"bars", "funding"}:
        needs = [need for need in needs if need != "from"]
    for need in needs:
        if not given[need]:
            what = {"symbols": "--symbols BTC,ETH", "interval": "--interval 15m", "from": "--from 2025-01-01"}
            raise UserError(f"{source.name} needs --{need}", f"for example {what.get(need, '--url https://…')}")
    for interval in wanted.intervals:
        interval_ms(interval)
    if "from" in needs and wanted.from_at >= wanted.to_at:
        raise UserError(
            f"there is nothing between {iso(wanted.from_at)} and {iso(wanted.to_at)}", "--from is before --to"
        )
    if lake.is_synthetic(wanted.venue):
        raise UserError(f"venue {wanted.venue!r} holds generated data", "file real data under another --venue")
