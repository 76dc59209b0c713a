"""Executes queued runs in the test's own process, instead of in a worker."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from pitboss.bootstrap.workspace import Workspace
from pitboss.jobs.run_report import wants_report, write_run_report
from pitboss.jobs.worker import Worker, WorkerSettings
from pitboss.jobs.worker_settings import open_queue
from pitboss.runs.run import work


def run_queued(workspace: Workspace) -> int:
    """Execute every queued run and write its report, as a worker does; return how many there were.

    In a thread: tests of the browser leave an event loop running in theirs.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_work_off, workspace).result()


def _work_off(workspace: Workspace) -> int:
    count = 0
    while (lease := open_queue(workspace).claim("test")) is not None:
        asyncio.run(work(workspace, lease))
        if wants_report(run := workspace.runs.get(lease.run_id)) and run.status == "complete":
            write_run_report(workspace, run.id)  # the server leaves it to the worker for half a minute
        count += 1
    return count


def run_queued_with_worker(workspace: Workspace) -> int:
    """The same with a real worker, which also carries studies on; ends when nothing is left."""

    async def run() -> int:
        return await Worker(workspace, open_queue(workspace), "test", WorkerSettings(idle_exit_s=0.0)).run()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(run())).result()
