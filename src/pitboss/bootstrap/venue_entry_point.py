"""The entry point by which venues are found: its group, and loading the venue behind one."""

import re
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
    except TypeError as error:
        missing = _abstract_methods_in(str(error))
        if not missing:
            raise
        raise UserError(
            f"the venue {entry.name} lacks methods that every venue must have: {', '.join(missing)}",
            "update its package, or see CONTRIBUTING, Add a venue",
        ) from None


def _abstract_methods_in(message: str) -> list[str]:
    """The methods that Python's error about an incomplete class names; empty for any other error."""
    _, _, methods = message.partition("abstract method") if "abstract class" in message else ("", "", "")
    return sorted(re.findall(r"\w+", methods.removeprefix("s")))
