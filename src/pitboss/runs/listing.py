"""Short documents for lists: the runs of a workspace, and the data in its lake."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pitboss.core.instant import Instant, iso
from pitboss.runs.stored import progress_of, row_document
from pitboss.store.lifecycle import ACTIVE
from pitboss.store.runs import Run

if TYPE_CHECKING:
    from pitboss.data.lake import Lake


def short(run: Run, now: Instant) -> dict[str, Any]:
    """The short document of a run. `silent_s` is the time since an active run last committed a record."""
    document = {**row_document(run), **progress_of(run)}
    metrics = document.pop("metrics") or {}
    document.pop("baselines")
    working = run.status in ACTIVE and run.heartbeat_at is not None
    return {
        **document,
        "skill": run.params["skill"].get("name", ""),
        "total_return_pct": metrics.get("total_return_pct"),
        "silent_s": max(0, now - (run.heartbeat_at or now)) // 1_000 if working else None,
    }


def holdings(lake: "Lake") -> list[dict[str, Any]]:
    """Every series in the lake with its extent and its gaps."""
    return [{**times(asdict(extent)), "synthetic": lake.is_synthetic(extent.venue)} for extent in lake.list()]


def times(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its instants as ISO text."""
    return {key: iso(value) if key.endswith("_at") and value is not None else value for key, value in row.items()}
