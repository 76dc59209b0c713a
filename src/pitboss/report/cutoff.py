"""The training cutoff of the deciding model, as a report states it. The caller looks it up."""

from pitboss.report.source import Plain, RunReport, mapping

SIDES = {
    "before": "the range lies before it",
    "after": "the range lies after it",
    "across": "the range lies across it",
    "unknown": "unknown",
    "not_applicable": "not applicable",
}


def describe(cutoff: Plain) -> str:
    """The cutoff in a few words; empty if the run's document has none."""
    side = SIDES.get(str(cutoff.get("range") or ""), "")
    until = cutoff.get("until")
    return f"{until}; {side}" if until and side else side


def description(report: RunReport) -> str:
    """The cutoff of a report, for the facts at the top of the page."""
    return describe(mapping(report.document.get("cutoff")))


def sentence(report: RunReport) -> str:
    """The full sentence with its source; empty if the document has none."""
    return str(mapping(report.document.get("cutoff")).get("words") or "")
