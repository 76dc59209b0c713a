"""The result of a community run as a table for a terminal."""

from collections.abc import Mapping
from typing import Any

from pitboss.report import figures
from pitboss.report.source import mapping
from pitboss.runs.result_table import ResultTable, cost_rows, counts, proposals
from pitboss.store.runs import Run


def result_tables(run: Run) -> list[ResultTable]:
    """What was found, what was posted and sent, and what was refused."""
    metrics: Mapping[str, Any] = mapping(run.metrics)
    planted = [
        ("Planted bugs found", f"{metrics.get('bugs_found', 0)} of {metrics.get('bugs_planted', 0)}"),
        ("False reports", figures.count(metrics.get("false_reports"))),
        ("Repeated reports", figures.count(metrics.get("repeated_reports"))),
    ]
    rows = [
        *([] if run.params.get("mode") else planted),
        ("Posts", figures.count(metrics.get("posts"))),
        ("Posts refused as repetitions", figures.count(metrics.get("duplicate_posts"))),
        ("Transactions", figures.count(metrics.get("transactions"))),
        ("Spent on the chain, in wei", str(metrics.get("spent_wei", "0"))),
        ("Heartbeats", figures.count(metrics.get("total_ticks"))),
        ("Actions", proposals(metrics, has_account=False)),
        ("Refused by rule", counts(metrics.get("rejections_by_rule")) or "none"),
        *cost_rows(run),
    ]
    return [ResultTable(("", "this run"), rows, folds=(1,))]
