"""Short documents for lists: the runs of a workspace, and the data in its lake."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, iso
from pitboss.report import figures
from pitboss.runs.stored import progress_of, row_document
from pitboss.runs.venues import venue_of
from pitboss.store.lifecycle import ACTIVE
from pitboss.store.runs import Run

if TYPE_CHECKING:
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.data.lake import Lake


RETURN = "total_return_pct"


def short(run: Run, now: Instant) -> dict[str, Any]:
    """The short document of a run. `silent_s` is the time since an active run last committed a record."""
    document = {**row_document(run), **progress_of(run)}
    metrics = document.pop("metrics") or {}
    document.pop("baselines")
    working = run.status in ACTIVE and run.heartbeat_at is not None
    return {
        **document,
        "skill": run.params["skill"].get("name", ""),
        "study_id": run.study_id,
        "total_return_pct": metrics.get("total_return_pct"),
        **_result(run, metrics),
        "silent_s": max(0, now - (run.heartbeat_at or now)) // 1_000 if working else None,
    }


def _result(run: Run, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The figure that a list shows: the return, or, where the venue has no accounts, what its studies are judged by."""
    try:
        venue = venue_of(run.params["skill"])
    except UserError:  # a venue that is not installed
        name, label = RETURN, ""
    else:
        name = RETURN if venue.has_account else venue.judged_by
        label = "" if venue.has_account else venue.metrics()[name].label
    return {"result": metrics.get(name), "result_metric": name, "result_label": label}


def result_text(row: Mapping[str, Any]) -> str:
    """That figure of a short document as text."""
    if not row["result_label"] or row["result"] is None:
        return figures.percent(row["result"], signed=True)
    is_percent = str(row["result_metric"]).endswith("_pct")
    value = figures.percent(row["result"]) if is_percent else figures.plain(row["result"])
    return f"{row['result_label'].lower()} {value}"


def holdings(lake: "Lake") -> list[dict[str, Any]]:
    """Every series in the lake with its extent and its gaps."""
    return [{**times(asdict(extent)), "synthetic": lake.is_synthetic(extent.venue)} for extent in lake.list()]


def times(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its instants as ISO text."""
    return {key: iso(value) if key.endswith("_at") and value is not None else value for key, value in row.items()}


def live_runs(workspace: "Workspace", limit: int = 1_000) -> list[dict[str, Any]]:
    """The live runs among the newest runs of a workspace that a command works on in the foreground, newest first."""
    now = workspace.now()
    live = [
        run for run in workspace.runs.listing(limit).runs if run.params.get("mode") and not run.params.get("deployed")
    ]
    names = ("skill", "model", "status", "created_at", "started_at", "finished_at", "silent_s", "cost_usd")
    rows = [(run, short(run, now)) for run in live]
    return [
        {
            "deployment_id": run.id,
            "run_id": run.id,
            "venue": str(run.params["skill"].get("venue") or ""),
            "mode": str(run.params["mode"]),
            **{name: row[name] for name in names},
        }
        for run, row in rows
    ]
