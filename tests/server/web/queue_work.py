"""Executes queued runs in the test's own process, instead of in a worker."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from pitboss.bootstrap.workspace import Workspace
from pitboss.jobs.worker_settings import open_queue
from pitboss.runs.run import work


def work_off(workspace: Workspace) -> int:
    """Execute every queued run, and return how many there were.

    In a thread: tests of the browser leave an event loop running in theirs.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_work_off, workspace).result()


def _work_off(workspace: Workspace) -> int:
    count = 0
    while (lease := open_queue(workspace).claim("test")) is not None:
        asyncio.run(work(workspace, lease))
        count += 1
    return count
