"""Write the HTML report of a stored run, and build the parts of it that are the same for every venue."""

import shlex
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from pitboss import __version__
from pitboss.bootstrap.machine import program_name
from pitboss.bootstrap.settings import find_home
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.curve import points
from pitboss.core.errors import UserError
from pitboss.core.snapshot import Record
from pitboss.report.decisions import MOST_ROWS
from pitboss.report.page import compose
from pitboss.report.shell import ReportPage, html_document
from pitboss.report.source import RunReport
from pitboss.runs.blind import report_lines
from pitboss.runs.lineage import is_by_programs
from pitboss.runs.page_file import write_page_file
from pitboss.runs.stored import decision_rows, document, is_synthetic, request_of, shown_records
from pitboss.runs.venue import Venue
from pitboss.runs.venues import venue_of
from pitboss.sim.outcome import Ledger
from pitboss.sim.prepared_run import PreparedRun
from pitboss.sim.request import BacktestRequest
from pitboss.skill.document import to_json
from pitboss.skill.load import check_plain
from pitboss.store.runs import Run


def write_report(workspace: Workspace, run_id: str, out: Path | None = None, page: ReportPage | None = None) -> Path:
    """Write the report of a run and store its path with the run.

    The default path is in the reports folder of the workspace. `page` is the composed page, if there is one already.
    """
    run = workspace.runs.get(run_id)
    html = html_document(page_of(workspace, run) if page is None else page)
    path = write_page_file(html, out or workspace.report_path(run.id), make_folder=out is None)
    workspace.runs.set_report(run.id, str(path))
    return path


def same_data(workspace: Workspace, run: Run, request: BacktestRequest) -> PreparedRun | None:
    """The run prepared on its data, again unless it has just ended here; None if the data is gone or has changed."""
    kept: PreparedRun | None = workspace.prepared.pop(run.id, None)
    if kept is not None:
        return kept
    try:
        prepared = venue_of(request.skill).prepare(request, workspace.lake_of(run.params), workspace.settings)
    except UserError:
        return None
    return prepared if prepared.data_digest == run.data_digest else None


def skill_text(request: BacktestRequest) -> str:
    """The skill as it ran, overrides included."""
    plain = dict(request.skill)
    check = check_plain(plain, venue_of(plain).skill_type())
    body = to_json(check.skill) if check.skill else codec.dumps(codec.number_fragments(plain))
    return orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2).decode()


def with_rows(records: Iterable[Record], rows: list[dict[str, Any]]) -> Iterator[Record]:
    """Pass the records on, and collect a row for each decision on the way.

    A page shows the details of at most a couple of thousand decisions, so rows that it cannot show are dropped: a year
    of them would fill the memory.
    """
    quiet, acting, recent = 0, 0, deque[dict[str, Any]]()
    for record in records:
        for row in decision_rows(record):
            rows.append(row)
            if row["outcome"] == "noop":
                quiet += 1
                if quiet > MOST_ROWS:
                    _drop_details(row)
                continue
            acting += 1
            if acting > MOST_ROWS:
                recent.append(row)
            if len(recent) > MOST_ROWS:
                _drop_details(recent.popleft())
        yield record


def _drop_details(row: dict[str, Any]) -> None:
    for name in ("margins", "steps", "text", "detail"):
        row.pop(name, None)


def shared_report(
    workspace: Workspace, run: Run, venue: Venue, ledger: Ledger, rows: list[dict[str, Any]]
) -> RunReport:
    """The parts of a report that every run has. `rows` are its decisions, as `with_rows` collects them."""
    request = request_of(run)
    return RunReport(
        document=document(workspace, run),
        skill_name=str(request.skill.get("name", "")),
        skill_text=skill_text(request),
        initial_usd=float(request.equity_usd),
        equity=[(at, float(value)) for at, value in points(ledger.equity)],
        fills=list(venue.fills(ledger.receipts)),
        decisions=venue.reveal(rows, run.params),
        rule_meanings=venue.rule_meanings(),
        metric_meanings=venue.metrics(),
        realism=list(venue.realism(request).values()),
        assumptions=report_lines(run.params),
        has_account=venue.has_account,
        synthetic=is_synthetic(workspace, run),
        standin=is_by_programs(run),
        halts=[
            {"at": receipt.at, "kind": receipt.facts["halt"]} for receipt in ledger.receipts if receipt.kind == "halted"
        ],
        program=program_name(),
        workspace_option=_workspace_option(workspace),
        version=str(run.params.get("version", __version__)),
    )


def _workspace_option(workspace: Workspace) -> str:
    is_found = workspace.home.absolute() == find_home().absolute()
    return "" if is_found else f" --home {shlex.quote(str(workspace.home))}"


def page_of(workspace: Workspace, run: Run) -> ReportPage:
    """The page of a run: that of its venue, or the one that every run has."""
    venue = venue_of(run.params["skill"])
    return venue.page(workspace, run) or _plain_page(workspace, run, venue)


def _plain_page(workspace: Workspace, run: Run, venue: Venue) -> ReportPage:
    """The page of a run whose venue has no report of its own, built from the records alone."""
    rows: list[dict[str, Any]] = []
    ledger = venue.read_ledger(with_rows(shown_records(workspace, run), rows))
    return compose(shared_report(workspace, run, venue, ledger, rows), venue.money)
