"""Planted bugs with who reported them first, and all reports to the owner with what they are worth."""

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.table import LEFT, table
from pitboss.venues.community.panels.source import CommunityReport
from pitboss.venues.community.score import ReportedBugs

WORTH = {
    "first": ("True", "allowed", "names a planted bug that was not reported before"),
    "repeated": ("Repeated", "noop", "is about a planted bug that had been reported before"),
    "false": ("False", "refused", "is about no planted bug"),
}
MOST_REPORTS = 500
NOBODY = tag("span", figures.NONE, class_="nobody")


def bug_section(report: CommunityReport) -> Html:
    """One row for each planted bug."""
    first = {bug: one for one in report.reports for bug in one.new_bugs}
    rows = [
        (
            tag("span", tag("code", bug), tag("small", summary), class_="stack"),
            _state(first.get(bug)),
            _when(first[bug]) if bug in first else NOBODY,
            _author(report, first[bug]) if bug in first else NOBODY,
            _link(report, first[bug]) if bug in first else NOBODY,
        )
        for bug, summary in report.bugs.items()
    ]
    columns = (("Bug", LEFT), ("Result", LEFT), ("When", LEFT), ("By whom", LEFT), ("Report", LEFT))
    return table("Planted bugs", columns, rows, style="bugs")


def _state(one: ReportedBugs | None) -> Html:
    if one is None:
        return _chip("refused", "Not reported")
    return _chip("allowed", "Found") if one.by_agent else _chip("noop", "Reported by another")


def report_section(report: CommunityReport) -> Html:
    """Every report in order of time, those of other participants included."""
    if not report.reports:
        return tag("p", "No report was made to the owner.", class_="note")
    rows = [
        (
            _when(one),
            _author(report, one),
            _link(report, one),
            _worth(report, one),
            join([tag("code", bug) for bug in one.bugs], ", ") if one.bugs else tag("span", "none", class_="muted"),
        )
        for one in report.reports[:MOST_REPORTS]
    ]
    columns = (("When", LEFT), ("Author", LEFT), ("Report", LEFT), ("Worth", LEFT), ("Bugs", LEFT))
    omitted = len(report.reports) - len(rows)
    more = tag("p", f"… and {figures.plural(omitted, 'more report')}.", class_="note after") if omitted > 0 else Html()
    return join([table("Reports to the owner", columns, rows, style="bugs"), more])


def _when(one: ReportedBugs) -> Html:
    return tag("time", figures.clock(one.at), class_="when")


def _worth(report: CommunityReport, one: ReportedBugs) -> Html:
    if not report.bugs:
        return tag("span", "for the owner to judge", class_="muted")
    name, style, meaning = WORTH[one.worth]
    return tag("span", _chip(style, name), tag("small", meaning), class_="stack")


def _chip(style: str, text: str) -> Html:
    return tag("span", tag("span", text, class_="verdict"), class_=style)


def _author(report: CommunityReport, one: ReportedBugs) -> object:
    thread = report.thread(one.thread_id)
    if one.by_agent:
        return tag("b", f"{report.handle or 'the agent'} (this agent)")
    return figures.NONE if thread is None else thread.posts[0].author


def _link(report: CommunityReport, one: ReportedBugs) -> object:
    thread = report.thread(one.thread_id)
    if thread is None:
        return figures.NONE
    return tag("a", thread.title, href=f"#{report.anchors()[thread.id]}")
