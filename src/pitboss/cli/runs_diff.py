"""A comparison of two runs as a person reads it. Making it is `bootstrap.comparing`."""

from collections.abc import Iterator, Mapping
from typing import Any

from pitboss.runs.stored import one_line
from pitboss.terminal import screen

MOST_NAME, MOST_VALUE, MOST_SENTENCE = 36, 28, 500
"""Characters: a name and two values fit into 100 columns, and every number fits into its own."""


def show_difference(found: dict[str, Any]) -> None:
    """A comparison for a person."""
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
    """A row for every single figure that differs, tables and intervals taken apart, so that all of it is narrow."""
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
    """A list of texts; anything else has none. They are too long for a table."""
    return [one_line(text, MOST_SENTENCE) for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _cell(value: Any) -> str:
    return "none" if value is None else one_line(value, MOST_VALUE)
