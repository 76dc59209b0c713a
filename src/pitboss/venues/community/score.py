"""How well an agent did in a scenario, from the receipts of its run: bugs that it reported, and reports about nothing. Pure.

A report is matched with the planted bugs when it is posted (`simulated_world.py`), and its receipt names them. So a score can be
computed again from stored records alone.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.venues.community.scenario import PlantedBug, Scenario

REPORTED = "reported_bugs"
"""The fact of a report's receipt that names the bugs it is about, separated by spaces; empty for none."""
BY_AGENT = "by_agent"
"""The fact that says whether the agent of the run wrote a report."""


def is_about(title: str, body: str, bug: PlantedBug) -> bool:
    """Whether a report has a word of every group of a bug's evidence."""
    words = f"{title} {body}".casefold()
    return all(any(word.casefold() in words for word in group) for group in bug.evidence)


def report_facts(scenario: Scenario, title: str, body: str, by_agent: bool) -> dict[str, str | int]:
    """What the receipt of a report says about it."""
    bugs = [bug.id for bug in scenario.bugs if is_about(title, body, bug)]
    return {REPORTED: " ".join(bugs), BY_AGENT: int(by_agent)}


Worth = Literal["first", "repeated", "false"]
"""Of a report: it names a bug before anybody else, only bugs that had been reported, or no planted bug."""


@noun
class ReportedBugs:
    """A report to the owner, by the agent or by another participant, and the planted bugs that it is about."""

    at: Instant
    thread_id: str
    by_agent: bool
    bugs: tuple[str, ...]
    new_bugs: tuple[str, ...]
    """Those of the bugs that nobody had reported before."""

    @property
    def worth(self) -> Worth:
        """What the report is worth."""
        return "first" if self.new_bugs else "repeated" if self.bugs else "false"


@noun
class ReportScore:
    """What the reports of an agent are worth."""

    first_reported: tuple[str, ...]
    """Planted bugs that the agent reported before anybody else, in order."""
    repeated: int
    """Reports only about bugs that had been reported."""
    false_reports: int
    """Reports about no planted bug."""

    def metrics(self, planted: int) -> Mapping[str, Any]:
        """The score as metrics of a run; `planted` is the number of bugs in the scenario."""
        return {
            "bugs_planted": planted,
            "bugs_found": len(self.first_reported),
            "bugs_found_pct": None if not planted else 100 * len(self.first_reported) / planted,
            "repeated_reports": self.repeated,
            "false_reports": self.false_reports,
        }


def reported_bugs(receipts: Iterable[Receipt]) -> list[ReportedBugs]:
    """The reports of all participants, from all receipts of a run in order."""
    reported: set[str] = set()
    reports: list[ReportedBugs] = []
    for receipt in receipts:
        if REPORTED not in receipt.facts:
            continue
        bugs = tuple(str(receipt.facts[REPORTED]).split())
        new_bugs = tuple(bug for bug in bugs if bug not in reported)
        reported.update(bugs)
        thread_id, by_agent = str(receipt.facts.get("thread_id", "")), bool(receipt.facts[BY_AGENT])
        reports.append(ReportedBugs(receipt.at, thread_id, by_agent, bugs, new_bugs))
    return reports


def score(receipts: Iterable[Receipt]) -> ReportScore:
    """The score of the agent, from all receipts of a run in order."""
    own = [report for report in reported_bugs(receipts) if report.by_agent]
    worths = [report.worth for report in own]
    first_reported = tuple(bug for report in own for bug in report.new_bugs)
    return ReportScore(first_reported, worths.count("repeated"), worths.count("false"))
