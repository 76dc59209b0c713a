"""A fork beside its source: the first difference, the metrics of both, and the decisions around that tick side by side."""

from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import iso, parse_instant
from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.meaning import METRICS
from pitboss.report.measures import format_named
from pitboss.report.table import LEFT, RIGHT, facts, table
from pitboss.runs.compare import compare
from pitboss.runs.indexed_runs import IndexedRuns
from pitboss.runs.run_index import RunIndex
from pitboss.runs.venue import Venue
from pitboss.runs.venues import venue_of
from pitboss.store.runs import Run

BEFORE, AFTER = 2, 6
"""Decisions that are shown before the first difference and from it on."""
MOST_METRICS = 14
FIELDS = {"prompt_sha256": "prompt", "before": "account before", "after": "account after", "text": "answer"}
"""Words for the fields of a record."""
VERDICTS = {"allowed": "allowed", "reduced": "reduced", "refused": "refused"}


def difference_view(workspace: Workspace, indexed: IndexedRuns, source: Run, run: Run) -> Html:
    """The comparison of a finished run with the run that it was forked from."""
    comparison = compare(workspace, source, run)
    first = comparison["first_difference"]
    if first is None:
        return tag("p", "Every record of the two runs is the same.", class_="note")
    at = parse_instant(first["tick_at"])
    venue = venue_of(run.params["skill"])
    indexes = [indexed.index(workspace, each) for each in (source, run)]
    summary = facts(
        [
            ("Source", tag("a", source.id, href=f"/runs/{source.id}")),
            ("First difference", tag("a", f"{figures.clock(at)} UTC", href=f"#d{first['seq']}")),
            (
                "What differs there",
                ", ".join(FIELDS.get(name) or str(name).replace("_", " ") for name in first["fields"]),
            ),
        ]
    )
    decisions = _decisions(indexes, at, venue, (source, run))
    return join([summary, decisions, _metrics(comparison["metrics"], venue, (source, run))])


def _metrics(differing: dict[str, Any], venue: Venue, runs: tuple[Run, Run]) -> Html:
    have_few_days = [figures.has_few_days(run.metrics or {}) for run in runs]
    metrics = {**METRICS, **venue.metrics()}
    rows = [
        (
            metrics[name].label,
            *(
                format_named(name, pair[side], metrics[name].form, few_days)
                for side, few_days in zip(("first", "second"), have_few_days, strict=True)
            ),
        )
        for name, pair in differing.items()
        if name in metrics and metrics[name].form != "table"
    ]
    if not rows:
        return tag("p", "The metrics are the same.", class_="note")
    order = {metric.label: number for number, metric in enumerate(metrics.values())}
    rows.sort(key=lambda row: order[row[0]])
    columns = (("Metric that differs", LEFT), ("Source", RIGHT), ("This run", RIGHT))
    return table("Metrics that differ", columns, rows[:MOST_METRICS])


def _decisions(indexes: list[RunIndex], at: int, venue: Venue, runs: tuple[Run, Run]) -> Html:
    """The decisions of both runs at the same instants."""
    by_time: dict[int, list[list[Html]]] = {}
    for side, index in enumerate(indexes):
        times = index.numbers["tick_at"]
        first = int(times.searchsorted(at))
        for number in range(max(first - BEFORE, 0), min(first + AFTER, len(index))):
            row = index.row(number)
            cells = by_time.setdefault(row["tick_at"], [[], []])
            cells[side].append(_cell(row, venue, runs[side]))
    rows = [
        (tag("time", figures.clock(moment), datetime=iso(moment)), *[join(side) for side in sides])
        for moment, sides in sorted(by_time.items())
    ]
    columns = (("Time (UTC)", LEFT), ("Source", LEFT), ("This run", LEFT))
    return table("Decisions around the first difference", columns, rows, style="side-by-side")


def _cell(row: dict[str, Any], venue: Venue, run: Run) -> Html:
    outcome = row["outcome"]
    words = "Hold" if outcome == "noop" else venue.describe_intent(row)
    times = f" × {row['times']}" if row["times"] > 1 else ""
    return tag(
        "div",
        tag("a", f"{words[:1].upper()}{words[1:]}{times}", href=f"/runs/{run.id}#d{row['seq']}"),
        " ",
        tag("span", VERDICTS.get(outcome, outcome), class_="verdict") if outcome != "noop" else None,
        tag("small", row["reason"], dir="auto") if row["reason"] else None,
        class_=outcome if outcome in VERDICTS else "noop",
    )
