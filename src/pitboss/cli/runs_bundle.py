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
    screen.note(f"run {run_id} is in {file}; anybody can check it with `pitboss runs verify {file}`")
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


def import_file(place: WorkspaceOptions, file: Path, answers: bool, json: bool) -> int:
    """Implements `runs import FILE`. A workspace is opened or created only for a valid bundle."""
    with open_checked(file) as bundle, place.workspace() as workspace:
        taken = import_bundle(workspace, bundle, answers)
    if json:
        screen.put_json({"run_id": taken.run_id, "new": taken.new, "answers": taken.answers})
        return 0
    if not taken.new:
        screen.put(f"run {taken.run_id} is here already, and is the same")
        return 0
    screen.put(f"run {taken.run_id} is here now; see it with `{place.typed(f'runs show {taken.run_id}')}`")
    if taken.answers:
        screen.note(f"{taken.answers} answers came with it: the same questions are answered by them from now on")
    return 0
