"""The single runs behind a page about many, for studies and arenas: their names and reports, those without a result and
why, and what to type to look at them.

A run is a mapping with `run_id`, `status` and `error`; one whose report lies where the page can reach it has an `href`.
What a run came to is told by its own report, not here.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.shell import command_list
from pitboss.report.table import LEFT, table

Plain = Mapping[str, Any]
MOST_FAILURES = 100
MOST_CAUSES = 3
"""Causes that are named in a sentence."""
MOST_LETTERS = 240
"""Of a cause: some are whole pages that a server sent."""


def run_link(run: Plain) -> Html:
    """A run by its id, leading to its report if there is one."""
    name, href = tag("code", run["run_id"]), run.get("href")
    style = None if run["status"] == "complete" else "loss"
    return tag("a", name, href=href) if href else tag("span", name, class_=style)


def without_result(runs: Sequence[Plain]) -> list[Plain]:
    return [run for run in runs if run["status"] != "complete"]


def failure_cause(run: Plain, most: int = MOST_LETTERS) -> str:
    """Why a run has no result, in a line of so many letters."""
    if run.get("error"):
        said = " ".join(str(run["error"]).split())
        return said if len(said) <= most else f"{said[: most - 1].rstrip()}…"
    return {"cancelled": "it was stopped", "queued": "nobody has begun it"}.get(run["status"], "it is being worked on")


def cause_counts(causes: Sequence[str], most: int = MOST_CAUSES) -> str:
    """The most frequent causes in a line, each with how many runs have it."""
    every = sorted(Counter(causes).items(), key=lambda item: (-item[1], item[0]))
    rest = sum(count for _, count in every[most:])
    named = [*every[:most], *([("other causes", rest)] if rest else [])]
    return "; ".join(f"{said} ({figures.plural(count, 'run')})" for said, count in named)


def missing_results(count: int) -> str:
    """How many runs have no result, where their causes are told further down."""
    return f"{figures.plural(count, 'run has', 'runs have')} no result; the causes are below." if count else ""


def failure_section(failures: Sequence[tuple[Plain, Sequence[object]]], columns: Sequence[str]) -> Html:
    """Runs without a result and why. Each comes with the cells of `columns`, which tell it from the others."""
    if not failures:
        return tag("p", "None: every run has a result.", class_="note")
    rows = [
        (tag("code", run["run_id"]), *cells, run["status"], failure_cause(run))
        for run, cells in failures[:MOST_FAILURES]
    ]
    head = [(name, LEFT) for name in ("Run", *columns, "State", "Cause")]
    words = cause_counts([failure_cause(run) for run, _ in failures])
    again = "The command that made all this goes on with them; what is done stays."
    left = len(failures) - MOST_FAILURES
    more = tag("p", f"… and {left:,} more.", class_="note after") if left > 0 else Html()
    return join(
        [tag("p", f"{words}. {again}", class_="note"), table("Runs without a result", head, rows, style="failed"), more]
    )


def check_section(study_id: str, what: str, runs: Sequence[Plain]) -> Html:
    """What to type to check a page. `runs` are all of them, the best first; `what` is what they make up together."""
    commands = [
        (f"pitboss study runs {study_id}", f"every run of this {what}, and how it stands"),
        (f"pitboss study show {study_id} --json", "everything on this page as numbers, worked out again"),
    ]
    done = next((run["run_id"] for run in runs if run["status"] == "complete"), None)
    if done is not None:
        commands += [
            (f"pitboss runs verify {done}", "this run against its own records; each of them can be checked"),
            (f"pitboss report {done}", "a page of that run; pages that are there are linked in the table"),
        ]
    return command_list(commands)
