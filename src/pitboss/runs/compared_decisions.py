"""The first decisions in which two runs differ, in words.

Decisions are compared at the instants at which both runs had a tick. They differ if one run acted and the other did not, or if the
proposals or their verdicts differ; two holds are the same whatever the reasons.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pitboss.core.instant import Instant, iso
from pitboss.report import figures
from pitboss.report.meaning import FLAGS, unknown_rule
from pitboss.runs.run_index import RunIndex
from pitboss.runs.stored import one_line
from pitboss.runs.venue import Venue
from pitboss.runs.venues import venue_of
from pitboss.store.runs import Run

MOST_DECISIONS = 5
MOST_REASON = 160

Compared = tuple[Run, RunIndex, str]
"""A run, its index and its label."""
Row = Mapping[str, Any]


def differing_decisions(first: Compared, second: Compared) -> dict[str, Any]:
    """How many decisions of two runs differ, and the first of them; `why_not` says why they cannot be compared."""
    document = {"first": first[0].id, "second": second[0].id, "differing": 0, "decisions": [], "why_not": ""}
    indexes = first[1], second[1]
    if not all(len(index) for index in indexes):
        return {**document, "why_not": "a run has no decisions yet"}
    start = max(int(index.numbers["tick_at"][0]) for index in indexes)
    end = min(int(index.numbers["until"].max()) for index in indexes)
    if start > end:
        return {**document, "why_not": "the runs have no tick in common"}
    count, rows = 0, list[dict[str, Any]]()
    for at, sides in _differing(indexes, start, end):
        count += 1
        if len(rows) < MOST_DECISIONS:
            rows.append(_difference(at, sides, (first, second)))
    return {**document, "differing": count, "decisions": rows}


def _differing(
    indexes: tuple[RunIndex, RunIndex], start: Instant, end: Instant
) -> Iterator[tuple[Instant, list[list[Row]]]]:
    """The instants at which the decisions differ, with the rows of each run."""
    acted = [set(index.numbers["tick_at"][index.find({"outcome": "proposed"})].tolist()) for index in indexes]
    for at in sorted(instant for instant in acted[0] | acted[1] if start <= instant <= end):
        sides = [_rows_at(index, at) for index in indexes]
        if all(sides) and _decision(sides[0]) != _decision(sides[1]):
            yield at, sides


def _rows_at(index: RunIndex, at: Instant) -> list[Row]:
    """The decisions of a run at an instant: several proposals, or one hold; none if it had no tick then."""
    times = index.numbers["tick_at"]
    low, high = int(np.searchsorted(times, at, "left")), int(np.searchsorted(times, at, "right"))
    if low < high:
        return [index.row(number) for number in range(low, high)]
    if low == 0:
        return []
    span = index.row(low - 1)
    steps = span["times"] - 1
    if at > span["until"] or not steps:
        return []
    is_tick = (at - span["tick_at"]) * steps % (span["until"] - span["tick_at"]) == 0
    return [span] if is_tick else []


def _decision(rows: Sequence[Row]) -> list[Row]:
    """What is compared of the decisions at a tick: proposals and verdicts without their texts; nothing of a hold."""
    about = ("seq", "row", "until", "times", "flags", "reason", "detail", "cost_usd")
    return [
        {name: value for name, value in row.items() if name not in about} for row in rows if row["outcome"] != "noop"
    ]


def _difference(at: Instant, sides: Sequence[Sequence[Row]], runs: tuple[Compared, Compared]) -> dict[str, Any]:
    words = [decision_words(rows, venue_of(run.params["skill"])) for rows, (run, _, _) in zip(sides, runs, strict=True)]
    in_words = "; ".join(f"{label}: {text}" for text, (_, _, label) in zip(words, runs, strict=True))
    return {
        "tick_at": iso(at),
        "sentence": f"at {figures.clock(at)} {in_words}",
        "sides": [
            {"words": text, "reason": one_line(rows[0]["reason"], MOST_REASON), "seq": rows[0]["seq"]}
            for text, rows in zip(words, sides, strict=True)
        ],
    }


def decision_words(rows: Sequence[Row], venue: Venue) -> str:
    """What an agent did at a tick, and which rule it met."""
    return ", then ".join(_row_words(row, venue) for row in rows)


def _row_words(row: Row, venue: Venue) -> str:
    if row["outcome"] == "noop":
        flags: list[str] = [FLAGS.get(flag, str(flag)) for flag in row["flags"] if flag != "plain"]
        return "held" + (f" ({', '.join(flags)})" if flags else "")
    intent = venue.describe_intent(row)
    if row["outcome"] == "allowed":
        return intent
    rule = venue.rule_meanings().get(row["code"] or "") or unknown_rule(row["code"] or "")
    name = f"{row['code']} ({rule.name.lower()})" if row["code"] else "a rule"
    if row["outcome"] == "reduced":
        return f"{intent}, reduced by {name}"
    return f"held because {name} refused to {intent[:1].lower()}{intent[1:]}"
