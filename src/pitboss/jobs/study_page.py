"""The HTML page of a study or an arena, written beside the reports of single runs, with links to existing reports.

The layout is in `report/study` and `report/arena`; the document comes from `study_status.py` and `arena.py`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.jobs.arena import arena
from pitboss.jobs.study_status import Document, evaluated_study
from pitboss.report.arena import compose as compose_arena
from pitboss.report.shell import ReportPage, html_document
from pitboss.report.study import compose as compose_study


def result_document(workspace: Workspace, study_id: str) -> Document:
    """The full document of a study or an arena."""
    definition = workspace.studies.document(study_id)
    return arena(workspace, study_id) if definition["kind"] == "arena" else evaluated_study(workspace, study_id)


def write_page(workspace: Workspace, document: Mapping[str, Any], out: Path | None = None) -> Path:
    """Write the page of a `result_document`, to the reports folder of the workspace unless `out` names a file."""
    is_arena = "entries" in document
    name = f"{'arena' if is_arena else 'study'}-{document['study_id']}.html"
    path = (out or workspace.home / "reports" / name).absolute()
    page = html_document(page_of(linked(document, path.parent)))
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


def page_of(document: Mapping[str, Any]) -> ReportPage:
    """The page of a `result_document`; its runs may have a `href`."""
    return (compose_arena if "entries" in document else compose_study)(document)


def linked(document: Mapping[str, Any], folder: Path) -> Document:
    """The document with a link, relative to `folder`, to every existing report of its runs."""
    name = "entries" if "entries" in document else "trials"
    return {
        **document,
        name: [{**entry, "runs": [_with_link(run, folder) for run in entry["runs"]]} for entry in document[name]],
    }


def _with_link(run: Mapping[str, Any], folder: Path) -> Document:
    report = run.get("report")
    if not report or not Path(report).is_file():
        return dict(run)
    return {**run, "href": quote(os.path.relpath(report, folder))}
