"""Compare two stored runs: the first record at which their chains differ, and the metrics that differ.

Only stored records are read; nothing is replayed.
"""

from itertools import zip_longest
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.instant import iso
from pitboss.core.snapshot import Record
from pitboss.runs.stored import journal_of
from pitboss.store.runs import Run


def compare(workspace: Workspace, first: Run, second: Run) -> dict[str, Any]:
    """Return the first differing record and every differing metric."""
    difference = _first_difference(workspace, first, second)
    left, right = first.metrics or {}, second.metrics or {}
    metrics = {
        name: {"first": left.get(name), "second": right.get(name)}
        for name in sorted({*left, *right})
        if left.get(name) != right.get(name)
    }
    same = difference is None and not metrics and first.digest == second.digest
    return {"first": first.id, "second": second.id, "same": same, "first_difference": difference, "metrics": metrics}


def _first_difference(workspace: Workspace, first: Run, second: Run) -> dict[str, Any] | None:
    pairs = zip_longest(journal_of(workspace, first).records(), journal_of(workspace, second).records())
    for left, right in pairs:
        record = left or right
        if record is not None and (left is None or right is None or left.digest != right.digest):
            return {"seq": record.seq, "tick_at": iso(record.tick_at), "fields": _fields(left, right)}
    return None


def _fields(left: Record | None, right: Record | None) -> list[str]:
    if left is None or right is None:
        return ["one run has no such record"]
    first, second = codec.loads_exact(left.covered), codec.loads_exact(right.covered)
    return [name for name in sorted({*first, *second}) if first.get(name) != second.get(name)]
