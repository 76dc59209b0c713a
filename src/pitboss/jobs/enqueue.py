"""Enqueueing runs: they are checked as if they started here, put into the queue, and workers are started for them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.build import build
from pitboss.core.errors import UserError
from pitboss.core.money import ZERO
from pitboss.jobs.batch import JobBuilder
from pitboss.jobs.estimate import limited_run
from pitboss.jobs.executors import local
from pitboss.jobs.worker_settings import open_queue
from pitboss.runs.daily_budget import limit_of
from pitboss.runs.run import refuse_live
from pitboss.sim.request import BacktestRequest
from pitboss.store.budgets import cost_of_run
from pitboss.store.queue import Job


def enqueue(
    workspace: Workspace,
    requests: Sequence[BacktestRequest],
    *,
    priority: int = 0,
    reserve_usd: Decimal | None = None,
    daily_usd: Decimal | None = None,
    extra_params: Mapping[str, Any] | None = None,
) -> list[str]:
    """Enqueue runs of any venue, all or none, start workers for them, and return their ids.

    `extra_params` are stored with each run besides its request: its estimated cost, whether to write a report.
    """
    job_fields = {
        "owner": workspace.owner,
        "priority": priority,
        "reserve_usd": reserve_usd,
        "build": build(),
    }
    builder = JobBuilder(workspace)
    jobs = [builder.job(request, **job_fields) for request in requests]
    jobs = [replace(job, params={**job.params, **(extra_params or {})}) for job in jobs]
    return enqueue_jobs(workspace, jobs, daily_usd)


def enqueue_jobs(workspace: Workspace, jobs: Sequence[Job], daily_usd: Decimal | None = None) -> list[str]:
    """Enqueue jobs, all or none, start workers for them, and return their ids."""
    ids = open_queue(workspace).enqueue(jobs, daily_usd)
    ensure_workers(workspace)
    return ids


def enqueue_again(workspace: Workspace, run_id: str, priority: int | None = None) -> None:
    """Enqueue a run that ended early once more; what it may still cost is reserved from the daily budget."""
    run = workspace.runs.get(run_id)
    refuse_live(run)
    request = limited_run(workspace, run)
    limit = limit_of(workspace, request)
    paid_usd = cost_of_run(workspace.database, run_id)
    open_queue(workspace).enqueue_again(
        run_id,
        None if limit is None else max(ZERO, limit.most_usd - paid_usd),
        None if limit is None else limit.daily_usd,
        priority,
        {"max_cost_usd": request.max_cost_usd},
    )


def ensure_workers(workspace: Workspace) -> int:
    """Start missing workers with the configured `executor`. Returns how many were started."""
    settings = workspace.settings
    if settings.executor == "none":
        return 0
    if settings.executor == "ray":
        try:
            from pitboss.jobs.executors import ray  # here: it is an extra, and takes a second to import
        except ModuleNotFoundError as error:
            hint = "pip install 'pitboss[ray]', or set executor to local"
            raise UserError(f"workers on Ray need the package {error.name}", hint) from None
        return ray.ensure(workspace, open_queue(workspace))
    return local.ensure(settings, open_queue(workspace))
