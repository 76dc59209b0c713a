"""Suggestions for misspelt names: the valid name most similar to what was written, and the hint that offers it."""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches

PREFIX = "did you mean"


def nearest(name: str, choices: Iterable[str], fold: Callable[[str], str] = str, cutoff: float = 0.6) -> str | None:
    """The choice most similar to `name`, both folded first; None if none is similar."""
    by_folded: dict[str, str] = {}
    for choice in choices:
        by_folded.setdefault(fold(choice), choice)
    matches = get_close_matches(fold(name), by_folded, 1, cutoff)
    return by_folded[matches[0]] if matches else None


def nearest_spelling(name: str, choices: Iterable[str]) -> str | None:
    """The same without regard to case, spaces, underscores and hyphens, and with more tolerance."""
    return nearest(name, choices, fold_spelling, 0.5)


def fold_spelling(name: str) -> str:
    """A name in lower case without spaces, underscores and hyphens."""
    return re.sub(r"[\s_-]", "", name).lower()


def did_you_mean(suggestion: str | None, otherwise: str) -> str:
    """The hint for an unknown name."""
    return f"{PREFIX} {suggestion}?" if suggestion else otherwise
