"""`runs fork`: create the branch, run it to its end, and show both runs."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pitboss.bootstrap.decider_source import may_cost
from pitboss.bootstrap.workspace import Workspace
from pitboss.cli.run_result import show_run
from pitboss.cli.run_work import resume_run
from pitboss.cli.runs_diff import show_difference
from pitboss.core.instant import parse_instant
from pitboss.runs.compare import compare
from pitboss.runs.daily_budget import refused_by_budget, require_room
from pitboss.runs.fork import ForkChange, fork
from pitboss.runs.stored import document, request_of
from pitboss.store.runs import Run
from pitboss.terminal import screen
from pitboss.terminal.workspace_options import WorkspaceOptions


def fork_run(
    location: WorkspaceOptions,
    run: str,
    at: str,
    model: str,
    overrides: tuple[str, ...],
    changes: tuple[tuple[str, Any], ...],
    yes: bool,
    json: bool,
) -> int:
    """Fork a run, confirm its cost if needed, and execute the branch. Without consent the branch is deleted again."""
    with location.existing_workspace() as workspace:
        source = workspace.runs.get(run)
        branch = asyncio.run(fork(workspace, source.id, at, ForkChange(model, overrides, changes)))
        try:
            most_usd = _agreed_limit(workspace, workspace.runs.get(branch), yes, json)
        except BaseException:
            workspace.runs.delete(branch)
            raise
        finished = resume_run(workspace, location, branch, most_usd)
        difference = compare(workspace, source, finished.run)
        if json:
            screen.put_json({**document(workspace, finished.run), "difference": difference})
        elif finished.is_complete:
            show_run(workspace, location, finished.run)
            show_difference(difference)
        return finished.code


def _agreed_limit(workspace: Workspace, branch: Run, yes: bool, json: bool) -> Decimal | None:
    """What the branch may cost from its first tick on, once the user and the daily budget allow it; None: no limit."""
    request = request_of(branch)
    if not may_cost(request):
        return None
    from pitboss.cli.consent import agreed_requests

    rest = replace(request, from_at=parse_instant(branch.params["forked_from"]["at"]))
    requests, _ = agreed_requests(workspace, [rest], yes, json)
    with refused_by_budget():
        require_room(workspace, requests)
    return requests[0].max_cost_usd
