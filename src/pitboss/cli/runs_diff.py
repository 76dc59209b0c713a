"""Print a comparison of two runs. The comparison is made by `runs.compare`."""

from collections.abc import Iterator, Mapping
from typing import Any

from pitboss.runs.stored import one_line
from pitboss.terminal import screen

MOST_NAME, MOST_VALUE, MOST_SENTENCE = 36, 28, 500
"""Lengths in characters: a name and two values fit into 100 columns, and every number fits into its column."""


def show_difference(found: dict[str, Any]) -> None:
    """Print a comparison."""
    if found["same"]:
        screen.put("the two runs are the same")
        return
    parted = found["first_difference"]
    if parted is None:
        screen.put("every record is the same")
    else:
        screen.put(f"first difference: record {parted['seq']} at {parted['tick_at']}, in {', '.join(parted['fields'])}")
    first, second = found["first"], found["second"]
    rows = list(_rows(found["metrics"]))
    if rows:
        screen.put_table(("metric", first, second), rows, folds=(1, 2))
    for name, one in found["metrics"].items():
        left, right = _sentences(one["first"]), _sentences(one["second"])
        for run_id, only in (
            (first, [text for text in left if text not in right]),
            (second, [text for text in right if text not in left]),
        ):
            for text in only:
                screen.put(f"{name} only of {run_id}: {text}")


def _rows(metrics: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """A row for every figure that differs; tables and intervals are split into single figures."""
    for name, one in metrics.items():
        left, right = dict(_leaves(name, one["first"])), dict(_leaves(name, one["second"]))
        for leaf in dict.fromkeys([*left, *right]):
            if left.get(leaf) != right.get(leaf):
                yield one_line(leaf, MOST_NAME), _cell(left.get(leaf)), _cell(right.get(leaf))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(f"{name}.{key}", item)
    elif isinstance(value, list):
        if not _sentences(value):
            for place, item in zip(("from", "to"), value, strict=False):
                yield f"{name}.{place}", item
    elif value is not None:
        yield name, value


def _sentences(value: Any) -> list[str]:
    """The texts of a list, which are too long for a table; empty for any other value."""
    return [one_line(text, MOST_SENTENCE) for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _cell(value: Any) -> str:
    return "none" if value is None else one_line(value, MOST_VALUE)
