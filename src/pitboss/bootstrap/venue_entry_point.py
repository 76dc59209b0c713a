"""The entry point by which venues are found: its group, and loading the venue behind one."""

from importlib.metadata import EntryPoint
from typing import Any

from pitboss.core.errors import UserError

GROUP = "pitboss.venues"


def load_venue(entry: EntryPoint) -> Any:
    """Import the value behind an entry point, a `runs.venue.Venue` if its package is right."""
    try:
        return entry.load()
    except ImportError as error:
        raise UserError(f"the venue {entry.name} cannot be loaded: {error}", "reinstall its package") from None
