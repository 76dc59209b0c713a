"""The training cutoff of the model that decided, as a report states it. Looking it up is the caller's business."""

from pitboss.report.source import Plain, RunReport, mapping

SIDES = {
    "before": "the range lies before it",
    "after": "the range lies after it",
    "across": "the range lies across it",
    "unknown": "unknown",
    "not_applicable": "not applicable",
}


def describe(cutoff: Plain) -> str:
    """The cutoff of a run's document in a few words; empty where the document has none."""
    side = SIDES.get(str(cutoff.get("range") or ""), "")
    until = cutoff.get("until")
    return f"{until}; {side}" if until and side else side


def description(report: RunReport) -> str:
    """For the facts at the top of the page."""
    return describe(mapping(report.document.get("cutoff")))


def sentence(report: RunReport) -> str:
    """The whole of it, with who says so; empty where there is nothing to say."""
    return str(mapping(report.document.get("cutoff")).get("words") or "")
