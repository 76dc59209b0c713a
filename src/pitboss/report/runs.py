"""The runs behind the page of a study or arena: links to their reports, runs without a result and their causes, commands.

A run is a mapping with `run_id`, `status` and `error`; a run whose report the page can reach has an `href`. The results of
a run are in its own report, not here.
"""

from collections import Counter
from collections.abc import Sequence

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.shell import command_list
from pitboss.report.source import Plain
from pitboss.report.table import LEFT, table

MOST_FAILURES = 100
MOST_CAUSES = 3
"""Causes named in a sentence."""
MAX_CAUSE_LENGTH = 240
"""Characters of a cause: some are entire pages sent by a server."""


def run_link(run: Plain) -> Html:
    """The id of a run, linked to its report if there is one."""
    name, href = tag("code", run["run_id"]), run.get("href")
    style = None if run["status"] == "complete" else "loss"
    return tag("a", name, href=href) if href else tag("span", name, class_=style)


def without_result(runs: Sequence[Plain]) -> list[Plain]:
    return [run for run in runs if run["status"] != "complete"]


def failure_cause(run: Plain, most: int = MAX_CAUSE_LENGTH) -> str:
    """Why a run has no result, in one line of at most `most` characters."""
    if run.get("error"):
        cause = " ".join(str(run["error"]).split())
        return cause if len(cause) <= most else f"{cause[: most - 1].rstrip()}…"
    return {"cancelled": "it was cancelled", "queued": "it has not started"}.get(run["status"], "it is running")


def cause_counts(causes: Sequence[str], most: int = MOST_CAUSES) -> str:
    """The most frequent causes in one line, each with its number of runs."""
    counts = sorted(Counter(causes).items(), key=lambda item: (-item[1], item[0]))
    remaining = sum(count for _, count in counts[most:])
    entries = [*counts[:most], *([("other causes", remaining)] if remaining else [])]
    return "; ".join(f"{cause} ({figures.plural(count, 'run')})" for cause, count in entries)


def missing_results(count: int) -> str:
    """A sentence on the number of runs without a result, for pages that list their causes below."""
    return f"{figures.plural(count, 'run has', 'runs have')} no result; the causes are listed below." if count else ""


def failure_section(failures: Sequence[tuple[Plain, Sequence[object]]], columns: Sequence[str]) -> Html:
    """Runs without a result and their causes. Each has the cells of `columns`, which identify it."""
    if not failures:
        return tag("p", "None: every run has a result.", class_="note")
    rows = [
        (tag("code", run["run_id"]), *cells, run["status"], failure_cause(run))
        for run, cells in failures[:MOST_FAILURES]
    ]
    head = [(name, LEFT) for name in ("Run", *columns, "Status", "Cause")]
    causes = cause_counts([failure_cause(run) for run, _ in failures])
    again = "Repeating the command continues with these runs; completed runs are kept."
    omitted = len(failures) - MOST_FAILURES
    more = tag("p", f"… and {omitted:,} more.", class_="note after") if omitted > 0 else Html()
    return join(
        [
            tag("p", f"{causes}. {again}", class_="note"),
            table("Runs without a result", head, rows, style="failed"),
            more,
        ]
    )


def check_section(study_id: str, kind: str, runs: Sequence[Plain]) -> Html:
    """Commands that verify a page. `runs` are all of its runs, the best first; `kind` is `study` or `arena`."""
    commands = [
        (f"pitboss study runs {study_id}", f"every run of this {kind} with its status"),
        (f"pitboss study show {study_id} --json", "everything on this page as numbers, computed again"),
    ]
    complete_run = next((run["run_id"] for run in runs if run["status"] == "complete"), None)
    if complete_run is not None:
        commands += [
            (f"pitboss runs verify {complete_run}", "checks this run against its records; every run can be checked"),
            (f"pitboss report {complete_run}", "writes a page of that run; existing pages are linked in the table"),
        ]
    return command_list(commands)
