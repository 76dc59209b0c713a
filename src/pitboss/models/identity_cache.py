"""`Remembered`: what is worked out of an object, once for each object.

For things that are too large to be compared or hashed at every call and never change, such as the schemas of tools. Known is
who is the same object, not who is equal; so it is never wrong, only sometimes slow.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

MOST = 512

T = TypeVar("T")
V = TypeVar("V")


class Remembered(Generic[T, V]):
    """A function that remembers the last few hundred objects it was given."""

    def __init__(self, make: Callable[[T], V]) -> None:
        self._make = make
        self._known: dict[int, tuple[T, V]] = {}

    def __call__(self, one: T) -> V:
        known = self._known.get(id(one))
        if known is not None and known[0] is one:  # which is kept alive here, so no other can have its number
            return known[1]
        if len(self._known) >= MOST:
            self._known.clear()
        made = self._make(one)
        self._known[id(one)] = one, made
        return made
