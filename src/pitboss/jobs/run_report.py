"""Reports of queued runs: the page that a backtest in the foreground writes, written by the worker that ended the run.

Only for runs that want one, as those of `pitboss submit` and `--queue` do; a study of a thousand runs does not want a thousand
files. A page is made of what is stored, so whoever writes it writes the same bytes, under its own name first and then moved
into its place. It comes after the run has ended: nothing that goes wrong here can change how.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.runs.report import write_report
from pitboss.store.runs import Run

LOG = logging.getLogger("pitboss.jobs")
GRACE_S = 10.0
"""How long who waits for a run leaves its report to the worker. It may have been killed just then."""
POLL_S = 0.1


def wanted(run: Run) -> bool:
    """Whether whoever queued a run wants its report written when it is complete."""
    told = run.params.get("queued") if isinstance(run.params, Mapping) else None  # which may be anything
    return isinstance(told, Mapping) and told.get("report") is True


def write(workspace: Workspace, run_id: str) -> str | None:
    """Write the report of a run, and say what is wrong if it cannot be: the run is as it is either way."""
    try:
        write_report(workspace, run_id)
    except Exception as error:  # noqa: BLE001 - whatever it is, there is a result and the worker goes on
        problem = error.message if isinstance(error, UserError) else repr(error)
        problem = REDACTOR.redact(problem)
        LOG.warning("report not written", extra={"fields": {"run_id": run_id, "error": problem}})
        return problem
    return None


class Reports:
    """The reports that a worker owes, written one after the other beside its loop: a long run's page takes seconds."""

    def __init__(self, workspace: Workspace, told: Callable[[], None] = lambda: None) -> None:
        """`told` is called whenever one is done with."""
        self._workspace = workspace
        self._told = told
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def owed(self) -> int:
        """How many are still to be written."""
        return len(self._tasks)

    def owe(self, run: Run) -> None:
        """A run that was worked on has ended: if it is complete and wants a report, it will get one."""
        if wanted(run):
            task = asyncio.create_task(self._write(run.id), name=f"report {run.id}")
            self._tasks.add(task)
            task.add_done_callback(self._done)

    async def close(self) -> None:
        """Do not begin another one. One that is being written is not cut off."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _write(self, run_id: str) -> None:
        async with self._turn:
            await asyncio.to_thread(self._one, run_id)

    def _one(self, run_id: str) -> None:
        try:
            ended = self._workspace.runs.get(run_id)
        except Exception as error:  # noqa: BLE001 - the database may be away, or the run pruned
            LOG.warning("report not written", extra={"fields": {"run_id": run_id, "error": repr(error)}})
            return
        if ended.status == "complete":
            write(self._workspace, run_id)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._told()


async def awaited(workspace: Workspace, run: Run) -> Run:
    """A run that has ended, with its report if it wants one: the worker's, or after a while our own."""
    if run.status != "complete" or not wanted(run):
        return run
    loop = asyncio.get_running_loop()
    until = loop.time() + GRACE_S
    while run.report is None and loop.time() < until:
        await asyncio.sleep(POLL_S)
        run = workspace.runs.get(run.id)
    if run.report is None:
        write(workspace, run.id)
        run = workspace.runs.get(run.id)
    return run
