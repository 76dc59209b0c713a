"""Compare two stored runs: the first record at which their chains differ, and the metrics that differ.

Only stored records are read; nothing is replayed.
"""

from collections.abc import Mapping
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
    first_metrics, second_metrics = first.metrics or {}, second.metrics or {}
    metrics = {
        name: {"first": first_metrics.get(name), "second": second_metrics.get(name)}
        for name in _differing(first_metrics, second_metrics)
    }
    same = difference is None and not metrics and first.digest == second.digest
    return {"first": first.id, "second": second.id, "same": same, "first_difference": difference, "metrics": metrics}


def _first_difference(workspace: Workspace, first: Run, second: Run) -> dict[str, Any] | None:
    pairs = zip_longest(journal_of(workspace, first).records(), journal_of(workspace, second).records())
    for first_record, second_record in pairs:
        if first_record is None or second_record is None or first_record.digest != second_record.digest:
            record = first_record or second_record
            fields = _differing_fields(first_record, second_record)
            return None if record is None else {"seq": record.seq, "tick_at": iso(record.tick_at), "fields": fields}
    return None


def _differing_fields(first: Record | None, second: Record | None) -> list[str]:
    if first is None or second is None:
        return ["one run has no such record"]
    return _differing(codec.loads_exact(first.covered), codec.loads_exact(second.covered))


def _differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """The names whose values differ, sorted."""
    return [name for name in sorted({*first, *second}) if first.get(name) != second.get(name)]
