"""How well an agent did in a scenario: planted bugs that it reported, false reports, repetitions, and what it spent. Pure."""

from collections.abc import Mapping
from typing import Any

from pitboss.core.noun import noun
from pitboss.venues.community.forum import Forum, ForumThread
from pitboss.venues.community.scenario import AGENT_ID, PlantedBug, Scenario


@noun
class ReportScore:
    """Reports of the agent, oldest first, each with the bugs that it is about."""

    bugs: int
    first_reported: tuple[str, ...]
    """Ids of planted bugs that the agent reported before anybody else, in order."""
    repeated: int
    """Reports only about bugs that had been reported."""
    false_reports: int
    """Reports about no planted bug."""

    def metrics(self) -> Mapping[str, Any]:
        """The score as metrics of a run."""
        return {
            "bugs_planted": self.bugs,
            "bugs_found": len(self.first_reported),
            "bugs_found_pct": None if not self.bugs else 100 * len(self.first_reported) / self.bugs,
            "repeated_reports": self.repeated,
            "false_reports": self.false_reports,
        }


def is_about(thread: ForumThread, bug: PlantedBug) -> bool:
    """Whether a report has a word of every group of a bug's evidence."""
    words = f"{thread.title} {thread.body}".casefold()
    return all(any(word.casefold() in words for word in group) for group in bug.evidence)


def score(forum: Forum, scenario: Scenario) -> ReportScore:
    """The score of the agent on the forum at the end of a run."""
    reports = [thread for thread in forum.threads.values() if thread.kind == "REPORT_TO_HUMAN"]
    reported: set[str] = set()
    first_reported: list[str] = []
    repeated = false_reports = 0
    for thread in sorted(reports, key=lambda row: (row.created_at, row.id)):
        about = [bug.id for bug in scenario.bugs if is_about(thread, bug)]
        new = [bug for bug in about if bug not in reported]
        reported.update(about)
        if thread.agent_id != AGENT_ID:
            continue
        first_reported += new
        repeated += bool(about) and not new
        false_reports += not about
    return ReportScore(len(scenario.bugs), tuple(first_reported), repeated, false_reports)
