"""The table of all metrics, with intervals, baselines and meanings."""

from collections.abc import Callable, Iterable

from pitboss.report import figures
from pitboss.report.equity import NAMES
from pitboss.report.markup import Html, tag
from pitboss.report.meaning import INTERVALS, Form, Metric, unknown_metric
from pitboss.report.source import Plain, RunReport, mapping, number, pair
from pitboss.report.table import LEFT, RIGHT, WIDE, table
from pitboss.sim.study.choice import figure

_FORMS: dict[Form, Callable[[object], str]] = {
    "percent": figures.percent,
    "signed_percent": lambda value: figures.percent(value, signed=True),
    "share": figures.share,
    "signed_share": lambda value: figures.share(value, signed=True),
    "ratio": figures.plain,
    "score": lambda value: figures.plain(value, 4),
    "usd": figures.usd,
    "count": figures.count,
    "whole": lambda value: f"{int(str(value)):,}" if str(value).isdecimal() else figures.count(value),
    "days": lambda value: f"{figures.plain(value, 1)} days",
}


def format_metric(value: object, form: Form) -> str:
    """A metric in its form; an unknown value is a dash, a table is its sum."""
    if form == "table":
        return figures.count(sum(number(item) or 0 for item in mapping(value).values()))
    return figures.NONE if number(value) is None else _FORMS[form](value)


def format_named(name: str, value: object, form: Form, few_days: bool) -> str:
    """A metric by its name: like `format_metric`, and a Sharpe ratio of too few days is flagged."""
    return figures.sharpe(value, few_days) if name == "sharpe" else format_metric(value, form)


def run_value(metrics: Plain | None, name: str, form: Form) -> str:
    """A metric of one run of a study."""
    values = metrics or {}
    return format_named(name, figure(values, name), form, figures.has_few_days(values))


def format_interval(bounds: object, form: Form) -> str:
    """The ends of an interval of a metric; empty if there is none."""
    ends = pair(bounds)
    return "" if ends is None else f"{format_metric(ends[0], form)} to {format_metric(ends[1], form)}"


def compared_value(row: Plain, index: int) -> str:
    """The value of one run in a row of a comparison."""
    return format_named(row["metric"], row["values"][index], row["form"], pair(row["intervals"][index]) is None)


_DIGITS: dict[Form, int] = {"share": 3, "signed_share": 3, "score": 4, "count": 0, "whole": 0, "days": 1}
"""Decimals of the values that are shown in a form, where they are not two."""
_SMALL_USD, _SMALL_DIGITS = 0.01, 6
"""Amounts below a cent have more digits."""


def shown_difference(value: float | None, base: float | None, form: Form) -> float | None:
    """The difference of two metrics as a reader of their shown, rounded values computes it; None if one is unknown."""
    is_small = form == "usd" and 0 < max(abs(value or 0), abs(base or 0)) < _SMALL_USD
    difference = figures.difference(value, base, _SMALL_DIGITS if is_small else _DIGITS.get(form, 2))
    return None if difference is None else float(difference)


def format_difference(value: float | None, form: Form) -> str:
    """A difference of metrics with its sign; that of percentages in percentage points."""
    if value is None:
        return figures.NONE
    if form in ("percent", "signed_percent"):
        return f"{figures.plain(value, signed=True)} pp"
    if form in ("share", "signed_share"):
        return f"{figures.plain(100 * value, 1, signed=True)} pp"
    if form == "usd":
        return figures.usd(value, signed=True)
    text = figures.plain(value, _DIGITS.get(form, 2), signed=True)
    return f"{text} days" if form == "days" else text


def metric_section(report: RunReport) -> Html:
    """Every named metric, then any other number of the run."""
    metrics = report.metrics
    baselines = {name: mapping(value) for name, value in mapping(report.document.get("baselines")).items()}
    names = sorted(baselines)
    has_intervals = any(key in metrics for key in INTERVALS)
    columns = [
        ("Metric", LEFT),
        ("This run", RIGHT),
        *([("95% interval", RIGHT)] if has_intervals else []),
        *[(NAMES.get(name, name.replace("_", " ")), f"{RIGHT} baseline") for name in names],
        ("Meaning", WIDE),
    ]
    rows: list[tuple[object, ...]] = []
    for key, metric in report.known_metrics().items():
        if key in metrics or any(key in baseline for baseline in baselines.values()):
            rows.append(_row(key, metric, metrics, [baselines[name] for name in names], has_intervals))
    listed_keys = {*report.known_metrics(), *INTERVALS.values()}
    for key in sorted(set(metrics) - listed_keys):
        if isinstance(metrics[key], int | float | str) and not isinstance(metrics[key], bool):
            rows.append(_row(key, unknown_metric(key), metrics, [baselines[name] for name in names], has_intervals))
    if not rows:
        return tag("p", "The metrics have not been computed yet.", class_="note")
    return table("Metrics", columns, rows, style="metrics", stacks=True)


def _row(key: str, metric: Metric, metrics: Plain, baselines: list[Plain], has_intervals: bool) -> tuple[object, ...]:
    interval = pair(metrics.get(INTERVALS.get(key, "")))
    reach = figures.NONE if key in INTERVALS else ""
    if interval is not None:
        reach = " to ".join(format_metric(value, metric.form) for value in interval)

    def shown(values: Plain) -> str:
        few_days = figures.has_few_days(metrics)  # baselines are of the same days
        return format_named(key, values.get(key), metric.form, few_days) if key in values else figures.NONE

    return (
        metric.label,
        shown(metrics),
        *((reach,) if has_intervals else ()),
        *map(shown, baselines),
        f"{metric.meaning} {_parts(metrics.get(key))}".strip(),
    )


def _parts(value: object) -> str:
    """The entries of a table of counts, the most frequent first."""
    items = sorted(mapping(value).items(), key=lambda item: (-(number(item[1]) or 0), str(item[0])))
    return ", ".join(f"{key} {figures.count(item)}" for key, item in items)


def result_facts(results: Iterable[tuple[str, float]]) -> Html:
    """Amounts with their signs, coloured as gains and losses."""
    rows = [
        tag("div", tag("dt", name), tag("dd", figures.usd(value, signed=True), class_=figures.tone(value)))
        for name, value in results
    ]
    return tag("dl", *rows, class_="facts wide")
