"""The page of a study or an arena, written beside the reports of single runs, with links to those that are there.

What stands on it is `sim/report/study` and `sim/report/arena`; what it is made of is `standing.py` and `arena.py`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.jobs.arena import arena
from pitboss.jobs.study_status import Document, judged
from pitboss.report.arena import render as render_arena
from pitboss.report.study import render as render_study
from pitboss.store.studies import Studies


def document_of(workspace: Workspace, study_id: str) -> Document:
    """Everything that can be said about a study or an arena."""
    asked = Studies(workspace.database).document(study_id)
    return arena(workspace, study_id) if asked["kind"] == "arena" else judged(workspace, study_id)


def write_page(workspace: Workspace, document: Mapping[str, Any], out: Path | None = None) -> Path:
    """Write the page of what `document_of` gave, to its place in the workspace unless another is named."""
    is_arena = "entries" in document
    name = f"{'arena' if is_arena else 'study'}-{document['study_id']}.html"
    path = (out or workspace.home / "reports" / name).absolute()
    page = (render_arena if is_arena else render_study)(linked(document, path.parent))
    part = path.with_name(f".{path.name}.part")
    try:
        if out is None:
            path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(page, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UserError(f"cannot write {path}: {error.strerror}", "name another file with --out") from None
    return path


def linked(document: Mapping[str, Any], folder: Path) -> Document:
    """The document with the address of every run's report that is there, as seen from a folder."""
    name = "entries" if "entries" in document else "trials"
    return {
        **document,
        name: [{**one, "runs": [_with_link(run, folder) for run in one["runs"]]} for one in document[name]],
    }


def _with_link(run: Mapping[str, Any], folder: Path) -> Document:
    report = run.get("report")
    if not report or not Path(report).is_file():
        return dict(run)
    return {**run, "href": quote(os.path.relpath(report, folder))}
