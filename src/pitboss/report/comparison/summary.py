"""The summary of a comparison: what differs in the inputs, in the results and in the decisions, in sentences."""

from pitboss.core.instant import date_range
from pitboss.report import figures
from pitboss.report.source import Plain, pair

MOST_NAMES = 4


def paragraphs(document: Plain) -> list[str]:
    """The comparison in a few sentences, inputs first."""
    return [inputs_sentence(document), " ".join(result_sentences(document)), decisions_sentence(document)]


def run_period(run: Plain) -> str:
    """The range of a run in days, or in minutes within one day."""
    return date_range(run["from"], run["to"])


def verdict(row: Plain) -> str:
    """Whether the difference of a pair is more than chance."""
    return "significant" if row["told_apart"] else "may be chance" if row["percent"] else "no difference"


def inputs_sentence(document: Plain) -> str:
    """Which inputs differ."""
    names = [row["name"] for row in document["inputs"]]
    if not names:
        return "The runs had the same inputs."
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"The runs differ in these inputs: {', '.join(names[:MOST_NAMES])}{more}."


def result_sentences(document: Plain) -> list[str]:
    """The difference of each run from the first one, with its interval."""
    if document["unpaired"]:
        return [f"The results cannot be compared day by day: {document['unpaired']}."]
    labels = {run["run_id"]: run["label"] for run in document["runs"]}
    first = document["runs"][0]["run_id"]
    return [_result_sentence(row, labels) for row in document["pairs"] if row["second"] == first]


def _result_sentence(row: Plain, labels: dict[str, str]) -> str:
    names = labels[row["first"]], labels[row["second"]]
    if not row["percent"]:
        return f"{names[0]} and {names[1]} ended with the same equity."
    direction = "higher" if row["percent"] > 0 else "lower"
    sentence = f"{names[0]} ended {figures.percent(abs(row['percent']))} {direction} than {names[1]}"
    bounds = pair(row["interval"])
    if bounds is None:
        return f"{sentence}; there are too few days for an interval, so it may be chance."
    low, high = (figures.percent(bound, signed=True) for bound in bounds)
    verdict = "excludes zero: the difference is significant" if row["told_apart"] else "includes zero: it may be chance"
    return f"{sentence}; the 95% interval from {low} to {high} {verdict}."


def differing_decisions(document: Plain) -> list[tuple[str, list[str]]]:
    """Of each run against the first: how many decisions differ, or why that is unknown; and the first of them in words."""
    labels = {run["run_id"]: run["label"] for run in document["runs"]}
    return [_differing(each, f"{labels[each['first']]} and {labels[each['second']]}") for each in document["decisions"]]


def _differing(each: Plain, names: str) -> tuple[str, list[str]]:
    if each["why_not"]:
        return f"the decisions of {names} cannot be compared: {each['why_not']}", []
    if not each["decisions"]:
        return f"{names} decided the same at every tick that both had", []
    ticks = figures.plural(each["differing"], "tick")
    return f"{names} differ at {ticks}, first:", [row["sentence"] for row in each["decisions"]]


def decisions_sentence(document: Plain) -> str:
    """Where the decisions differ first."""
    sentences = [each["decisions"][0]["sentence"] for each in document["decisions"] if each["decisions"]]
    if not sentences:
        return "No decision differs at a tick that the runs have in common."
    return "The first decisions that differ: " + ". ".join(sentences) + "."
