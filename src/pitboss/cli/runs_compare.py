"""Print a comparison of runs, in tables that fit into 80 columns. The comparison is made by `runs.comparison`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pitboss.report import figures
from pitboss.report.comparison.summary import differing_decisions, run_period, verdict
from pitboss.report.measures import compared_value, format_difference, format_interval
from pitboss.runs.listing import result_text
from pitboss.runs.stored import one_line
from pitboss.terminal import screen

WIDTH, GAP = 80, 2
MAX_MODEL, MAX_NAME, MIN_VALUE, MAX_INPUTS = 30, 40, 12, 20
INTERVAL = "  95% interval"

Plain = Mapping[str, Any]
Column = tuple[str, Sequence[str]]
"""A heading and its cells."""


def show_comparison(document: Plain) -> None:
    """Print a comparison: inputs first, then metrics, results and decisions."""
    _show_runs(document["runs"])
    _show_inputs(document)
    _show_metrics(document)
    _show_pairs(document)
    _show_decisions(document)
    screen.put()
    screen.put(f"page    {document['report']}")


def _show_runs(runs: Sequence[Plain]) -> None:
    skills, periods = dict.fromkeys(run["skill"] for run in runs), dict.fromkeys(run_period(run) for run in runs)
    title = f"{' and '.join(one_line(name, MAX_NAME) for name in skills)} · {' and '.join(periods)}"
    cells = [
        (run["label"], run["run_id"], one_line(run["model"], MAX_MODEL), run["status"], result_text(run))
        for run in runs
    ]
    result = "result" if any(run["result_label"] for run in runs) else "return"
    screen.put(title, "bold")
    screen.put_table(("", "run", "model", "status", result), cells, right=(4,))


def _show_inputs(document: Plain) -> None:
    screen.put()
    rows = document["inputs"]
    if not rows:
        screen.put("the inputs are the same: skill, model, range, data and settings")
        return
    listed = rows[:MAX_INPUTS]
    names = [one_line(row["name"], MAX_NAME) for row in listed]
    room = (WIDTH - max(map(len, names))) // len(document["runs"]) - GAP
    columns = [
        (run["label"], [_cut(row["values"][index], max(room, MIN_VALUE)) for row in listed])
        for index, run in enumerate(document["runs"])
    ]
    _put_fitting(("inputs that differ", names), columns, right=False)
    if len(rows) > len(listed):
        screen.put(f"and {len(rows) - len(listed)} more; the page and --json list all of them")


def _cut(value: str | None, most: int) -> str:
    return "none" if value is None else one_line(value, most)


def _show_metrics(document: Plain) -> None:
    rows = document["metrics"]
    screen.put()
    if not rows:
        screen.put("no run has metrics yet")
        return
    first, *others = [run["label"] for run in document["runs"]]
    names = [name for row in rows for name in (row["label"], *([INTERVAL] if any(row["intervals"]) else []))]
    columns: list[Column] = [(first, list(_values(rows, 0)))]
    for index, label in enumerate(others, 1):
        columns.append((label, list(_values(rows, index))))
        columns.append((f"{label} {figures.MINUS} {first}", list(_differences(rows, index))))
    _put_fitting(("metric", names), columns, right=True)


def _values(rows: Sequence[Plain], index: int) -> Iterator[str]:
    for row in rows:
        yield compared_value(row, index)
        if any(row["intervals"]):
            yield format_interval(row["intervals"][index], row["form"]) or figures.NONE


def _differences(rows: Sequence[Plain], index: int) -> Iterator[str]:
    for row in rows:
        yield format_difference(row["differences"][index], row["form"])
        if any(row["intervals"]):
            yield ""


def _put_fitting(names: Column, columns: Sequence[Column], right: bool) -> None:
    """Print a table, as several below each other if it is wider than 80 columns; each begins with the names."""
    heading, labels = names
    room = WIDTH - _width(names)
    blocks: list[list[Column]] = [[]]
    used = 0
    for column in columns:
        width = GAP + _width(column)
        if blocks[-1] and used + width > room:
            blocks.append([])
            used = 0
        blocks[-1].append(column)
        used += width
    for index, block in enumerate(blocks):
        if index:
            screen.put()
        rows = list(zip(labels, *[cells for _, cells in block], strict=True))
        sides = range(1, len(block) + 1) if right else ()
        screen.put_table((heading, *[name for name, _ in block]), rows, right=sides)


def _width(column: Column) -> int:
    return max(len(text) for text in (column[0], *column[1]))


def _show_pairs(document: Plain) -> None:
    screen.put()
    if document["unpaired"]:
        screen.put(f"the results cannot be compared day by day: {document['unpaired']}")
        return
    labels = {run["run_id"]: run["label"] for run in document["runs"]}
    rows = [
        (
            f"{labels[row['first']]} against {labels[row['second']]}",
            figures.percent(row["percent"], signed=True),
            format_interval(row["interval"], "signed_percent") or figures.NONE,
            figures.plain(row["p"], 3),
            verdict(row),
        )
        for row in document["pairs"]
    ]
    screen.put_table(("final equity", "difference", "95% interval", "p", ""), rows, right=(1, 2, 3))
    screen.put(f"{document['interval_meaning']} Over {figures.plural(document['days'], 'day')}.")


def _show_decisions(document: Plain) -> None:
    for heading, sentences in differing_decisions(document):
        screen.put()
        screen.put(heading, "bold" if sentences else "")
        for sentence in sentences:
            screen.put(f"  {sentence}")
