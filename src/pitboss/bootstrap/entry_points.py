"""The entry points of all installed packages, by which plug-ins are found."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any


def entry_points_of(group: str) -> list[EntryPoint]:
    """The entry points of a group, sorted."""
    return sorted(_every_entry_point().select(group=group))


@cache
def _every_entry_point() -> Any:
    """Those of all groups: reading them once for each group would take as long as a short command."""
    return entry_points()
