"""The status text of a run in `runs list`."""

from typing import Any

PATIENCE_S = 600
"""An active run that has committed nothing for longer was most likely killed; a slow model takes less."""


def standing(one: dict[str, Any]) -> str:
    """Status and progress. Whether a worker is alive is unknown here, only how long it has committed nothing."""
    if one["status"] == "complete":
        return "complete"
    text = f"{one['status']} {one['progress_pct']:.0f} %"
    silent_s = one["silent_s"]
    if silent_s is None or silent_s < PATIENCE_S:
        return text
    hours = silent_s // 3_600
    long = f"{hours // 24} d" if hours >= 48 else f"{hours} h" if hours else f"{silent_s // 60} min"
    return f"{text}, silent for {long}"
