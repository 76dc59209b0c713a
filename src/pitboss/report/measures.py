"""The tables of all metrics, with intervals, baselines and meanings, and of the costs."""

from collections.abc import Callable, Iterable

from pitboss.report import figures
from pitboss.report.equity import NAMES
from pitboss.report.markup import Html, join, tag
from pitboss.report.meaning import INTERVALS, Form, Metric, unknown_metric
from pitboss.report.source import Plain, RunReport, mapping, model_cost, number, pair
from pitboss.report.table import LEFT, RIGHT, table

_FORMS: dict[Form, Callable[[object], str]] = {
    "percent": figures.percent,
    "signed_percent": lambda value: figures.percent(value, signed=True),
    "share": figures.share,
    "signed_share": lambda value: figures.share(value, signed=True),
    "ratio": figures.plain,
    "score": lambda value: figures.plain(value, 4),
    "usd": figures.usd,
    "count": figures.count,
    "days": lambda value: f"{figures.plain(value, 1)} days",
}


def format_metric(value: object, form: Form) -> str:
    """A metric in its form; an unknown value is a dash, a table is its sum."""
    if form == "table":
        return figures.count(sum(number(item) or 0 for item in mapping(value).values()))
    return figures.NONE if number(value) is None else _FORMS[form](value)


def metric_section(report: RunReport) -> Html:
    """Every named metric, then any other number of the run."""
    metrics = report.metrics
    baselines = {name: mapping(value) for name, value in mapping(report.document.get("baselines")).items()}
    names = sorted(baselines)
    columns = [
        ("Metric", LEFT),
        ("This run", RIGHT),
        ("95% interval", RIGHT),
        *[(NAMES.get(name, name.replace("_", " ")), RIGHT) for name in names],
        ("Meaning", LEFT),
    ]
    rows: list[tuple[object, ...]] = []
    for key, metric in report.known_metrics().items():
        if key in metrics or any(key in baseline for baseline in baselines.values()):
            rows.append(_row(key, metric, metrics, [baselines[name] for name in names]))
    listed_keys = {*report.known_metrics(), *INTERVALS.values()}
    for key in sorted(set(metrics) - listed_keys):
        if isinstance(metrics[key], int | float | str) and not isinstance(metrics[key], bool):
            rows.append(_row(key, unknown_metric(key), metrics, [baselines[name] for name in names]))
    if not rows:
        return tag("p", "The metrics have not been computed yet.", class_="note")
    return table("Metrics", columns, rows, style="metrics")


def _row(key: str, metric: Metric, metrics: Plain, baselines: list[Plain]) -> tuple[object, ...]:
    interval = pair(metrics.get(INTERVALS.get(key, "")))
    reach = figures.NONE if key in INTERVALS else ""
    if interval is not None:
        reach = " to ".join(format_metric(value, metric.form) for value in interval)
    return (
        metric.label,
        format_metric(metrics.get(key), metric.form),
        reach,
        *[format_metric(baseline.get(key), metric.form) if key in baseline else figures.NONE for baseline in baselines],
        f"{metric.meaning} {_parts(metrics.get(key))}".strip(),
    )


def _parts(value: object) -> str:
    """The entries of a table of counts, the most frequent first."""
    items = sorted(mapping(value).items(), key=lambda item: (-(number(item[1]) or 0), str(item[0])))
    return ", ".join(f"{key} {figures.count(item)}" for key, item in items)


def cost_section(report: RunReport) -> Html:
    """Each cost in dollars and relative to the starting equity, and the result with and without costs."""
    metrics = report.metrics
    model, wasted = model_cost(report.document)
    costs = {
        "Fees": number(metrics.get("total_fees_usd")) or 0.0,
        "Funding": number(metrics.get("total_funding_usd")) or 0.0,
        "Slippage": number(metrics.get("total_slippage_usd")) or 0.0,
        "Liquidation penalties": number(metrics.get("total_penalties_usd")) or 0.0,
    }
    total = sum(costs.values())
    result = report.final_usd - report.initial_usd
    most = max([abs(value) for value in (*costs.values(), model or 0.0)] + [1e-9])
    rows: list[tuple[object, ...]] = [
        (name, figures.usd(value), _of(value, report), _bar(value, most)) for name, value in costs.items()
    ]
    rows.append((tag("b", "All trading costs"), tag("b", figures.usd(total)), tag("b", _of(total, report)), ""))
    label = (
        f"Model, paid separately ({figures.usd(wasted)} of it for unused speculative calls)"
        if wasted
        else "Model, paid separately"
    )
    rows.append((label, figures.usd(model or 0.0), _of(model or 0.0, report), _bar(model or 0.0, most)))
    columns = (("Cost", LEFT), ("USD", RIGHT), ("Of starting equity", RIGHT), ("", LEFT))
    outcome = [
        ("Result before trading costs", result + total),
        ("Result of the account", result),
        ("Result after the cost of the model", result - (model or 0.0)),
    ]
    return join([table("Costs", columns, rows, style="costs"), result_facts(outcome)])


def result_facts(results: Iterable[tuple[str, float]]) -> Html:
    """Amounts with their signs, coloured as gains and losses."""
    rows = [
        tag("div", tag("dt", name), tag("dd", figures.usd(value, signed=True), class_=figures.tone(value)))
        for name, value in results
    ]
    return tag("dl", *rows, class_="facts wide")


def _of(value: float, report: RunReport) -> str:
    return figures.percent(100 * value / report.initial_usd) if report.initial_usd else figures.NONE


def _bar(value: float, most: float) -> Html:
    width = 100 * abs(value) / most
    style = "fill received" if value < 0 else "fill"
    return tag("span", tag("span", style=f"width:{width:.2f}%", class_=style) if value else None, class_="track")
