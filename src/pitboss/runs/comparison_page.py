"""The page of a comparison as a file, with links to the reports of its runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.report.comparison import compose
from pitboss.report.shell import ReportPage, html_document
from pitboss.runs.comparison import equity_curve
from pitboss.runs.indexed_runs import IndexedRuns
from pitboss.runs.page_file import with_report_link, write_page_file
from pitboss.store.runs import Run

ID_CHARS = 8


def comparison_page(
    workspace: Workspace, runs: Sequence[Run], document: Mapping[str, Any], indexed: IndexedRuns
) -> ReportPage:
    """The page of the document of a comparison; its runs may have a `href`."""
    return compose(document, [equity_curve(run, indexed.index(workspace, run)) for run in runs])


def write_comparison(
    workspace: Workspace, runs: Sequence[Run], document: Mapping[str, Any], indexed: IndexedRuns, out: Path | None
) -> Path:
    """Write the page, to the reports folder of the workspace unless `out` names a file."""
    name = f"compare-{'-'.join(run.id[:ID_CHARS] for run in runs)}.html"
    path = (out or workspace.home / "reports" / name).absolute()
    linked = {**document, "runs": [with_report_link(run, path.parent) for run in document["runs"]]}
    return write_page_file(
        html_document(comparison_page(workspace, runs, linked, indexed)), path, make_folder=out is None
    )
