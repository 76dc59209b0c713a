"""The report of a run whose venue has no page of its own."""

from typing import Any

from pitboss import __version__
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.curve import points
from pitboss.models.providers import PROGRAMS
from pitboss.report.page import render
from pitboss.report.source import RunReport
from pitboss.runs.report import skill_text, with_rows
from pitboss.runs.stored import document, is_synthetic, journal_of, request_of
from pitboss.runs.venue import Venue
from pitboss.store.runs import Run


def plain_page(workspace: Workspace, run: Run, venue: Venue) -> str:
    """The page of a run, from its records alone."""
    request = request_of(run)
    rows: list[dict[str, Any]] = []
    ledger = venue.read_ledger(with_rows(journal_of(workspace, run).records(), rows))
    report = RunReport(
        document=document(run, workspace.settings.model_cutoffs),
        skill_name=str(request.skill.get("name", "")),
        skill_text=skill_text(request),
        initial_usd=float(request.equity_usd),
        equity=[(at, float(value)) for at, value in points(ledger.equity)],
        fills=list(venue.fills(ledger.receipts)),
        decisions=venue.reveal(rows, run.params),
        rule_meanings=venue.rule_meanings(),
        metric_meanings=venue.metrics(),
        realism=list(venue.realism(request).values()),
        synthetic=is_synthetic(workspace, run),
        standin=run.model.startswith(PROGRAMS),
        halts=[{"at": one.at, "kind": one.facts["halt"]} for one in ledger.receipts if one.kind == "halted"],
        version=str(run.params.get("version", __version__)),
    )
    return render(report, venue.money)
