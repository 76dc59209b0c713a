"""How a run of `runs list` stands, in few words."""

from typing import Any

PATIENCE_S = 600
"""A run that is worked on and has not said anything for longer was most likely killed; a slow model takes less."""


def standing(one: dict[str, Any]) -> str:
    """Status and progress. Nobody can tell from here whether a worker still lives, only how long it has been silent."""
    if one["status"] == "complete":
        return "complete"
    text = f"{one['status']} {one['progress_pct']:.0f} %"
    silent_s = one["silent_s"]
    if silent_s is None or silent_s < PATIENCE_S:
        return text
    hours = silent_s // 3_600
    long = f"{hours // 24} d" if hours >= 48 else f"{hours} h" if hours else f"{silent_s // 60} min"
    return f"{text}, silent for {long}"
