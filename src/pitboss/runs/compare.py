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
    parted = _part(workspace, first, second)
    left, right = first.metrics or {}, second.metrics or {}
    metrics = {
        name: {"first": left.get(name), "second": right.get(name)}
        for name in sorted({*left, *right})
        if left.get(name) != right.get(name)
    }
    same = parted is None and not metrics and first.digest == second.digest
    return {"first": first.id, "second": second.id, "same": same, "first_difference": parted, "metrics": metrics}


def _part(workspace: Workspace, first: Run, second: Run) -> dict[str, Any] | None:
    pairs = zip_longest(journal_of(workspace, first).records(), journal_of(workspace, second).records())
    for one, other in pairs:
        known = one or other
        if known is not None and (one is None or other is None or one.digest != other.digest):
            return {"seq": known.seq, "tick_at": iso(known.tick_at), "fields": _fields(one, other)}
    return None


def _fields(one: Record | None, other: Record | None) -> list[str]:
    if one is None or other is None:
        return ["one run has no such record"]
    left, right = codec.loads_exact(one.covered), codec.loads_exact(other.covered)
    return [name for name in sorted({*left, *right}) if left.get(name) != right.get(name)]
