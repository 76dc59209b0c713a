"""`runs fork`: create the branch, run it to its end, and show both runs."""

import asyncio
from typing import Any

from pitboss.cli.run_result import show_run
from pitboss.cli.run_work import resume_run
from pitboss.cli.runs_diff import show_difference
from pitboss.runs.compare import compare
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
    json: bool,
) -> int:
    """Fork a run and execute the branch."""
    with location.workspace() as workspace:
        source = workspace.runs.get(run)
        branch = asyncio.run(fork(workspace, source.id, at, ForkChange(model, overrides, changes)))
        finished = resume_run(workspace, location, branch)
        difference = compare(workspace, source, finished.run)
        if json:
            forked_from = finished.run.params["forked_from"]
            result = document(finished.run, workspace.settings.model_cutoffs)
            screen.put_json({**result, "forked_from": forked_from, "difference": difference})
        elif finished.is_complete:
            show_run(workspace, location, finished.run)
            show_difference(difference)
        return finished.code
