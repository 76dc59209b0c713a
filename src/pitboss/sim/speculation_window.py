"""How far to speculate: the window that follows from the probability of holds and the cap on waste.

Arithmetic only. `sim.speculator` sends the requests; `sim.speculation_budget` says what may still be wasted.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from copy import copy
from itertools import count, islice
from math import sqrt

MAX_WINDOW = 24
"""Most guesses of a window, however likely holds are, so that a provider is not flooded for a small gain."""

LIKELY = 0.4
"""Least probability that the last guess of a window is used."""

PRIOR_HOLDS, PRIOR_ORDERS, PRIOR_FADES = 120.0, 6.8, 0.95
"""The prior before any tick was seen: most ticks are holds. Every order reduces the weight of the prior."""

MEMORY = 0.998
"""Decay of a tick's weight per later tick: a change in behaviour is recognised within a few hundred ticks."""

PATTERN_ORDERS, PATTERN_SHARE = 2.5, 0.5
"""The count and share of orders at one distance from the previous order from which they are treated as a pattern."""

AT_ONCE = 0.7
"""The share of the remaining waste that one window may put at risk; when none is left, ticks run one by one."""

FARTHEST = 512
"""Larger distances are counted as this one."""


class Holds:
    """An estimate of the probability that the tick after it has the prompt that speculation expects: the account is
    unchanged, and nothing was refused.

    Orders are not independent: some skills act at fixed times, some follow an order with another. So a distance from
    the previous order at which orders are frequent has an estimate of its own; all other ticks share one estimate,
    which does not change much with every order that happens to come early or late.
    """

    def __init__(self) -> None:
        self._now, self._prior, self._age = 1.0, 1.0, 0
        self._ticks = self._ordered = 0.0
        self._ticks_at: dict[int, float] = defaultdict(float)
        self._orders: dict[int, float] = defaultdict(float)

    def add(self, is_hold: bool) -> None:
        """Add one more tick at which the model was called."""
        self._now /= MEMORY  # raising the weight of new ticks is equivalent to lowering that of all earlier ones
        if self._now > 1e9:
            self._fold()
        self._ticks_at[self._age] += self._now
        self._ticks += self._now
        if is_hold:
            self._age = min(self._age + 1, FARTHEST)
        else:
            self._orders[self._age] += self._now
            self._ordered += self._now
            self._prior *= PRIOR_FADES
            self._age = 0

    def _fold(self) -> None:
        for weights in (self._ticks_at, self._orders):
            for age in weights:
                weights[age] /= self._now
        self._ticks, self._ordered, self._now = self._ticks / self._now, self._ordered / self._now, 1.0

    def after(self, holds: int) -> "Holds":
        """The estimate after `holds` further holds, which are known but not replayed yet.

        So the window does not depend on how far the replay happens to have come.
        """
        later = copy(self)
        later._ticks_at, later._orders = self._ticks_at.copy(), self._orders.copy()
        for _ in range(holds):
            later.add(True)
        return later

    def rates(self) -> Iterator[float]:
        """The probability of a hold at the next tick, at the one after it if that held, and so on."""
        ticks_at, least = self._ticks_at, PATTERN_ORDERS * self._now
        patterns = {
            age: orders / ticks_at[age]
            for age, orders in self._orders.items()
            if orders >= least and orders >= PATTERN_SHARE * ticks_at[age]
        }
        orders = self._prior * PRIOR_ORDERS + (self._ordered - sum(self._orders[age] for age in patterns)) / self._now
        ticks = (self._ticks - sum(ticks_at[age] for age in patterns)) / self._now
        share = orders / (self._prior * (PRIOR_HOLDS + PRIOR_ORDERS) + ticks)
        for age in count(self._age):
            yield 1 - patterns.get(min(age, FARTHEST), share)


def best_window(hold_rates: Iterable[float], room: float, ahead: int) -> int:
    """The window that can be sustained for `ahead` ticks if `room` guesses may still be wasted.

    A tick followed by `k` guesses wastes, on average, those after the first order. The expected waste of such windows
    until the end must fit into the room, and with one standard deviation added come closest to it: windows of constant
    size are faster than large ones first and none once the room is used up. For the same reason no window may use up
    all of the room. Guesses that are unlikely to be used are not made.
    """
    most = max(0, min(MAX_WINDOW, round(AT_ONCE * room)))
    used, likely, wasted, squared, needed = 1.0, 1.0, 0.0, 0.0, 0.0
    for window, rate in enumerate(islice(hold_rates, most)):
        likely *= rate
        used += likely
        # a window longer by one wastes one more guess if an order came before its end
        squared += 2 * wasted + 1 - likely
        wasted += 1 - likely
        windows = max(1.0, ahead / used)
        expected, spread = windows * wasted, sqrt(windows * max(0.0, squared - wasted * wasted))
        if likely < LIKELY or expected > room + 1e-9:
            return window
        if expected + spread > room + 1e-9:
            return window + (expected + spread - room < room - needed)
        needed = expected + spread
    return most
