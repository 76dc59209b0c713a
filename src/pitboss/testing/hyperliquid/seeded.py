"""`SeededNumbers`: pseudo-random numbers that follow from a seed and a label alone (SplitMix64).

Every part of the fake exchange draws from a stream with a label of its own, so that one more draw in one part changes no other.
"""

import hashlib

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mixed(number: int) -> int:
    """64 bits that look random and follow from a number of 64 bits."""
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & MASK
    return number ^ (number >> 31)


class SeededNumbers:
    """One stream of numbers."""

    __slots__ = ("_state",)

    def __init__(self, seed: int, label: str) -> None:
        self._state = int.from_bytes(hashlib.sha256(f"{seed}:{label}".encode()).digest()[:8], "big")

    def bits(self) -> int:
        """The next 64 bits."""
        self._state = (self._state + GOLDEN) & MASK
        return mixed(self._state)

    def below(self, bound: int) -> int:
        """A number from 0 up to but not including `bound`."""
        return self.bits() % bound

    def between(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return low + self.bits() % (high - low + 1)

    def chance(self, probability: float) -> bool:
        """Whether something of this probability happens now."""
        return probability > 0 and self.bits() < probability * (MASK + 1)
