"""The page of a predict run: its sections in order, inside the document of `report/shell.py`."""

from dataclasses import replace

from pitboss.report.chart_series import series_of
from pitboss.report.decisions import anchors, decision_section, select_rows
from pitboss.report.equity import equity_chart
from pitboss.report.funnel import Funnel, funnel_section
from pitboss.report.headline import labels, title
from pitboss.report.provenance import assumption_section, skill_section, verify_section
from pitboss.report.refusals import refusal_section
from pitboss.report.returns import return_section
from pitboss.report.shell import Part, ReportPage, resource
from pitboss.venues.predict.panels.calibration import calibration_section
from pitboss.venues.predict.panels.decisions import decision_rows
from pitboss.venues.predict.panels.source import PredictReport
from pitboss.venues.predict.panels.summary import SURFACES, answer, paragraphs, surface_label, tiles
from pitboss.venues.predict.panels.tables import figure_section, score_section, spread_section

LIMITS = (
    "This is one run over one period of history. The interval of the skill comes from resampling its markets: it shows how much "
    "chance could change the result among these, not the result of another period. Markets that overlap in time depend on the "
    "same price moves, so the true interval is wider.",
    "A call is scored when its market settles, whether or not it was bought or sold back before. Refused calls count: the "
    "model's probability does not depend on the rules.",
    "Contracts are sold by one vault at formula prices. Other traders, outages and the effect of much larger orders are "
    "simplified.",
)


def compose(report: PredictReport) -> ReportPage:
    """The page of a run."""
    run = replace(report.run, decisions=decision_rows(report.run.decisions, report.calls))
    funnel = Funnel.of(run)
    rows = select_rows(run.decisions)
    assumptions = [SURFACES[report.surfaces][1], report.surface_note, *run.assumptions]
    parts: list[Part] = [
        ("calibration", "Calibration", "Confidence and outcomes", calibration_section(report)),
        ("scores", "Scores", "Against the market and other baselines", score_section(report)),
        ("equity", "Equity", "Equity against the heuristics", equity_chart(run)),
        ("returns", "Returns", "Returns over time", return_section(run)),
        ("spread", "Spread", "Cost of the spread", spread_section(report)),
        ("funnel", "Funnel", "From ticks to fills", funnel_section(funnel)),
        ("refused", "Refused", "Refused by the engine", refusal_section(run, funnel, anchors(rows))),
        ("decisions", "Decisions", "Decisions", decision_section(run, rows)),
        ("metrics", "Figures", "All figures", figure_section(report)),
        ("limits", "Limits", "Assumptions and limits", assumption_section(run, assumptions, LIMITS)),
        ("skill", "Skill", "The skill", skill_section(run)),
        ("verify", "Verify", "Verify this result", verify_section(run)),
    ]
    return ReportPage(
        run.skill_name,
        [title(run), labels(run), answer(report), surface_label(report), tiles(report, funnel)],
        paragraphs(report, funnel),
        parts,
        "Results of a simulation do not predict future results. All times are UTC; money is in the venue's quote unit, shown as $.",
        resource("pitboss.venues.predict.panels", "predict.css"),
        series=series_of(run),
    )
