"""`runs fork`: create the branch, run it to its end, and show both runs."""

import asyncio
from typing import Any

from pitboss.cli.consent import agreement
from pitboss.cli.run_result import show_run
from pitboss.cli.run_work import resume_run
from pitboss.cli.runs_diff import show_difference
from pitboss.jobs.submit import agreed_branch
from pitboss.runs.compare import compare
from pitboss.runs.daily_budget import refused_by_budget
from pitboss.runs.fork import ForkChange, fork
from pitboss.runs.stored import document
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
            with refused_by_budget():
                most_usd, _ = agreed_branch(workspace, workspace.runs.get(branch), agreement(workspace, yes, json))
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
