"""Result tables of a finished run for a terminal: the `ResultTable` value, and the table that fits every venue."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pitboss.report import figures
from pitboss.report.meaning import INTERVALS, METRICS, Metric
from pitboss.report.source import mapping, number, pair
from pitboss.store.runs import Run

Plain = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResultTable:
    """One table. `lead` is a line above it, `right` are the right-aligned columns, `folds` those that may wrap."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[int] = ()
    folds: Sequence[int] = ()
    lead: str = ""


def metrics_table(run: Run, own: Mapping[str, Metric]) -> ResultTable:
    """The common metrics of a run, the `own` metrics of its venue, and the refusals."""
    from pitboss.report.measures import format_metric  # loads numpy, which the tables of most venues do without

    metrics = mapping(run.metrics)
    names = ("total_return_pct", "final_equity_usd", "max_drawdown_pct")
    rows = [("Return", with_interval(metrics, "total_return_pct", percent))] if "total_return_pct" in metrics else []
    rows += [
        (METRICS[name].label, format_metric(metrics.get(name), METRICS[name].form))
        for name in names[1:]
        if name in metrics
    ]
    rows += [
        (metric.label, format_metric(metrics.get(name), metric.form))
        for name, metric in own.items()
        if name in metrics and metric.form != "table"
    ]
    rows += [
        ("Ticks", figures.count(metrics.get("total_ticks"))),
        ("Proposals", proposals(metrics)),
        ("Refused by rule", counts(metrics.get("rejections_by_rule")) or "none"),
        *cost_rows(run),
    ]
    return ResultTable(("", "this run (95 % interval)"), rows, folds=(1,))


def cost_rows(run: Run) -> list[tuple[str, str]]:
    """The cost of the model, and the part of it that was wasted by asking ahead, if any."""
    unused = [("of it unused speculative calls", figures.usd(float(run.wasted_usd)))] if run.wasted_usd else []
    return [("Cost of the model", figures.usd(float(run.cost_usd))), *unused]


def percent(value: object) -> str:
    """Format a signed percentage."""
    return figures.percent(value, signed=True)


def sharpe(metrics: Plain) -> str:
    """Format a Sharpe ratio with its interval, or flagged if it is of too few days."""
    if figures.has_few_days(metrics):
        return figures.sharpe(metrics.get("sharpe"), few_days=True)
    return with_interval(metrics, "sharpe", figures.plain)


def with_interval(metrics: Plain, name: str, form: Callable[[object], str]) -> str:
    """Format a figure with its 95 % interval in brackets."""
    bounds = pair(metrics.get(INTERVALS[name]))
    value = form(metrics.get(name))
    return f"{value} ({form(bounds[0])} to {form(bounds[1])})" if bounds else value


def proposals(metrics: Plain, has_account: bool = True) -> str:
    """What became of the proposals: `proposed 40 → allowed 31 → filled 30`; without an account nothing is filled."""
    proposed, allowed = metrics.get("total_proposed_actions"), metrics.get("total_accepted_actions")
    text = f"proposed {figures.count(proposed)} → allowed {figures.count(allowed)}"
    filled = number(mapping(metrics.get("funnel")).get("fills"))
    if filled is None or not has_account:
        return text
    exits = " with stops and other exits" if filled > (number(allowed) or 0) else ""
    return f"{text} → filled {figures.count(filled)}{exits}"


def counts(value: object) -> str:
    """Format counts by name."""
    return ", ".join(f"{name} × {figures.count(count)}" for name, count in mapping(value).items())
