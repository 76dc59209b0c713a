"""How far to ask ahead: how likely the next ticks are holds, and the window that follows from it and from a cap on waste.

Numbers only. Who asks, and what may still be wasted, is `sim.speculate`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count, islice

MAX_WINDOW = 16
"""Guesses of a window, whatever the holds: one that goes on for longer wastes too much when it ends."""

LIKELY = 0.5
"""The last guess of a window must be at least so likely to be used."""

PRIOR_HOLDS, PRIOR_ORDERS = 20.0, 1.2
"""What is believed before anything was seen: most ticks are holds. About twenty orders in a row end that belief."""

MEMORY = 0.995
"""What a tick counts for when one more has been seen: a market that has woken up is believed within a few hundred."""

AGE_WEIGHT = 8.0
"""How many orders at the same distance from the order before outweigh the share of orders overall."""


class Holds:
    """How likely a tick leaves the account as it was, by what was seen: overall, and by the ticks since the last order.

    Orders are not thrown like dice: some skills act at a fixed hour, most leave a while between an entry and an exit.
    """

    def __init__(self) -> None:
        self._holds, self._orders = PRIOR_HOLDS, PRIOR_ORDERS
        self._age = 0
        self._seen: Counter[int] = Counter()
        self._ended: Counter[int] = Counter()

    def see(self, held: bool) -> None:
        """One more tick at which the model was asked."""
        self._holds, self._orders = self._holds * MEMORY + held, self._orders * MEMORY + (not held)
        self._seen[self._age] += 1
        self._ended[self._age] += not held
        self._age = self._age + 1 if held else 0

    def rates(self) -> Iterator[float]:
        """The chance of a hold at the next tick, at the one after it if that held, and so on."""
        orders = AGE_WEIGHT * self._orders / (self._holds + self._orders)
        for age in count(self._age):
            yield 1 - (orders + self._ended[age]) / (AGE_WEIGHT + self._seen[age])


def best_window(hold_rates: Iterable[float], max_waste_pct: float) -> int:
    """The largest window whose expected waste is within the cap and whose last guess is still likely to be used.

    Of a tick and `k` guesses after it the run uses those up to the first order: 1 + h + hh' + … of them on average.
    """
    used, likely = 1.0, 1.0
    for window, rate in enumerate(islice(hold_rates, MAX_WINDOW)):
        likely *= rate
        used += likely
        if likely < LIKELY or (window + 2 - used) * 100 > max_waste_pct * used + 1e-9:
            return window
    return MAX_WINDOW
