"""The statuses of a run, and its status text in `runs list`."""

from collections.abc import Mapping
from typing import Any, Literal

Status = Literal["queued", "loading", "running", "computing_metrics", "complete", "error", "cancelled"]

SILENT_AFTER_S = 600
"""Seconds without a commit after which an active run was most likely killed; a slow model takes less."""


def status_text(row: Mapping[str, Any]) -> str:
    """Status and progress. Whether a worker is alive is unknown here, only how long it has committed nothing."""
    if row["status"] == "complete":
        return "complete"
    text = f"{row['status'].replace('_', ' ')} {row['progress_pct']:.0f} %"
    silent_s = row["silent_s"]
    if silent_s is None or silent_s < SILENT_AFTER_S:
        return text
    hours = silent_s // 3_600
    duration = f"{hours // 24} d" if hours >= 48 else f"{hours} h" if hours else f"{silent_s // 60} min"
    return f"{text}, silent for {duration}"
