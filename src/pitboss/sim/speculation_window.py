"""How far to ask ahead: how likely the next ticks are holds, and the window that follows from it and from a cap on waste.

Numbers only. Who asks, and what may still be wasted, is `sim.speculate`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from copy import copy
from itertools import count, islice
from math import sqrt

MAX_WINDOW = 24
"""Guesses of a window, whatever the holds: a provider is not flooded for the sake of a few rounds."""

LIKELY = 0.4
"""The last guess of a window must be at least so likely to be used."""

PRIOR_HOLDS, PRIOR_ORDERS, PRIOR_FADES = 120.0, 6.8, 0.95
"""What is believed before anything was seen: most ticks are holds. Every order makes that belief weigh less."""

MEMORY = 0.998
"""What a tick counts for when one more has been seen: a market that has woken up is believed within a few hundred."""

KNOWN_ORDERS, KNOWN_SHARE = 2.5, 0.5
"""So many orders, and so large a share, at one distance from the order before are no accident."""

AT_ONCE = 0.7
"""The share of what may still be wasted that one window may put at risk: without any left, ticks are asked one by one."""

FARTHEST = 512
"""Distances beyond are one."""


class Holds:
    """How likely a tick leaves the account as it was, by what was seen.

    Orders are not thrown like dice: some skills act by the clock, some follow an order with another. So a distance from
    the order before at which orders are the rule is believed by itself; all other ticks share one belief, which does not
    swing with every order that happens to come early or late.
    """

    def __init__(self) -> None:
        self._now, self._prior, self._age = 1.0, 1.0, 0
        self._ticks = self._ordered = 0.0
        self._seen: dict[int, float] = defaultdict(float)
        self._orders: dict[int, float] = defaultdict(float)

    def see(self, held: bool) -> None:
        """One more tick at which the model was asked."""
        self._now /= MEMORY  # what is seen now weighs more than what was seen, instead of all that was seen less
        if self._now > 1e9:
            self._fold()
        self._seen[self._age] += self._now
        self._ticks += self._now
        if held:
            self._age = min(self._age + 1, FARTHEST)
        else:
            self._orders[self._age] += self._now
            self._ordered += self._now
            self._prior *= PRIOR_FADES
            self._age = 0

    def _fold(self) -> None:
        for weights in (self._seen, self._orders):
            for age in weights:
                weights[age] /= self._now
        self._ticks, self._ordered, self._now = self._ticks / self._now, self._ordered / self._now, 1.0

    def after(self, held: int) -> "Holds":
        """What will be believed after so many more holds, which are known but which the replay has not come to yet.

        So how far is asked ahead does not hang on how far the replay has come by chance.
        """
        later = copy(self)
        later._seen, later._orders = self._seen.copy(), self._orders.copy()
        for _ in range(held):
            later.see(True)
        return later

    def rates(self) -> Iterator[float]:
        """The chance of a hold at the next tick, at the one after it if that held, and so on."""
        seen, least = self._seen, KNOWN_ORDERS * self._now
        known = {age: n / seen[age] for age, n in self._orders.items() if n >= least and n >= KNOWN_SHARE * seen[age]}
        orders = self._prior * PRIOR_ORDERS + (self._ordered - sum(self._orders[age] for age in known)) / self._now
        ticks = (self._ticks - sum(seen[age] for age in known)) / self._now
        share = orders / (self._prior * (PRIOR_HOLDS + PRIOR_ORDERS) + ticks)
        for age in count(self._age):
            yield 1 - known.get(min(age, FARTHEST), share)


def best_window(hold_rates: Iterable[float], room: float, ahead: int) -> int:
    """The window that can be kept up for `ahead` ticks if `room` guesses may still come to nothing.

    A tick and `k` guesses after it waste, on average, those behind the first order. What such windows are expected to
    waste until the end must fit into the room, and together with a standard deviation of it come nearest to it: windows
    of one size all the way are quicker than large ones first and none when the room is used up. So no window may use up
    all of it, either. Nor is a guess made that is hardly likely to be used.
    """
    most = max(0, min(MAX_WINDOW, round(AT_ONCE * room)))
    used, likely, wasted, squared, needed = 1.0, 1.0, 0.0, 0.0, 0.0
    for window, rate in enumerate(islice(hold_rates, most)):
        likely *= rate
        used += likely
        squared += 2 * wasted + 1 - likely  # a longer window wastes one more if there was an order before its end
        wasted += 1 - likely
        windows = max(1.0, ahead / used)
        expected, spread = windows * wasted, sqrt(windows * max(0.0, squared - wasted * wasted))
        if likely < LIKELY or expected > room + 1e-9:
            return window
        if expected + spread > room + 1e-9:
            return window + (expected + spread - room < room - needed)
        needed = expected + spread
    return most
