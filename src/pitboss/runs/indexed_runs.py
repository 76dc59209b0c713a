"""`IndexedRuns`: the indexes, composed pages and chart series of runs, kept in memory up to a bound and on disk for complete runs.

A server has one. A complete run is read from the files of `runs/run_files.py`, which are written when its report is, and here if
they are missing. The index of a run that is still running grows with every call. Every method is safe to call from several threads.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.report.chart_series import ChartSeries
from pitboss.report.shell import NO_MARKUP, ReportPage
from pitboss.runs import run_files
from pitboss.runs.report import page_of
from pitboss.runs.run_files import INDEX, PAGE, SERIES
from pitboss.runs.run_index import RunIndex
from pitboss.runs.stored import shown_records
from pitboss.runs.venues import venue_of
from pitboss.store.runs import Run

MOST_BYTES = 64_000_000
"""How much is kept in memory; what was not used for longest goes first."""
DECISIONS = "decisions"
"""The part of a page that the app replaces by a table of its own."""


@dataclass(frozen=True, slots=True)
class _KeptValue:
    """Something of a run in memory, the state of the run that it belongs to, and about how many bytes it takes."""

    state: object
    value: Any
    size: int


class IndexedRuns:
    """What pages show of runs. `most_bytes` bounds the memory."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[tuple[str, str], _KeptValue] = OrderedDict()
        self._locks: dict[str, Lock] = {}
        self._lock = Lock()

    def index(self, workspace: Workspace, run: Run) -> RunIndex:
        """The index of a run with all records that are stored now."""
        with self._of_run(run):
            return self._index(workspace, run)

    def page(self, workspace: Workspace, run: Run) -> ReportPage:
        """The composed page of a run that has ended, without its table of decisions. Composing it takes a second or more."""
        state = self._state(workspace, run)
        kept = self._get(run, PAGE, state)
        if kept is not None:
            return kept
        stored = run_files.read(workspace, run, PAGE) if run.status == "complete" else None
        page = self._compose(workspace, run, state) if stored is None else run_files.read_page(stored)
        self._keep(run, PAGE, state, page, sum(len(part[3]) for part in page.parts))
        return page

    def series(self, workspace: Workspace, run: Run) -> ChartSeries:
        """The series of the charts of a run that has ended."""
        state = self._state(workspace, run)
        kept = self._get(run, SERIES, state)
        if kept is not None:
            return kept
        stored = run_files.read(workspace, run, SERIES) if run.status == "complete" else None
        if stored is None:
            page = self._compose(workspace, run, state)
            self._keep(run, PAGE, state, page, sum(len(part[3]) for part in page.parts))
            return self._get(run, SERIES, state) or page.series
        series = run_files.read_series(stored)
        self._keep_series(run, state, series)
        return series

    def _compose(self, workspace: Workspace, run: Run, state: object) -> ReportPage:
        page = page_of(workspace, run)
        self._keep_series(run, state, page.series)
        page = without_decisions(page)
        if run.status == "complete":
            _write_page(workspace, run, page)
        return page

    def _index(self, workspace: Workspace, run: Run) -> RunIndex:
        complete = run.status == "complete"
        kept: RunIndex | None = self._get(run, INDEX, complete) or self._get(run, INDEX, False)
        if kept is not None and complete and kept.digest == run.digest:
            return kept
        if complete and (stored := run_files.read(workspace, run, INDEX)) is not None:
            index = RunIndex.from_bytes(stored)
        else:
            index = read_index(workspace, run, kept)
            if complete:
                run_files.write(workspace, run, INDEX, index.to_bytes())
        self._keep(run, INDEX, complete, index, index.size)
        return index

    def _state(self, workspace: Workspace, run: Run) -> object:
        """What changes whenever the page of a run does."""
        return run.status if run.status == "complete" else (run.status, self.index(workspace, run).digest)

    def _keep_series(self, run: Run, state: object, series: ChartSeries) -> None:
        size = sum(array.nbytes for array in (*series.baselines.values(), *series.prices.values()))
        self._keep(run, SERIES, state, series, size)

    def _of_run(self, run: Run) -> Lock:
        with self._lock:
            if len(self._locks) > 1_000:
                self._locks = {key: lock for key, lock in self._locks.items() if lock.locked()}
            return self._locks.setdefault(run.id, Lock())

    def _get(self, run: Run, kind: str, state: object) -> Any:
        with self._lock:
            kept = self._kept.get((run.id, kind))
            if kept is None or kept.state != state:
                return None
            self._kept.move_to_end((run.id, kind))
            return kept.value

    def _keep(self, run: Run, kind: str, state: object, value: Any, size: int) -> None:
        with self._lock:
            self._kept[run.id, kind] = _KeptValue(state, value, size)
            self._kept.move_to_end((run.id, kind))
            total = sum(kept.size for kept in self._kept.values())
            while total > self._most_bytes and len(self._kept) > 1:
                total -= self._kept.popitem(last=False)[1].size


def read_index(workspace: Workspace, run: Run, earlier: RunIndex | None = None) -> RunIndex:
    """The index of a run from its records; with an `earlier` one only the records after it are read."""
    venue = venue_of(run.params["skill"])
    if earlier is None or not earlier.next_seq:
        return RunIndex().extended(shown_records(workspace, run), venue, run.params)
    # its last record is read again: if it is another, the run was started anew
    records = shown_records(workspace, run, earlier.next_seq - 1)
    last = next(records, None)
    if last is None or last.digest != earlier.digest:
        return RunIndex().extended(shown_records(workspace, run), venue, run.params)
    return earlier.extended(records, venue, run.params)


def stored_index(workspace: Workspace, run: Run) -> RunIndex:
    """The index of a run as its file holds it, else from its records. Nothing is written."""
    stored = run_files.read(workspace, run, INDEX) if run.status == "complete" else None
    return read_index(workspace, run) if stored is None else RunIndex.from_bytes(stored)


def keep_index(workspace: Workspace, run: Run) -> None:
    """Write the index of a complete run."""
    run_files.write(workspace, run, INDEX, read_index(workspace, run).to_bytes())


def keep_page(workspace: Workspace, run: Run, page: ReportPage) -> None:
    """Write the page of a complete run that has just been composed, and the series of its charts."""
    _write_page(workspace, run, without_decisions(page), page.series)


def without_decisions(page: ReportPage) -> ReportPage:
    """A page with its table of decisions left out; its place remains."""
    return replace(page, parts=[part if part[0] != DECISIONS else (*part[:3], NO_MARKUP) for part in page.parts])


def _write_page(workspace: Workspace, run: Run, page: ReportPage, series: ChartSeries | None = None) -> None:
    run_files.write(workspace, run, PAGE, run_files.page_bytes(page))
    run_files.write(workspace, run, SERIES, run_files.series_bytes(series or page.series))
