"""From the settings file to a worker: its name, its settings, and the queue it claims from."""

import asyncio
import os
import socket
from typing import TYPE_CHECKING

from pitboss.bootstrap.machine import new_id, stopwatch
from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.build import build
from pitboss.jobs.heartbeat import RECOVERY_GRACE_S, HeartbeatSettings
from pitboss.store.queue import Queue
from pitboss.store.retry import retry_while_unreachable

if TYPE_CHECKING:  # commands that only read the queue do not import what executes runs
    from pitboss.jobs.worker import WorkerSettings


def open_queue(workspace: Workspace) -> Queue:
    """The queue of a workspace's database."""
    return Queue(workspace.database, workspace.now, new_id)


async def wait_for_workspace(settings: Settings) -> Workspace:
    """Open the workspace; retries for up to a minute while the database is unreachable or locked.

    After a wait the other workers get `RECOVERY_GRACE_S` to renew their leases before this worker looks for lost runs.
    """
    began_s = stopwatch()
    workspace = await retry_while_unreachable(lambda: open_workspace(settings))
    if stopwatch() - began_s > RECOVERY_GRACE_S:
        await asyncio.sleep(RECOVERY_GRACE_S)
    return workspace


def worker_name(host: str = "") -> str:
    """A unique name: host, process id and a few random letters."""
    return f"{host or socket.gethostname()}:{os.getpid()}:{new_id()[:6]}"


def worker_settings(
    settings: Settings,
    *,
    processes: int = 1,
    idle_exit_s: float | None = None,
    concurrency: int | None = None,
    any_build: bool = False,
) -> "WorkerSettings":
    """The settings of a worker that follow from the settings file."""
    from pitboss.jobs.worker import WorkerSettings

    exclusive = settings.sqlite_processes == "one" and "://" not in settings.database_url
    return WorkerSettings(
        concurrency=concurrency or settings.worker_runs,
        processes=0 if exclusive else processes,  # a child could not open the database
        idle_exit_s=idle_exit_s,
        drain_s=settings.worker_drain_s,
        per_user=settings.runs_per_user or None,
        build=None if any_build else build(),
        heartbeat=_heartbeat(settings),
        logged=settings.log_commits,
    )


def _heartbeat(settings: Settings) -> HeartbeatSettings:
    """A lease is renewed four times before it expires, and expired leases are looked for as often, however short it is."""
    stale_s = settings.lease_stale_s
    return HeartbeatSettings(min(settings.lease_heartbeat_s, stale_s / 4), stale_s, min(settings.scan_s, stale_s / 4))
