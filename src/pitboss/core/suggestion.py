"""Suggestions for misspelt names: the valid name most similar to what was written, and the hint that offers it."""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches

PREFIX = "did you mean"
SHORTEST_ID = 6
"""Characters from which on a similar id is more than a coincidence."""
LISTED = 20
"""Most names in a hint that lists them."""


def nearest(name: str, choices: Iterable[str], fold: Callable[[str], str] = str, cutoff: float = 0.6) -> str | None:
    """The choice most similar to `name`, both folded first; None if none is similar."""
    by_folded: dict[str, str] = {}
    for choice in choices:
        by_folded.setdefault(fold(choice), choice)
    matches = get_close_matches(fold(name), by_folded, 1, cutoff)
    return by_folded[matches[0]] if matches else None


def nearest_spelling(name: str, choices: Iterable[str]) -> str | None:
    """The same without regard to case, spaces, underscores and hyphens."""
    return nearest(name, choices, fold_spelling)


def fold_spelling(name: str) -> str:
    """A name in lower case without spaces, underscores and hyphens."""
    return re.sub(r"[\s_-]", "", name).lower()


def nearest_id(prefix: str, ids: Iterable[str]) -> str | None:
    """The id whose beginning is almost `prefix`: one or two wrong characters. None for a prefix too short to tell."""
    size = len(prefix)
    return nearest(prefix, ids, lambda text: text[:size].lower(), 0.75) if size >= SHORTEST_ID else None


def suggestion(name: str, choices: Iterable[str], label: str = "one of") -> str:
    """The hint for an unknown name: the choice most similar to it, else a list of the choices; empty if there are none."""
    names = list(choices)
    listed = ", ".join(names[:LISTED]) + (", …" if len(names) > LISTED else "")
    return did_you_mean(nearest_spelling(name, names), f"{label} {listed}" if names else "")


def did_you_mean(similar: str | None, otherwise: str) -> str:
    """The hint for an unknown name."""
    return f"{PREFIX} {similar}?" if similar else otherwise
