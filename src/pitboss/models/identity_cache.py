"""`IdentityCache`: a function whose results are cached by the identity of its argument.

For values that are too large to be compared or hashed at every call and never change, such as the schemas of tools. An
equal but different object is computed again, so a result is never wrong.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

MOST_ENTRIES = 512

T = TypeVar("T")
V = TypeVar("V")


class IdentityCache(Generic[T, V]):
    """Wraps a function of one argument and keeps its last few hundred results."""

    def __init__(self, compute: Callable[[T], V]) -> None:
        self._compute = compute
        self._entries: dict[int, tuple[T, V]] = {}

    def __call__(self, key: T) -> V:
        entry = self._entries.get(id(key))
        if entry is not None and entry[0] is key:  # the entry keeps the object alive, so its id is not reused
            return entry[1]
        if len(self._entries) >= MOST_ENTRIES:
            self._entries.clear()
        value = self._compute(key)
        self._entries[id(key)] = key, value
        return value
