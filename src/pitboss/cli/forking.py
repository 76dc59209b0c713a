"""`runs fork`: make the branch, run it to its end, show both paths."""

import asyncio
from typing import Any

from pitboss.bootstrap.comparing import compare
from pitboss.bootstrap.fork import Change, fork
from pitboss.bootstrap.stored import document
from pitboss.cli import screen
from pitboss.cli.comparing import show_difference
from pitboss.cli.place import Place
from pitboss.cli.results import show_run
from pitboss.cli.running import go_on


def fork_run(
    place: Place,
    run: str,
    at: str,
    model: str,
    settings: tuple[str, ...],
    also: tuple[tuple[str, Any], ...],
    json: bool,
) -> int:
    """Fork a run and go on with the branch."""
    with place.workspace() as workspace:
        source = workspace.runs.get(run)
        branch = asyncio.run(fork(workspace, source.id, at, Change(model, settings, also)))
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
