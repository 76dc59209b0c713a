"""What is recorded, as short text and as values, for readers that are programs: the MCP server and the chat agent.

Runs, one run, the market data. A decision is `runs/explain.py`, a comparison `runs/comparison_text.py`. Nothing here writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import date_range
from pitboss.report.figures import plural
from pitboss.report.fork_text import fork_sentence, model_column
from pitboss.runs.lineage import is_by_programs
from pitboss.runs.listing import holdings, result_text, short
from pitboss.runs.stored import is_synthetic, long_document, one_line, request_of
from pitboss.runs.venues import venue_of
from pitboss.store.lifecycle import Status
from pitboss.store.runs import Run

if TYPE_CHECKING:
    from pitboss.data.lake import Lake

MAX_SERIES = 500
FIGURES = (
    "total_return_pct",
    "sharpe",
    "max_drawdown_pct",
    "final_equity_usd",
    "total_trades",
    "win_rate",
    "total_fees_usd",
    "total_funding_usd",
    "total_proposed_actions",
    "total_accepted_actions",
)


@dataclass(frozen=True, slots=True)
class RecordText:
    """Text about records, and the same as values."""

    text: str
    values: Mapping[str, Any]


def runs(workspace: Workspace, limit: int, status: Status | None = None) -> RecordText:
    """Runs, newest first, a line each."""
    listing = workspace.runs.listing(limit, status)
    rows = [with_relative_report(workspace, short(run, workspace.now())) for run in listing.runs]
    lines = [
        f"{row['run_id']} {row['status']} {one_line(row['skill'], 60)} {one_line(model_column(row), 200)} "
        f"{date_range(row['from'], row['to'])} {_result(row)}"
        for row in rows
    ]
    lines += [f"{run_id} is damaged: its row was changed after it was written" for run_id in listing.damaged]
    return RecordText(
        "\n".join(lines) or "there are no runs here yet", {"runs": rows, "damaged": list(listing.damaged)}
    )


def _result(row: Mapping[str, Any]) -> str:
    return result_text(row) if row["result_label"] else f"return {number_text(row['result'])} %"


def run(workspace: Workspace, stored: Run) -> RecordText:
    """Results, caps, cost and labels of one run."""
    request, document = request_of(stored), with_relative_report(workspace, long_document(workspace, stored))
    synthetic, program = is_synthetic(workspace, stored), is_by_programs(stored)
    labels = [*(["synthetic data"] if synthetic else []), *(["not a language model"] if program else [])]
    caps = dict(request.skill.get("risk", {}))
    metrics, buy_and_hold = stored.metrics or {}, (stored.baselines or {}).get("buy_and_hold") or {}
    lines = [
        f"run {stored.id} {stored.status}, {one_line(request.skill.get('name', ''))} with {one_line(stored.model)}, "
        f"{document['from']} to {document['to']}" + "".join(f" [{label}]" for label in labels),
        *([one_line(sentence, 600)] if (sentence := fork_sentence(document)) else []),
        *(
            f"{name} {number_text(metrics[name])}" + _buy_and_hold(buy_and_hold, name)
            for name in dict.fromkeys((*FIGURES, *venue_of(request.skill).study_metrics()))
            if name in metrics
        ),
        *(f"refused by {code}: {count}" for code, count in (metrics.get("rejections_by_rule") or {}).items()),
        *(["caps " + ", ".join(f"{name} {number_text(value)}" for name, value in caps.items())] if caps else []),
        f"cost {number_text(document['cost_usd'])} USD, {document['progress_pct']:.0f} % done, digest {stored.digest}",
        *(f"warning: {one_line(text, 300)}" for text in metrics.get("warnings") or ()),
        *(f"error: {one_line(text, 600)}" for text in document["errors"]),
    ]
    return RecordText("\n".join(lines), {**document, "caps": caps, "labels": labels})


def _buy_and_hold(metrics: Mapping[str, Any], name: str) -> str:
    return f" (buy and hold {number_text(metrics[name])})" if metrics.get(name) is not None else ""


def with_relative_report(workspace: Workspace, document: dict[str, Any]) -> dict[str, Any]:
    """The report as a path relative to the workspace; None for a report elsewhere."""
    report, home = document.get("report") or "", f"{workspace.home.resolve()}/"
    return {**document, "report": report.removeprefix(home) if report.startswith(home) else None}


def number_text(value: Any) -> str:
    """A figure in few digits; other values on one line."""
    return "none" if value is None else f"{value:,.6g}" if isinstance(value, float) else one_line(value, 60)


def data(lake: "Lake") -> RecordText:
    """The series of market data."""
    series = holdings(lake)
    lines = [
        f"{row['venue']} {row['kind']} {row['symbol'] or ''} {row['interval'] or ''}: {row['rows']} rows, "
        f"{row['first_at']} to {row['last_at']}, {plural(row['gaps'], 'gap')}"
        + (" [synthetic]" if row["synthetic"] else "")
        for row in series[:MAX_SERIES]
    ]
    more = f"\nand {len(series) - MAX_SERIES} more" if len(series) > MAX_SERIES else ""
    return RecordText(("\n".join(lines) or "there is no data here yet") + more, {"series": series[:MAX_SERIES]})
