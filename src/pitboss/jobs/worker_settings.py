"""From settings to a worker: its name, its terms, and the queue it takes from."""

import asyncio
import os
import socket
from typing import TYPE_CHECKING

from pitboss.bootstrap.machine import new_id, stopwatch
from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.jobs.build import build
from pitboss.jobs.heartbeat import COURTESY_S, Rhythm
from pitboss.store.queue import Queue
from pitboss.store.retry import patiently

if TYPE_CHECKING:  # whoever only looks at the queue need not load what does its work
    from pitboss.jobs.worker import WorkerSettings


def open_queue(workspace: Workspace) -> Queue:
    """The queue of a workspace's database."""
    return Queue(workspace.database, workspace.now, new_id)


async def wait_for_workspace(settings: Settings) -> Workspace:
    """Open the workspace; retries for up to a minute while the database is unreachable or locked.

    After a wait the other workers get `COURTESY_S` to renew their leases before this worker looks for lost runs.
    """
    began_s = stopwatch()
    workspace = await patiently(lambda: open_workspace(settings))
    if stopwatch() - began_s > COURTESY_S:
        await asyncio.sleep(COURTESY_S)
    return workspace


def worker_name(place: str = "") -> str:
    """A name that no other worker has or had: where it is, which process, and a few letters of chance."""
    return f"{place or socket.gethostname()}:{os.getpid()}:{new_id()[:6]}"


def terms_of(
    settings: Settings,
    *,
    processes: int = 1,
    idle_exit_s: float | None = None,
    concurrency: int | None = None,
    any_build: bool = False,
) -> "WorkerSettings":
    """The terms that the settings ask for."""
    from pitboss.jobs.worker import WorkerSettings

    alone = settings.sqlite_processes == "one" and "://" not in settings.database_url
    return WorkerSettings(
        concurrency=concurrency or settings.worker_runs,
        processes=0 if alone else processes,  # a child would find the database locked
        idle_exit_s=idle_exit_s,
        drain_s=settings.worker_drain_s,
        per_user=settings.runs_per_user or None,
        build=None if any_build else build(),
        rhythm=_rhythm(settings),
        logged=settings.log_commits,
    )


def _rhythm(settings: Settings) -> Rhythm:
    """A lease is renewed a few times before it runs out, and lost ones are looked for as often, however short it is."""
    stale_s = settings.lease_stale_s
    return Rhythm(min(settings.lease_heartbeat_s, stale_s / 4), stale_s, min(settings.scan_s, stale_s / 4))
