"""The page of a perp run: its sections in order, inside the document of `report/shell.py`."""

from pitboss.report.attribution import attribution_section
from pitboss.report.chart_series import series_of
from pitboss.report.decisions import anchors, decision_section, select_rows
from pitboss.report.equity import equity_chart
from pitboss.report.funnel import Funnel, funnel_section
from pitboss.report.headline import labels, title
from pitboss.report.markup import Html, join, tag
from pitboss.report.measures import metric_section
from pitboss.report.provenance import assumption_section, skill_section, verify_section
from pitboss.report.refusals import refusal_section
from pitboss.report.returns import return_section
from pitboss.report.shell import Part, ReportPage
from pitboss.report.source import RunReport
from pitboss.venues.perp.panels import position
from pitboss.venues.perp.panels.costs import cost_section
from pitboss.venues.perp.panels.price import legend, price_chart, shapes
from pitboss.venues.perp.panels.summary import paragraphs
from pitboss.venues.perp.panels.symbols import symbol_section
from pitboss.venues.perp.panels.tiles import tiles
from pitboss.venues.perp.panels.trades import trade_section

OPEN_CHARTS = 4
"""Price charts shown open; the others open with a click."""
LIMITS = (
    "This is one run over one period of history. The intervals come from resampling its own daily returns: they show how much "
    "chance could change the result within this period, not the result of another period.",
    "Fills follow fixed rules on bars. Order books, outages and the market impact of large orders are simplified.",
)


def compose(report: RunReport) -> ReportPage:
    """The page of a run."""
    funnel = Funnel.of(report)
    rows = select_rows(report.decisions)
    row_ids = anchors(rows)
    sections: list[Part] = [
        ("equity", "Equity", "Equity against its baselines", equity_chart(report)),
        ("prices", "Prices", "Prices and orders", _prices(report, row_ids)),
        ("funnel", "Funnel", "From ticks to fills", funnel_section(funnel)),
        ("refused", "Refused", "Refused by the engine", refusal_section(report, funnel, row_ids)),
        ("decisions", "Decisions", "Decisions", decision_section(report, rows)),
        ("trades", "Trades", "Round trips", trade_section(report)),
        ("symbols", "Symbols", "By symbol", symbol_section(report)),
        ("returns", "Returns", "Returns over time", return_section(report)),
        ("metrics", "Metrics", "All metrics", metric_section(report)),
        ("costs", "Costs", "Costs", cost_section(report)),
        ("limits", "Limits", "Assumptions and limits", assumption_section(report, report.assumptions, LIMITS)),
        ("skill", "Skill", "The skill", skill_section(report)),
        ("verify", "Verify", "Verify this result", verify_section(report)),
    ]
    if report.live:
        content = attribution_section(report.attribution, report.attribution_note)
        sections.insert(6, ("attribution", "Sim vs live", "Simulation against live", content))
    top = [title(report), labels(report), tiles(report, funnel)]
    return ReportPage(
        report.skill_name, top, paragraphs(report, funnel), sections, shapes=shapes(), series=series_of(report)
    )


def _prices(report: RunReport, row_ids: dict[tuple[int, str], str]) -> Html:
    if not report.prices:
        return tag("p", "This report has no bars.", class_="note")
    active = position.active_symbols(report.fills, report.decisions)
    charts: list[Html] = []
    for symbol in sorted(report.prices, key=lambda name: (name not in active, name)):
        chart = price_chart(report, symbol, row_ids)
        if len(charts) < OPEN_CHARTS:
            charts.append(chart)
        else:
            charts.append(tag("details", tag("summary", f"Price of {symbol}"), chart, class_="folded"))
    return join([legend(), *charts])
