"""A comparison of two runs as short text and as values, for readers that are programs: the MCP server and the chat agent.

It is the comparison of `pitboss runs compare`: inputs, figures with their intervals and differences, results, and the first decisions
that differ, in words.
"""

from collections.abc import Callable, Iterator
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.report.comparison.summary import differing_decisions, result_sentences, run_period
from pitboss.report.measures import compared_value, format_difference, format_interval
from pitboss.report.source import Plain
from pitboss.runs.comparison import comparison
from pitboss.runs.record_text import RecordText, with_relative_report
from pitboss.runs.run_index import RunIndex
from pitboss.runs.stored import one_line
from pitboss.store.runs import Run

MOST_INPUTS, MOST_VALUE = 40, 120


def compared(workspace: Workspace, first: Run, second: Run, index_of: Callable[[Run], RunIndex]) -> RecordText:
    """The comparison of a run with another one."""
    document = comparison(workspace, [first, second], index_of)
    document["runs"] = [with_relative_report(workspace, run) for run in document["runs"]]
    return RecordText("\n".join(_lines(document)), document)


def _lines(document: dict[str, Any]) -> Iterator[str]:
    for run in document["runs"]:
        skill, model = one_line(run["skill"], 60), one_line(run["model"], MOST_VALUE)
        yield f"{run['label']}: run {run['run_id']} {run['status']}, {skill} with {model}, {run_period(run)}"
    yield from _inputs(document)
    yield from (_metric(row, document) for row in document["metrics"])
    yield from result_sentences(document)
    if document["interval_meaning"]:
        yield document["interval_meaning"]
    for heading, sentences in differing_decisions(document):
        yield heading
        yield from (one_line(sentence, 400) for sentence in sentences)
    yield _first_record(document["difference"])


def _inputs(document: dict[str, Any]) -> Iterator[str]:
    rows = document["inputs"]
    if not rows:
        yield "the inputs are the same: skill, model, range, data and settings"
    for row in rows[:MOST_INPUTS]:
        values = ("none" if value is None else one_line(value, MOST_VALUE) for value in row["values"])
        yield f"input {one_line(row['name'], MOST_VALUE)}: {' / '.join(values)}"
    if len(rows) > MOST_INPUTS:
        yield f"and {len(rows) - MOST_INPUTS} more inputs that differ"


def _metric(row: Plain, document: dict[str, Any]) -> str:
    values: list[str] = []
    for index, run in enumerate(document["runs"]):
        bounds = format_interval(row["intervals"][index], row["form"])
        values.append(f"{run['label']} {compared_value(row, index)}" + (f" (95% {bounds})" if bounds else ""))
    return f"{row['label']}: {', '.join(values)}, difference {format_difference(row['differences'][1], row['form'])}"


def _first_record(difference: Plain) -> str:
    if difference["same"]:
        return "the two runs are the same, byte for byte"
    record = difference["first_difference"]
    if record is None:
        return "every record is the same"
    return f"first difference: record {record['seq']} at {record['tick_at']}, in {', '.join(record['fields'])}"
