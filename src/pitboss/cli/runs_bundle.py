"""Bundles from the command line: write, check and import."""

import asyncio
from pathlib import Path

from pitboss.bootstrap.workspace import Workspace
from pitboss.runs.check_bundle import check_bundle
from pitboss.runs.pack import write_bundle
from pitboss.runs.unpack import import_bundle, open_checked
from pitboss.terminal import screen
from pitboss.terminal.workspace_options import WorkspaceOptions


def export_file(workspace: Workspace, run: str, file: Path) -> int:
    """Implements `runs export RUN --bundle FILE`."""
    run_id = workspace.runs.find(run)
    asyncio.run(write_bundle(workspace, run_id, file))
    screen.note(f"wrote run {run_id} to {file}; `pitboss runs verify {file}` checks it on any machine")
    return 0


def verify_file(file: Path, json: bool) -> int:
    """Implements `runs verify FILE`, without a workspace."""
    checked = check_bundle(file)
    if json:
        screen.put_json(
            {
                "ok": not checked.problems,
                "run_id": checked.run_id,
                "digest": checked.digest,
                "problems": checked.problems,
                "records": checked.records,
                "answers": checked.answers,
                "unproven": checked.unproven,
            }
        )
        return 1 if checked.problems else 0
    for problem in checked.problems:
        screen.put(f"DIFFERENT: {problem}")
    if checked.problems:
        return 1
    screen.put(f"OK {checked.digest or 'no digest yet: the run is not complete'}")
    for line in checked.unproven:
        screen.note(f"not proven: {line}")
    return 0


def import_file(location: WorkspaceOptions, file: Path, answers: bool, json: bool) -> int:
    """Implements `runs import FILE`. A workspace is opened or created only for a valid bundle."""
    with open_checked(file) as bundle, location.workspace() as workspace:
        imported = import_bundle(workspace, bundle, answers)
    if json:
        screen.put_json({"run_id": imported.run_id, "new": imported.new, "answers": imported.answers})
        return 0
    if not imported.new:
        screen.put(f"run {imported.run_id} is already stored here and is the same")
        return 0
    screen.put(f"imported run {imported.run_id}; `{location.command_line(f'runs show {imported.run_id}')}` shows it")
    if imported.answers:
        screen.note(f"added {imported.answers} model replies to the cache, which answers equal requests from now on")
    return 0
