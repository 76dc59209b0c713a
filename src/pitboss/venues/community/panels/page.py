"""The page of a community run: its sections in order, inside the document of `report/shell.py`."""

from pitboss.report.decisions import anchors, decision_section, select_rows
from pitboss.report.funnel import Funnel, funnel_section
from pitboss.report.headline import labels, title
from pitboss.report.measures import metric_section
from pitboss.report.provenance import assumption_section, skill_section, verify_section
from pitboss.report.refusals import refusal_section
from pitboss.report.shell import Part, ReportPage, resource
from pitboss.venues.community.panels.findings import bug_section, report_section
from pitboss.venues.community.panels.heartbeats import heartbeat_chart
from pitboss.venues.community.panels.source import CommunityReport
from pitboss.venues.community.panels.summary import paragraphs, tiles
from pitboss.venues.community.panels.threads import thread_section
from pitboss.venues.community.panels.transactions import transaction_section

SCENARIO_LIMITS = (
    "This is one run of one scenario. Few planted bugs make a coarse measure: another model, seed or scenario may give another result.",
    "A report counts by its words. A report that names a bug without showing it counts like one that proves it; read the threads.",
)
LIVE_LIMITS = ("Whether a report is right is for the owner of the contract to say; no bugs were planted here.",)


def compose(report: CommunityReport) -> ReportPage:
    """The page of a run."""
    run = report.run
    funnel = Funnel.of(run)
    rows = select_rows(run.decisions)
    limits = LIVE_LIMITS if run.live else SCENARIO_LIMITS
    parts: list[Part] = [
        *([("bugs", "Bugs", "Planted bugs", bug_section(report))] if report.bugs else []),
        ("heartbeats", "Heartbeats", "What happened when", heartbeat_chart(report)),
        ("reports", "Reports", "Reports to the owner", report_section(report)),
        ("transactions", "Transactions", "Transactions", transaction_section(report)),
        ("funnel", "Funnel", "What became of the heartbeats", funnel_section(funnel)),
        ("refused", "Refused", "Refused by the engine", refusal_section(run, funnel, anchors(rows))),
        ("decisions", "Actions", "All actions", decision_section(run, rows)),
        ("threads", "Threads", "The threads", thread_section(report)),
        ("metrics", "Figures", "All figures", metric_section(run)),
        ("limits", "Limits", "Assumptions and limits", assumption_section(run, run.assumptions, limits)),
        ("skill", "Skill", "The skill", skill_section(run)),
        ("verify", "Verify", "Verify this result", verify_section(run)),
    ]
    foot = "Results in a scenario do not predict results elsewhere. All times are UTC. Texts of posts are shown as they were written."
    top = [title(run), labels(run), tiles(report, funnel)]
    style = resource("pitboss.venues.community.panels", "community.css")
    return ReportPage(run.skill_name, top, paragraphs(report, funnel), parts, foot, style)
