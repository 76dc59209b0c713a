"""Reports of queued runs: the page that a foreground backtest writes, written by the worker that finished the run.

Only for runs that request one, as those of `pitboss submit` and `--queue` do; a study of a thousand runs does not need a
thousand files. A page is made from stored data, so every process writes the same bytes, first under a temporary name. It is
written after the run has ended, so a failure here does not change the run.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.runs.indexed_runs import keep_index, keep_page
from pitboss.runs.report import page_of, write_report
from pitboss.store.runs import Run

LOG = logging.getLogger("pitboss.jobs")
GRACE_S = 10.0
"""How long a process that waits for a run leaves the report to the worker, which may have been killed."""
POLL_S = 0.1


def wants_report(run: Run) -> bool:
    """Whether a run was queued with the request for a report."""
    options = run.params.get("queued") if isinstance(run.params, Mapping) else None  # which may be anything
    return isinstance(options, Mapping) and options.get("report") is True


def write_run_report(workspace: Workspace, run_id: str) -> str | None:
    """Write the report of a run, and what its page in the web app opens with; returns the problem if it cannot be written.

    The run is not changed by it.
    """
    try:
        run = workspace.runs.get(run_id)
        is_complete = run.status == "complete"
        if is_complete:
            keep_index(workspace, run)  # first: it is soon made, and all that is shown of a run needs it
        page = page_of(workspace, run)
        write_report(workspace, run_id, page=page)
        if is_complete:
            keep_page(workspace, run, page)
    except Exception as error:  # noqa: BLE001 - the run has its result, and the worker continues
        problem = error.message if isinstance(error, UserError) else repr(error)
        problem = REDACTOR.redact(problem)
        LOG.warning("report not written", extra={"fields": {"run_id": run_id, "error": problem}})
        return problem
    return None


class ReportWriter:
    """Writes the reports of a worker's runs one after the other in a thread: the page of a long run takes seconds.

    From one report to the next the thread does not need the event loop, which a run that computes blocks until it ends.
    """

    def __init__(self, workspace: Workspace, on_done: Callable[[], None] = lambda: None) -> None:
        """`on_done` is called on the loop after each report, written or not."""
        self._workspace = workspace
        self._on_done = on_done
        self._thread = ThreadPoolExecutor(1, "reports")
        self._reports: set[Future[None]] = set()

    @property
    def pending(self) -> int:
        """How many reports are still to be written."""
        return len(self._reports)

    def schedule(self, run: Run) -> None:
        """Write the report of a run that has ended, if it is complete and requests one."""
        if wants_report(run):
            loop = asyncio.get_running_loop()
            report = self._thread.submit(self._write_if_complete, run.id)
            self._reports.add(report)
            report.add_done_callback(lambda done: loop.call_soon_threadsafe(self._remove, done))

    async def close(self) -> None:
        """Drop the reports that are not begun. One that is being written is finished."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)

    def _write_if_complete(self, run_id: str) -> None:
        try:
            run = self._workspace.runs.get(run_id)
        except Exception as error:  # noqa: BLE001 - the database may be unreachable, or the run pruned
            LOG.warning("report not written", extra={"fields": {"run_id": run_id, "error": repr(error)}})
            return
        if run.status == "complete":
            write_run_report(self._workspace, run_id)

    def _remove(self, report: "Future[None]") -> None:
        self._reports.discard(report)
        self._on_done()


async def wait_for_report(workspace: Workspace, run: Run) -> Run:
    """A run that has ended, with its report if it requests one; written here if the worker does not do so in time."""
    if run.status != "complete" or not wants_report(run):
        return run
    loop = asyncio.get_running_loop()
    until = loop.time() + GRACE_S
    while run.report is None and loop.time() < until:
        await asyncio.sleep(POLL_S)
        run = workspace.runs.get(run.id)
    if run.report is None:
        write_run_report(workspace, run.id)
        run = workspace.runs.get(run.id)
    return run
