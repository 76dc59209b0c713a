"""The HTML page of a study or an arena, written beside the reports of single runs, with links to existing reports.

The layout is in `report/study` and `report/arena`; the document comes from `study_status.py` and `arena.py`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.jobs.arena import arena
from pitboss.jobs.study_status import Document, evaluated_study
from pitboss.report.arena import compose as compose_arena
from pitboss.report.shell import ReportPage, html_document
from pitboss.report.study import compose as compose_study
from pitboss.runs.page_file import with_report_link, write_page_file


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
    return write_page_file(page, path, make_folder=out is None)


def page_of(document: Mapping[str, Any]) -> ReportPage:
    """The page of a `result_document`; its runs may have a `href`."""
    return (compose_arena if "entries" in document else compose_study)(document)


def linked(document: Mapping[str, Any], folder: Path) -> Document:
    """The document with a link, relative to `folder`, to every existing report of its runs."""
    name = "entries" if "entries" in document else "trials"
    return {
        **document,
        name: [{**entry, "runs": [with_report_link(run, folder) for run in entry["runs"]]} for entry in document[name]],
    }
