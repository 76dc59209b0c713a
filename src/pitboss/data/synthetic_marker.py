"""The marker of a generated venue: a file in its folder of a lake, read without the libraries that read the data."""

import re
from pathlib import Path

from pitboss.core.errors import UserError

DEMO = "demo"
"""The venue of the market that `data demo` generates."""
MARKER = "SYNTHETIC"
_VENUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def venue_folder(root: Path, kind: str, venue: str) -> Path:
    """The folder of a venue's series of one kind."""
    if not _VENUE.fullmatch(venue):
        raise UserError(f"{venue!r} is not a venue name", "letters, digits, dots, dashes and underscores")
    return root / kind / f"venue={venue}"


def is_marked(root: Path, venue: str) -> bool:
    """Whether the data of a venue in the lake at `root` was generated rather than imported."""
    return (venue_folder(root, "meta", venue) / MARKER).is_file()
