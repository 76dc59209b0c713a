"""The page of a predict run: its sections in order. The document around them is that of every report."""

from dataclasses import replace

from pitboss.report import cutoff
from pitboss.report.decisions import anchors, decision_section, select_rows
from pitboss.report.equity import equity_chart
from pitboss.report.funnel import Funnel, funnel_section
from pitboss.report.headline import labels, title
from pitboss.report.markup import Html, join, tag
from pitboss.report.provenance import skill_section, verify_section
from pitboss.report.refusals import refusal_section
from pitboss.report.shell import Part, document, layout, resource
from pitboss.venues.predict.panels.calibration import calibration_section
from pitboss.venues.predict.panels.decisions import decision_rows
from pitboss.venues.predict.panels.source import PredictReport
from pitboss.venues.predict.panels.summary import SURFACES, answer, paragraphs, surface_label, tiles
from pitboss.venues.predict.panels.tables import figure_section, score_section, spread_section


def render(report: PredictReport) -> str:
    """The whole report as one HTML document."""
    run = replace(report.run, decisions=decision_rows(report.run.decisions, report.calls))
    funnel = Funnel.of(run)
    rows = select_rows(run.decisions)
    parts: list[Part] = [
        ("calibration", "Calibration", "What it said, and what happened", calibration_section(report)),
        ("scores", "Scores", "Against the market and other baselines", score_section(report)),
        ("equity", "Equity", "Equity against the heuristics", equity_chart(run)),
        ("spread", "Spread", "What the spread took", spread_section(report)),
        ("funnel", "Funnel", "From ticks to fills", funnel_section(funnel)),
        ("refused", "Refused", "What the engine refused", refusal_section(run, funnel, anchors(rows))),
        ("decisions", "Decisions", "Every decision and why", decision_section(run, rows)),
        ("metrics", "Figures", "All figures", figure_section(report)),
        ("limits", "Limits", "Assumptions and limits", _limits(report)),
        ("skill", "Skill", "The skill", skill_section(run)),
        ("verify", "Verify", "Check it yourself", verify_section(run)),
    ]
    body = layout(
        [title(run), labels(run), answer(report), surface_label(report), tiles(report, funnel)],
        paragraphs(report, funnel),
        parts,
        "Past results of a simulation are not a promise. All times are UTC; money is in the venue's quote unit, written as $.",
    )
    return document(run.skill_name, body, resource("pitboss.venues.predict.panels", "predict.css"))


def _limits(report: PredictReport) -> Html:
    """The caller's sentences, then how far the numbers carry."""
    given = [SURFACES[report.surfaces][1], report.surface_note, *report.run.assumptions]
    far = [
        "This is one run over one stretch of history. The interval of the skill comes from drawing its markets anew: it shows "
        "how much luck could do among these, not how another period would go. Markets that overlap in time depend on the same "
        "moves, which makes the true interval wider still.",
        "A call is scored when its market settles, whether or not it was bought or sold back before. Refused calls count: what "
        "the model believed does not depend on what the rules allowed.",
        "Contracts are sold by one vault at formula prices. Other traders, outages and the effect of much larger orders are "
        "simpler here than they would be.",
    ]
    if not report.run.standin:
        far.append(
            "A language model may have read about this period while it was trained. A good result before its training cutoff can "
            "be memory, not judgement, and its answers may differ when it is asked again."
        )
    if cutoff.sentence(report.run):
        far.append(cutoff.sentence(report.run))
    return join(
        [
            tag("ul", *[tag("li", sentence) for sentence in given if sentence], class_="plain"),
            tag("h3", "How far these numbers carry"),
            tag("ul", *[tag("li", sentence) for sentence in far], class_="plain"),
        ]
    )
