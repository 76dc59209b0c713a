"""Print a comparison of two runs. The comparison is made by `runs.compare`."""

from collections.abc import Iterator, Mapping
from typing import Any

from pitboss.runs.stored import one_line
from pitboss.terminal import screen

MAX_NAME, MAX_VALUE, MAX_SENTENCE = 36, 28, 500
"""Lengths in characters: a name and two values fit into 100 columns, and every number fits into its column."""


def show_difference(comparison: dict[str, Any]) -> None:
    """Print a comparison."""
    if comparison["same"]:
        screen.put("the two runs are the same")
        return
    difference = comparison["first_difference"]
    if difference is None:
        screen.put("every record is the same")
    else:
        screen.put(
            f"first difference: record {difference['seq']} at {difference['tick_at']}, in {', '.join(difference['fields'])}"
        )
    first, second = comparison["first"], comparison["second"]
    rows = list(_rows(comparison["metrics"]))
    if rows:
        screen.put_table(("metric", first, second), rows, folds=(1, 2))
    for name, values in comparison["metrics"].items():
        first_texts, second_texts = _sentences(values["first"]), _sentences(values["second"])
        for run_id, only in (
            (first, [text for text in first_texts if text not in second_texts]),
            (second, [text for text in second_texts if text not in first_texts]),
        ):
            for text in only:
                screen.put(f"{name} only in {run_id}: {text}")


def _rows(metrics: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """A row for each figure that differs; tables and intervals are split into single figures."""
    for name, values in metrics.items():
        first, second = dict(_leaves(name, values["first"])), dict(_leaves(name, values["second"]))
        for leaf in dict.fromkeys([*first, *second]):
            if first.get(leaf) != second.get(leaf):
                yield one_line(leaf, MAX_NAME), _cell(first.get(leaf)), _cell(second.get(leaf))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(f"{name}.{key}", item)
    elif isinstance(value, list):
        if not _sentences(value):
            for side, item in zip(("from", "to"), value, strict=False):
                yield f"{name}.{side}", item
    elif value is not None:
        yield name, value


def _sentences(value: Any) -> list[str]:
    """The texts of a list, which are too long for a table; empty for any other value."""
    return [one_line(text, MAX_SENTENCE) for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _cell(value: Any) -> str:
    return "none" if value is None else one_line(value, MAX_VALUE)
