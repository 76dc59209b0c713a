"""Submit backtests and forks to the queue: estimate, consent, daily budget, and the ids of the queued runs.

Commands, the web, the chat and the MCP server call these functions; they differ only in how the user agrees to the cost (`Agree`).
Building a request from plain fields is in `runs/new_request.py`, the queue itself in `enqueue.py`.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from pitboss.bootstrap.decider_source import may_cost
from pitboss.bootstrap.workspace import Workspace
from pitboss.build import build
from pitboss.core.instant import parse_instant
from pitboss.jobs.enqueue import enqueue, ensure_workers
from pitboss.jobs.estimate import Estimate, estimate, limited
from pitboss.jobs.worker_settings import open_queue
from pitboss.runs.daily_budget import limit_of, require_room
from pitboss.runs.fork import ForkChange, fork
from pitboss.runs.stored import request_of
from pitboss.sim.request import BacktestRequest
from pitboss.store.runs import Run

Agree = Callable[[Estimate], None]
"""Returns if the user agrees to an estimated cost, and raises otherwise."""


@dataclass(frozen=True, slots=True)
class Submission:
    """The queued runs, and what they are estimated to cost together."""

    ids: list[str]
    estimate: Estimate


def agreed(
    workspace: Workspace, requests: Sequence[BacktestRequest], agree: Agree
) -> tuple[list[BacktestRequest], Estimate]:
    """The requests that the user agrees to pay for, each with the limit that a daily budget needs, and their estimate."""
    cost = estimate(workspace, requests)
    agree(cost)
    return [limited(workspace, request, cost) for request in requests], cost


def submit(
    workspace: Workspace,
    requests: Sequence[BacktestRequest],
    agree: Agree,
    *,
    priority: int = 0,
) -> Submission:
    """Queue requests of any venue, all or none, and start workers. Raises `BudgetExceeded` if the daily budget is too small."""
    requests, cost = agreed(workspace, requests, agree)
    limit = limit_of(workspace, requests[0])
    ids = enqueue(
        workspace,
        requests,
        priority=priority,
        reserve_usd=None if limit is None else limit.most_usd,
        daily_usd=None if limit is None else limit.daily_usd,
        extra_params={"queued": _queued_with(cost)},
    )
    return Submission(ids, cost)


def submit_fork(workspace: Workspace, run_id: str, at: str, change: ForkChange, agree: Agree) -> Submission:
    """Create the branch of a run and queue it. Without consent, or room in the daily budget, the branch is deleted again."""
    branch_id = asyncio.run(fork(workspace, run_id, at, change))
    try:
        branch = workspace.runs.get(branch_id)
        most_usd, cost = agreed_branch(workspace, branch, agree)
        limit = limit_of(workspace, replace(request_of(branch), max_cost_usd=most_usd))
        open_queue(workspace).enqueue_again(
            branch_id,
            None if limit is None else limit.most_usd,
            None if limit is None else limit.daily_usd,
            params={"max_cost_usd": most_usd, "queued": _queued_with(cost)},
            build=build(),
        )
    except BaseException:
        workspace.runs.delete(branch_id)
        raise
    ensure_workers(workspace)
    return Submission([branch_id], cost)


def agreed_branch(workspace: Workspace, branch: Run, agree: Agree) -> tuple[Decimal | None, Estimate]:
    """What a branch may cost from its first tick on (None: no limit), once the user and the daily budget allow it."""
    request = request_of(branch)
    if not may_cost(request):
        return request.max_cost_usd, estimate(workspace, [request])
    rest = replace(request, from_at=parse_instant(branch.params["forked_from"]["at"]))
    requests, cost = agreed(workspace, [rest], agree)
    require_room(workspace, requests)
    return requests[0].max_cost_usd, cost


def _queued_with(cost: Estimate) -> dict[str, Any]:
    return {"estimate": cost.plain(), "report": True}
