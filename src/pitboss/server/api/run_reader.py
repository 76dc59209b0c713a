"""`RunReader`: reads the indexes, pages and chart series of runs for requests, each once, however many requests wait for it.

Requests that wait hold no thread. What takes long has threads of its own, two for indexes and one for pages, so that the threads of
the other requests stay free. The page of a run that a worker has just completed is composed by that worker, so it is waited for
before it is composed here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from pitboss.bootstrap.workspace import Workspace
from pitboss.jobs.run_report import POLL_S, wants_report
from pitboss.report.chart_series import ChartSeries
from pitboss.report.shell import ReportPage
from pitboss.runs import run_files
from pitboss.runs.indexed_runs import IndexedRuns
from pitboss.runs.run_index import RunIndex
from pitboss.store.runs import Run

INDEX_THREADS, PAGE_THREADS = 2, 1
WORKER_S = 30.0
"""How long the page of a complete run is left to its worker, which may have been killed."""
_Value = TypeVar("_Value")


def is_left_to_worker(workspace: Workspace, run: Run) -> bool:
    """Whether the worker that has completed a run is composing its page now, as far as one can tell."""
    is_fresh = workspace.now() < (run.finished_at or 0) + WORKER_S * 1_000
    return run.status == "complete" and wants_report(run) and is_fresh and not run_files.are_stored(workspace, run)


class RunReader:
    """What routes read of runs. `indexed` keeps what was read."""

    def __init__(self, indexed: IndexedRuns) -> None:
        self.indexed = indexed
        self._index_threads, self._page_threads = CapacityLimiter(INDEX_THREADS), CapacityLimiter(PAGE_THREADS)
        self._tasks: dict[tuple[str, str], asyncio.Task[Any]] = {}

    async def index(self, workspace: Workspace, run: Run) -> RunIndex:
        """The index of a run with all records that are stored now."""
        return await self._once(
            run, "index", lambda: run_sync(self.indexed.index, workspace, run, limiter=self._index_threads)
        )

    async def page(self, workspace: Workspace, run: Run, patience_s: float | None = None) -> ReportPage | None:
        """The page of a run that has ended; None if composing it takes longer than `patience_s`, and then it goes on."""
        reading = self._once(run, "page", lambda: self._composed_page(workspace, run))
        try:
            return await asyncio.wait_for(reading, None if run_files.are_stored(workspace, run) else patience_s)
        except TimeoutError:
            return None

    async def series(self, workspace: Workspace, run: Run, patience_s: float | None = None) -> ChartSeries | None:
        """The series of the charts of a run that has ended; None if its page is not composed within `patience_s`."""
        if not run_files.are_stored(workspace, run) and await self.page(workspace, run, patience_s) is None:
            return None
        return await self._once(
            run, "series", lambda: run_sync(self.indexed.series, workspace, run, limiter=self._index_threads)
        )

    async def _composed_page(self, workspace: Workspace, run: Run) -> ReportPage:
        while is_left_to_worker(workspace, run):  # noqa: ASYNC110 - the worker is another process
            await asyncio.sleep(POLL_S)
        threads = self._index_threads if run_files.are_stored(workspace, run) else self._page_threads
        return await run_sync(self.indexed.page, workspace, run, limiter=threads)

    async def _once(self, run: Run, kind: str, start: Callable[[], Coroutine[Any, Any, _Value]]) -> _Value:
        """The result of `start`, shared by all who ask for the same while it is awaited."""
        key = run.id, kind
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(start(), name=f"{kind} {run.id}")
            task.add_done_callback(lambda done: self._forget(key, done))
        waiting: Awaitable[_Value] = asyncio.shield(task)
        try:
            return await waiting
        finally:
            if task.done() and self._tasks.get(key) is task:
                del self._tasks[key]

    def _forget(self, key: tuple[str, str], task: asyncio.Task[Any]) -> None:
        """Forget a task that has succeeded. An error is kept for the next request: this one may have ended without reading it."""
        if (task.cancelled() or task.exception() is None) and self._tasks.get(key) is task:
            del self._tasks[key]
