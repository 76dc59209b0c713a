"""`runs fork`: create the branch, run it to its end, and show both runs."""

import asyncio
from typing import Any

from pitboss.cli.run_result import show_run
from pitboss.cli.run_work import go_on
from pitboss.cli.runs_diff import show_difference
from pitboss.runs.compare import compare
from pitboss.runs.fork import ForkChange, fork
from pitboss.runs.stored import document
from pitboss.terminal import screen
from pitboss.terminal.workspace_options import WorkspaceOptions


def fork_run(
    place: WorkspaceOptions,
    run: str,
    at: str,
    model: str,
    settings: tuple[str, ...],
    also: tuple[tuple[str, Any], ...],
    json: bool,
) -> int:
    """Fork a run and execute the branch."""
    with place.workspace() as workspace:
        source = workspace.runs.get(run)
        branch = asyncio.run(fork(workspace, source.id, at, ForkChange(model, settings, also)))
        ended = go_on(workspace, place, branch)
        found = compare(workspace, source, ended.run)
        if json:
            forked_from = ended.run.params["forked_from"]
            shown = document(ended.run, workspace.settings.model_cutoffs)
            screen.put_json({**shown, "forked_from": forked_from, "difference": found})
        elif not ended.code:
            show_run(workspace, place, ended.run)
            show_difference(found)
        return ended.code
