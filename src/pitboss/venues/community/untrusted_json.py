"""Cleans documents of a forum server: characters that a reader cannot see are removed, then secrets of this process.

In that order, because a secret with invisible characters between its letters would otherwise pass. Numbers beyond 53 bits
become text, so that the document can be stored.
"""

import re
from collections.abc import Callable
from typing import Any, cast

from pitboss.core.codec import printable
from pitboss.prompt.render import INVISIBLE

MAX_DEPTH = 32
_INVISIBLE = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{INVISIBLE}]")


def cleaner(redact: Callable[[str], str]) -> Callable[[Any], Any]:
    """A function that cleans a JSON value; what is nested deeper than `MAX_DEPTH` is dropped."""

    def clean(value: Any, depth: int = 0) -> Any:
        if isinstance(value, str):
            return redact(_INVISIBLE.sub("", printable(value)))
        if isinstance(value, int | float):
            return value if isinstance(value, bool) or abs(value) < 2**53 else str(value)
        if depth >= MAX_DEPTH and isinstance(value, list | dict):
            return None
        if isinstance(value, list):
            return [clean(item, depth + 1) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            return {clean(key, depth + 1): clean(item, depth + 1) for key, item in fields.items()}
        return value

    return clean
