"""The page of a run of any venue: the sections that every run has. A venue with panels of its own has its own page."""

from pitboss.report import figures
from pitboss.report.chart_series import series_of
from pitboss.report.decisions import anchors, decision_section, select_rows
from pitboss.report.equity import equity_chart
from pitboss.report.funnel import Funnel, funnel_section
from pitboss.report.headline import interval, labels, note, tile, title
from pitboss.report.markup import Html, tag
from pitboss.report.measures import format_metric, metric_section
from pitboss.report.provenance import assumption_section, skill_section, verify_section
from pitboss.report.refusals import refusal_section
from pitboss.report.returns import return_section
from pitboss.report.shell import Part, ReportPage
from pitboss.report.source import RunReport, model_cost

LIMITS = (
    "This is one run over one period of history. The interval of the return comes from resampling its own days: it shows how "
    "much the result depends on chance within this period, not what another period would give.",
)
ONE_RUN = ("This is one run. Another model, seed or period may give another result.",)
"""The limits where no return is measured."""
MOST_TILES = 4


def compose(report: RunReport, money: str) -> ReportPage:
    """The page of a run. `money` is the unit of the account; without accounts nothing is about money."""
    funnel = Funnel.of(report)
    rows = select_rows(report.decisions)
    sections: list[Part] = [
        *([("equity", "Equity", "Equity", equity_chart(report))] if report.has_account else []),
        *([("returns", "Returns", "Returns over time", return_section(report))] if report.has_account else []),
        (
            "funnel",
            "Funnel",
            "From ticks to fills" if report.has_account else "What became of the ticks",
            funnel_section(funnel),
        ),
        ("refused", "Refused", "What the engine refused", refusal_section(report, funnel, anchors(rows))),
        ("decisions", "Decisions", "Decisions and reasons", decision_section(report, rows)),
        ("metrics", "Metrics", "All metrics", metric_section(report)),
        (
            "limits",
            "Limits",
            "Assumptions and limits",
            assumption_section(report, report.assumptions, LIMITS if report.has_account else ONE_RUN),
        ),
        ("skill", "Skill", "The skill", skill_section(report)),
        ("verify", "Verify", "Check it yourself", verify_section(report)),
    ]
    unit = f", all money is {money}" if report.has_account else ""
    foot = f"Results of a simulation do not predict future results. All times are UTC{unit}."
    top = [title(report), labels(report), tiles(report, funnel)]
    return ReportPage(report.skill_name, top, paragraphs(report, funnel), sections, foot, series=series_of(report))


def tiles(report: RunReport, funnel: Funnel) -> Html:
    """The headline numbers that every venue has."""
    metrics = report.metrics
    cost = tile("Cost of the model", figures.usd(model_cost(report.document)[0]), note(""))
    if not report.has_account:
        own = [
            tile(metric.label, format_metric(metrics.get(key), metric.form), note(""))
            for key, metric in report.metric_meanings.items()
            if key in metrics and metric.form != "table"
        ]
        accepted = tile("Accepted", figures.count(funnel.accepted), note(funnel.summary()))
        return tag("div", *own[:MOST_TILES], accepted, cost, class_="tiles even")
    change = metrics.get("total_return_pct")
    around = interval(metrics.get("total_return_ci"), change, percent=True)
    return tag(
        "div",
        tile("Return", figures.percent(change, signed=True), around, change, "lead"),
        tile("Final equity", figures.usd(metrics.get("final_equity_usd")), note("")),
        tile("Fills", figures.count(funnel.total_fills), note(funnel.summary())),
        cost,
        class_="tiles",
    )


def paragraphs(report: RunReport, funnel: Funnel) -> list[str]:
    """The result in a few sentences."""
    sentences = [f"{funnel.summary().capitalize()}."]
    if report.has_account:
        change = figures.percent(report.metrics.get("total_return_pct"), signed=True)
        sentences = [f"The account changed by {change}. {sentences[0]}"]
    if funnel.refused:
        code = next(iter(funnel.refused))
        sentences.append(f"Most refusals were by {code} ({funnel.rule_names[code].lower()}).")
    return sentences
