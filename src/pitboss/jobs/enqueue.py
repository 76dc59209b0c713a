"""Putting runs into the queue: checked as if they began here, made known to workers, and workers started for them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.jobs.batch import Preparation
from pitboss.jobs.build import build
from pitboss.jobs.executors import local
from pitboss.jobs.worker_settings import open_queue
from pitboss.sim.request import BacktestRequest
from pitboss.store.queue import Job


def enqueue(
    workspace: Workspace,
    requests: Sequence[BacktestRequest],
    *,
    owner: str = "local",
    priority: int = 0,
    study_id: str | None = None,
    reserve_usd: Decimal | None = None,
    daily_usd: Decimal | None = None,
    beside: Mapping[str, Any] | None = None,
) -> list[str]:
    """Queue runs of any venue, all or none, start workers for them, and give their ids.

    `beside` is stored with each of them besides its request: what it was estimated to cost, whether a report is wanted.
    """
    more = {"owner": owner, "priority": priority, "study_id": study_id, "reserve_usd": reserve_usd, "build": build()}
    preparation = Preparation(workspace)
    jobs = [preparation.job(request, **more) for request in requests]
    jobs = [replace(job, params={**job.params, **(beside or {})}) for job in jobs]
    return enqueue_jobs(workspace, jobs, daily_usd)


def enqueue_jobs(workspace: Workspace, jobs: Sequence[Job], daily_usd: Decimal | None = None) -> list[str]:
    """The same for jobs that were made before."""
    ids = open_queue(workspace).enqueue(jobs, daily_usd)
    ensure(workspace)
    return ids


def ensure(workspace: Workspace) -> int:
    """Start the workers that are missing, where the setting `executor` says. Gives how many."""
    settings = workspace.settings
    if settings.executor == "none":
        return 0
    if settings.executor == "ray":
        try:
            from pitboss.jobs.executors import ray  # only then: it is an extra, and takes a second to load
        except ModuleNotFoundError as error:
            hint = "pip install 'pitboss[ray]', or set executor to local"
            raise UserError(f"workers on Ray need the package {error.name}", hint) from None
        return ray.ensure(workspace, open_queue(workspace))
    return local.ensure(settings, open_queue(workspace))
